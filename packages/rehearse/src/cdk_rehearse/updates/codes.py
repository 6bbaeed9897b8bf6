"""The codes of the problems that a rehearsal reports, and the reasons for which AWS refuses a
change.

``basis.json`` says of each what it is based on. A rule that is inferred is only a warning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from constructs_triton_core.findings import Severity

__all__ = ["CODES", "REFUSALS", "Code", "has_wanted_refusal", "refusal_of"]


@dataclass(frozen=True)
class Code:
    """A kind of problem, or of a refusal, which has the pattern of its reason.

    ``basis``: a document of AWS states the rule, it was observed on AWS, or it is a conclusion. An
    empty fix depends on the update; that of a refusal is then that of the problem's code.
    """

    meaning: str
    basis: Literal["documented", "observed", "inferred"]
    source: str
    severity: Severity = Severity.ERROR
    fix: str = ""
    pattern: str = ""
    is_wanted: bool = False
    rollback_fix: str = ""


_FACTS = json.loads(Path(__file__).with_name("basis.json").read_text())
CODES = {
    code: Code(**{**facts, "severity": Severity(facts["severity"])})
    for code, facts in _FACTS["codes"].items()
}
"""Each code of a problem."""
REFUSALS = tuple(Code(**facts) for facts in _FACTS["refusals"])
"""The refusals of this simulation.

Others are those of the services and of CloudFormation's resource schemas.
"""
PAID_BY_HOUR: tuple[str, ...] = tuple(_FACTS["paid by hour"])
"""Types of resources that cost money without being used."""


def entries() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each code with what the command ``explain`` prints for it."""
    for code, known in CODES.items():
        refusals = REFUSALS if code == "rehearse-update-fails" else ()
        reasons = [f"{refusal.meaning} {refusal.basis}: {refusal.source}" for refusal in refusals]
        yield (
            code,
            {
                "title": known.meaning,
                "severity": str(known.severity),
                "basis": f"{known.basis}: {known.source}",
                "fix": known.fix or "the problem says what to change",
                "reasons": "\n".join(reasons),
            },
        )


def has_wanted_refusal(reason: str) -> bool:
    """Return whether a reason, also beside others, is one that users ask for, as a protection."""
    return any(refusal.is_wanted and re.search(refusal.pattern, reason) for refusal in REFUSALS)


def refusal_of(reason: str) -> Code:
    """Return the refusal that a reason is about; by default one that AWS documents."""
    for refusal in REFUSALS:
        if re.search(refusal.pattern, reason):
            return refusal
    return Code("", "documented", "")
