"""The shell of both programs: the default command, and commands of packages that are not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from workspace import PROJECT

from constructs_triton.cli import PROGRAM
from triton_model_check.cli import PROGRAM as CHECKER

DIGITS = str(PROJECT / "assets" / "model_repositories" / "digits")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_checker_without_a_command_is_check(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """``triton-model-check PATH`` prints what ``constructs-triton check PATH`` prints."""
    assert CHECKER.main([*options, DIGITS]) == 0
    checked = capsys.readouterr()
    assert CHECKER.main(["check", DIGITS, *options]) == 0
    assert capsys.readouterr() == checked
    assert PROGRAM.main(["check", DIGITS, *options]) == 0
    assert capsys.readouterr() == checked


def test_commands_of_the_checker_are_not_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first word is a command if there is one of this name, and the version is that of the package."""
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
def test_missing_package_names_its_extra(
    package: str,
    words: list[str],
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A command of a package that is not installed says how to install it, with exit code 2."""
    for name in [each for each in sys.modules if each.startswith(("constructs_triton_tools.cli", package))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert PROGRAM.main(words) == 2
    name = package.replace("_", "-")
    assert (
        f"{name} is not installed; run `pip install 'constructs-triton[{extra}]'`" in capsys.readouterr().err
    )
