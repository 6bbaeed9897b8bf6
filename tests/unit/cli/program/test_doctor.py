"""``constructs-triton doctor`` and ``completion``."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

import pytest

from constructs_triton.cli import COMMANDS, doctor, main

PROJECT = Path(__file__).resolve().parents[4]
#: Extras of the project's own development, and the one that contains others.
OTHERS = {"all", "dev", "docs", "examples"}


def test_every_extra_is_looked_for() -> None:
    """The command knows each extra that users install, and every module that it looks for is one of it."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert set(doctor.EXTRAS) == set(project["optional-dependencies"]) - OTHERS


def test_what_is_missing_has_its_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Without programs and credentials, each part says what to do, and apps cannot be synthesized."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    assert main(["doctor", "--json"]) == 1
    parts = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert parts["Python"]["state"] == "works"
    assert parts["Node.js"]["details"] == "not found; install Node.js 22 or 24"
    assert "npm install -g aws-cdk@" in parts["cdk"]["details"]
    assert "podman is not installed" in parts["podman"]["details"]
    assert parts["AWS"]["details"] == "no credentials; run `aws configure`, or set AWS_PROFILE"


def test_cdk_of_the_documentation_is_named() -> None:
    """The version of the CDK's command line is the one of package.json."""
    version = json.loads((PROJECT / "package.json").read_text())["devDependencies"]["aws-cdk"]
    assert f"aws-cdk@{version}" == doctor.CDK


def test_bash_completes_commands_options_and_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The script makes bash complete a command, its second word, an option, and files that it reads."""
    assert main(["doctor", "completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)
    program = (
        f"source {script}; complete() {{ COMP_WORDS=(constructs-triton $@); COMP_CWORD=$#; "
        '_shtab_constructs_triton; echo "${COMPREPLY[@]}"; }; complete rehe; complete load-test --lat; '
        "complete plan bench; complete verify digits req; complete cost pri; complete cost prices --out"
    )
    for name in ("benchmark.csv", "requests.json"):
        (tmp_path / name).touch()
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    files = ["benchmark.csv", "requests.json"]
    assert done.stdout.split() == ["rehearse", "--latency-ms", *files, "prices", "--output"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The scripts of the other shells name each command and its line in the help."""
    assert main(["doctor", "completion", shell]) == 0
    script = capsys.readouterr().out
    assert [name for name in COMMANDS if name.split()[-1] not in script] == []
    assert COMMANDS["adopt"].summary in script
