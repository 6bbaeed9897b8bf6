"""The check that every package makes first: that core has its own version."""

from __future__ import annotations

import sys

import pytest

import constructs_triton_core
from constructs_triton_core import same_version

SENTENCE = "cdk-rehearse 99.1: needs constructs-triton-core 99.1, got {}; run `pip install -U {}`"


def _sentence() -> str:
    names = (
        "constructs-triton-core triton-model-check constructs-triton-client "
        "cdk-rehearse constructs-triton"
    )
    return SENTENCE.format(constructs_triton_core.__version__, names)


def test_same_version_is_returned() -> None:
    """A package takes its version from the check."""
    version = constructs_triton_core.__version__
    assert same_version("cdk-rehearse", version) == version


def test_other_version_is_an_import_error() -> None:
    """The sentence names both distributions, both versions,
    and the command for all that are installed.
    """
    with pytest.raises(ImportError) as caught:
        same_version("cdk-rehearse", "99.1")
    assert str(caught.value) == _sentence()


@pytest.mark.parametrize(
    "program",
    [
        "/usr/bin/constructs-triton",
        "/usr/bin/triton-model-check",
        "-m",
        "/lib/constructs_triton/cli/__main__.py",
    ],
)
def test_program_ends_without_a_traceback(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command prints the sentence, and ends as it does when a package is missing."""
    monkeypatch.setattr(sys, "argv", [program, "check", "models"])
    with pytest.raises(SystemExit) as caught:
        same_version("cdk-rehearse", "99.1")
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"error: {_sentence()}\n"
