"""``constructs-triton doctor completion`` writes scripts that shells run."""

import subprocess
from pathlib import Path

import pytest

from constructs_triton.cli import COMMANDS, main


def test_bash_completes_commands_options_and_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The script makes bash complete a command, its second word, an option,
    and files that it reads.
    """
    assert main(["doctor", "completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)
    program = (
        f"source {script}; complete() {{ COMP_WORDS=(constructs-triton $@); COMP_CWORD=$#; "
        '_shtab_constructs_triton; echo "${COMPREPLY[@]}"; }; complete rehe; complete load-test '
        "--lat; complete plan bench; complete verify digits req; "
        "complete cost pri; complete cost prices --out"
    )
    for name in ("benchmark.csv", "requests.json"):
        (tmp_path / name).touch()
    done = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    files = ["benchmark.csv", "requests.json"]
    assert done.stdout.split() == ["rehearse", "--latency-ms", *files, "prices", "--output"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The scripts of the other shells name each command and its line in the help."""
    assert main(["doctor", "completion", shell]) == 0
    script = capsys.readouterr().out
    assert [name for name in COMMANDS if name.split()[-1] not in script] == []
    assert COMMANDS["adopt"].summary in script
