"""The corpora of models that others wrote: their tables, records and how they are compared."""

from __future__ import annotations

from typing import Any

import pytest
from foreign_models import contract_record, runtime_record
from foreign_models.contract_cases import contract_cases
from foreign_models.fit import misfit
from foreign_models.packages import foreign_files
from foreign_models.verdicts import (
    Comparison,
    Disagreement,
    LedgerLine,
    Said,
    Truth,
    disagreement,
    ledger,
)

CASES = contract_cases()
FILES = foreign_files()


def test_every_case_has_the_verdict_of_its_content() -> None:
    """The server was asked about each contract case as it is now, and about no other."""
    verdicts = contract_record.recorded()
    assert contract_record.outdated(CASES, verdicts) == []
    assert verdicts.keys() == {case.name for case in CASES}
    truths = [contract_record.truth_of(case.name, verdicts) for case in CASES]
    assert truths.count(Truth.VALID) >= 75
    assert len(truths) - truths.count(Truth.VALID) - truths.count(Truth.DOUBTFUL) >= 75


def test_every_file_has_the_verdicts_of_five_runtimes() -> None:
    """Each ONNX file of the packages has a verdict of each ONNX Runtime."""
    models = {file.name for file in FILES if file.served_by == "onnxruntime"}
    recorded = runtime_record.recorded()
    assert recorded.keys() == models
    assert all(len(verdicts) == 5 for verdicts in recorded.values())
    assert len(FILES) >= 60
    assert len({file.package for file in FILES}) >= 15


def test_every_line_of_the_ledger_is_about_a_model_and_has_a_reason() -> None:
    """A line of the ledger names a case or a file that exists, and says why."""
    names = {case.name for case in CASES} | {file.name for file in FILES}
    assert [line for line in ledger() if line.name not in names or not line.reason] == []


@pytest.mark.parametrize(
    ("truth", "verdict", "kind"),
    [
        (Truth.VALID, "loads", None),
        (Truth.VALID, "rejected", "valid refused"),
        (Truth.VALID, "cannot-be-served", "valid refused"),
        (Truth.VALID, "unknown", "unknown"),
        (Truth.REJECTED, "loads", "invalid green"),
        (Truth.REJECTED, "cannot-be-served", None),
        (Truth.CANNOT_BE_SERVED, "loads", "invalid green"),
        (Truth.CANNOT_BE_SERVED, "unknown", "unknown"),
        (Truth.DOUBTFUL, "rejected", None),
        (Truth.DOUBTFUL, "failed", "failed"),
    ],
)
def test_kinds_of_disagreement(truth: Truth, verdict: str, kind: str | None) -> None:
    """A model is refused wrongly, is called good wrongly, or is not known."""
    found = disagreement("m", "", truth, "", Said(verdict))
    assert (found and found.kind) == kind


def test_ledger_explains_only_its_own_option() -> None:
    """A line holds for its model, image and option; one that nothing needs is reported."""
    found = Disagreement("invalid green", "m", "24.10", "loads", "error")
    unknown = Disagreement("unknown", "n", "", "unknown", "error")
    of_never = LedgerLine("invalid green", "m", "24.10", "never", "not asked")
    unneeded = LedgerLine("valid refused", "n", "", "any", "strict")
    keys = frozenset({("m", "24.10"), ("n", "")})
    never = Comparison([found, unknown], keys, "never", [of_never, unneeded])
    auto = Comparison([found, unknown], keys, "auto", [of_never, unneeded])
    assert never.unexplained() == []
    assert auto.unexplained() == [found]
    assert never.unneeded() == [unneeded]


@pytest.mark.parametrize(
    ("output", "shape", "is_accepted"),
    [
        ({"dims": [-1, 6]}, [-1, 6], True),
        ({"dims": [-1, -1]}, [-1, 6], False),
        ({"dims": [1, 6]}, [-1, 6], False),
        ({"dims": [6]}, [-1, 6], False),
        ({"dims": [1], "reshape": {}}, [], True),
    ],
)
def test_outputs_must_be_those_of_the_model(
    output: dict[str, Any], shape: list[int], is_accepted: bool
) -> None:
    """The backend compares the dims of an output with the model exactly."""
    config = {"output": [{"name": "y", "data_type": "TYPE_FP32", **output}]}
    verdict = {"inputs": [], "outputs": [["y", "tensor(float)", shape]]}
    assert (misfit(config, verdict) is None) is is_accepted
