"""``triton-model-check explain``: the codes of checks, with the examples of the documentation."""

from __future__ import annotations

import json

import pytest

from triton_model_check.checks.chapters import RULES
from triton_model_check.cli import main


@pytest.mark.parametrize("code", RULES)
def test_every_check_is_explained(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What it says, how serious it is, its source, an example and how to fix it; none is empty."""
    assert main(["explain", code, "--json"]) == 0
    entry, *_ = json.loads(capsys.readouterr().out)["codes"]
    assert entry["code"] == code
    assert all(entry[name] for name in ("title", "severity", "source", "example", "change", "fix"))
    assert f"[{code}]" in entry["example"]


def test_group_lists_its_codes(capsys: pytest.CaptureFixture[str]) -> None:
    """The beginning of codes, a chapter of the checks, or both."""
    assert main(["explain", "state", "--json"]) == 0
    codes = {each["code"] for each in json.loads(capsys.readouterr().out)["codes"]}
    assert codes == {
        code for code, rule in RULES.items() if code.startswith("state-") or rule.group == "state"
    }
    assert main(["explain", "gpu_memory"]) == 0
    assert capsys.readouterr().out.startswith("code")


def test_unknown_code_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, because nothing was explained."""
    assert main(["explain", "text-enm"]) == 2
    assert 'got "text-enm"; did you mean "text-enum"?' in capsys.readouterr().err
