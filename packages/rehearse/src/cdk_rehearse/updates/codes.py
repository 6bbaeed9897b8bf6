"""The codes of the problems that a rehearsal reports, and the reasons for which AWS refuses a change.

``basis.json`` says of each what it is based on. A rule that is inferred is only a warning.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from constructs_triton_core.facts.failures import fix_of
from constructs_triton_core.findings import Severity

__all__ = ["CODES", "REFUSALS", "Basis", "Code", "Refusal", "fix_of_refusal", "refusal_of"]

Basis = Literal["documented", "observed", "inferred"]
"""A document of AWS states the rule, somebody saw it on AWS, or it is a conclusion."""


@dataclass(frozen=True)
class Code:
    """A kind of problem: its meaning, its rule's basis and source, and the usual fix, which may be empty."""

    meaning: str
    basis: Basis
    source: str
    fix: str
    severity: Severity


@dataclass(frozen=True)
class Refusal:
    """Why a change is refused: a pattern of the reason, its meaning, basis and source, and the fix.

    Without a fix, it is that of ``known_failure``, the ID of an entry in the catalogue of failures, or that
    of the code.
    """

    pattern: str
    meaning: str
    basis: Basis
    source: str
    fix: str = ""
    known_failure: str = ""


_FACTS = json.loads(Path(__file__).with_name("basis.json").read_text())
CODES = {
    code: Code(**{**each, "severity": Severity(each["severity"])}) for code, each in _FACTS["codes"].items()
}
"""Each code of a problem."""
REFUSALS = tuple(Refusal(**each) for each in _FACTS["refusals"])
"""The refusals of this simulation. Others are those of moto and of CloudFormation's resource schemas."""


def refusal_of(reason: str) -> Refusal | None:
    """Return the refusal that a reason is about; ``None`` if it is none of this simulation."""
    return next((each for each in REFUSALS if re.search(each.pattern, reason)), None)


def fix_of_refusal(refusal: Refusal | None) -> str:
    """Return how to avoid a refusal; empty if only the code says it."""
    if refusal is None:
        return ""
    return fix_of(refusal.known_failure) if refusal.known_failure else refusal.fix
