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
    code: Code(**{**each, "severity": Severity(each["severity"])})
    for code, each in _FACTS["codes"].items()
}
"""Each code of a problem."""
REFUSALS = tuple(Code(**each) for each in _FACTS["refusals"])
"""The refusals of this simulation.

Others are those of the services and of CloudFormation's resource schemas.
"""
PAID_BY_HOUR: tuple[str, ...] = tuple(_FACTS["paid by hour"])
"""Types of resources that cost money without being used."""


def entries() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each code with what the command ``explain`` prints for it."""
    for code, each in CODES.items():
        basis = f"{each.basis}: {each.source}"
        fix = each.fix or "the problem says what to change"
        facts = {"title": each.meaning, "severity": str(each.severity), "basis": basis, "fix": fix}
        reasons = REFUSALS if code == "rehearse-update-fails" else ()
        yield (
            code,
            facts | {"reasons": "\n".join(f"{a.meaning} {a.basis}: {a.source}" for a in reasons)},
        )


def has_wanted_refusal(reason: str) -> bool:
    """Return whether a reason, also beside others, is one that users ask for, as a protection."""
    return any(each.is_wanted and re.search(each.pattern, reason) for each in REFUSALS)


def refusal_of(reason: str) -> Code:
    """Return the refusal that a reason is about; by default one that AWS documents."""
    found = (each for each in REFUSALS if re.search(each.pattern, reason))
    return next(found, Code("", "documented", ""))
