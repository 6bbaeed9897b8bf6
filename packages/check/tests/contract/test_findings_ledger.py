"""The ledger of findings: `make findings` writes it, and a person reads the difference."""

from __future__ import annotations

import findings_ledger
import pytest
from findings_ledger import LEDGER, Checked

ERROR, WARNING = ("error", "onnx-dims"), ("warning", "onnx-unused")


def test_ledger_is_that_of_the_present_checks() -> None:
    """No check finds anything else in a repository of the corpus than the committed file says."""
    assert LEDGER.read_text(encoding="utf-8") == findings_ledger.render(), "run make findings"


@pytest.mark.parametrize(
    ("recorded", "findings", "wrongly"),
    [
        ("loads", [WARNING], ""),
        ("loads", [WARNING, ERROR], "refused"),
        ("rejected", [ERROR], ""),
        ("rejected", [WARNING], "accepted"),
        ("cannot serve", [], "accepted"),
        ("unverifiable", [], ""),
        ("unverifiable", [ERROR], ""),
        ("", [ERROR], ""),
    ],
)
def test_errors_are_compared_with_the_recorded_verdict(
    recorded: str, findings: list[tuple[str, str]], wrongly: str
) -> None:
    """An error contradicts a server that serves the model, and no error one that does not."""
    checked = Checked("case", tuple(findings), 0, recorded)
    assert checked.wrongly == wrongly
    assert (f"<- wrongly {wrongly}" in str(checked)) == bool(wrongly)


def test_another_onnx_package_does_not_write_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """The findings of ONNX models depend on its version,
    so the ledger is that of the pinned one.
    """
    monkeypatch.setattr(findings_ledger, "_installed", lambda _: "1.0.0")
    with pytest.raises(
        SystemExit, match=r"onnx: must be \d+\.\d+\.\d+ as in constraints.txt, got 1.0.0"
    ):
        findings_ledger.render()
