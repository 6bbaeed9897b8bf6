"""The shell of both programs: the default command,
and commands of packages that are not installed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from workspace import PROJECT

from constructs_triton.cli import PROGRAM
from triton_model_check.cli import PROGRAM as CHECKER

DIGITS = str(PROJECT / "assets" / "model_repositories" / "digits")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_checker_without_a_command_is_check(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """``constructs-triton check PATH`` prints the same report;
    a note of its own names the next command.
    """
    assert CHECKER.main([*options, DIGITS]) == 0
    checked = capsys.readouterr()
    assert CHECKER.main(["check", DIGITS, *options]) == 0
    assert capsys.readouterr() == checked
    assert PROGRAM.main(["check", DIGITS, *options, "--target", "server"]) == 0
    assert capsys.readouterr().out == checked.out


def test_commands_of_the_checker_are_not_paths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first word is a command if there is one of this name,
    and the version is that of the package.
    """
    assert CHECKER.main(["config", "show", DIGITS]) == 0
    assert "classifier" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        CHECKER.main(["--version"])
    assert capsys.readouterr().out.startswith("triton-model-check ")


@pytest.mark.parametrize(
    ("package", "words", "extra"),
    [
        ("cdk_rehearse", ["rehearse", "none", "none"], "rehearse"),
        ("constructs_triton_client", ["invoke", "digits", "--help"], "load"),
    ],
)
def test_missing_package_names_its_extra(package: str, words: list[str], extra: str) -> None:
    """A command of a package that is not installed says how to install it, with exit code 2."""
    program = (
        "import sys\n"
        f"sys.modules[{package!r}] = None\n"
        "from constructs_triton.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    name = package.replace("_", "-")
    assert f"{name} is not installed; run `pip install 'constructs-triton[{extra}]'`" in run.stderr
    assert run.returncode == 2
