"""The codes of problems and the reasons of refusals, with what each is based on."""

from __future__ import annotations

import re
from pathlib import Path

from shared_endpoint import shared
from small_assembly import rehearsal

from cdk_rehearse.updates.codes import CODES, REFUSALS, entries
from constructs_triton_core.facts.failures import fix_of
from constructs_triton_core.findings import Severity

SOURCES = Path(__file__).parents[1] / "src" / "cdk_rehearse"


def test_page_has_each_code_and_each_refusal_with_its_basis() -> None:
    """The tables of the page are those of the code."""
    page = (Path(__file__).parents[3] / "docs" / "reference" / "rehearsal_problems.md").read_text()
    lines = page.splitlines()
    assert [line for line in lines if line.startswith("| `")] == [
        f"| `{name}` | {code.meaning} | {code.severity} | {code.basis} |"
        for name, code in CODES.items()
    ]
    for refusal in REFUSALS:
        assert f"| {refusal.meaning} | {refusal.basis} |" in lines


def test_explain_has_the_source_of_each_code_and_refusal() -> None:
    """What the page leaves out is what ``explain`` prints."""
    printed = dict(entries())
    for name, code in CODES.items():
        assert code.source in printed[name]["basis"]
    for refusal in REFUSALS:
        assert refusal.source in printed["rehearse-update-fails"]["reasons"]


def test_an_inferred_rule_is_a_warning() -> None:
    """No code whose rule is a conclusion is an error,
    and each rule has a known basis and a source.
    """
    for rule in (*CODES.values(), *REFUSALS):
        assert rule.basis in ("documented", "observed", "inferred")
        assert rule.source

    inferred = [code for code in CODES.values() if code.basis == "inferred"]
    assert {code.severity for code in inferred} == {Severity.WARNING}


def test_each_refusal_is_one_of_the_simulation() -> None:
    """The first words of each pattern are in a message of the code,
    and a fix is that of the diagnosis.
    """
    code = " ".join(re.sub(r'"\s*f?"', "", path.read_text()) for path in SOURCES.rglob("*.py"))
    for refusal in REFUSALS:
        words = re.findall(r"[A-Za-z ]{9,}", refusal.pattern)
        assert any(word.strip() in code for word in words), refusal.pattern

    (scaled,) = [refusal for refusal in REFUSALS if refusal.fix and refusal.rollback_fix]
    assert scaled.fix == fix_of("scaled-variant-update")


def test_update_that_only_an_inferred_rule_refuses_is_a_warning(tmp_path: Path) -> None:
    """No document says that SageMaker refuses another instance type under components."""
    new = shared()
    new["Config"]["Properties"]["ProductionVariants"][0]["InstanceType"] = "ml.g5.24xlarge"
    found = rehearsal(tmp_path, shared(), new)
    assert found.status == {"S": "UPDATE_ROLLBACK_COMPLETE"}
    assert found.errors == []
    (problem,) = found.problems
    assert problem.code == "rehearse-update-fails"
    assert "no document of AWS states this" in problem.message
    assert "create a second endpoint" in problem.hint
