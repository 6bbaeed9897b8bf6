"""Why the problems of a rule have no fix: ``reasons.json`` has each reason with the codes of its rules."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources


def reason_against_fix(code: str) -> str | None:
    """Return why no edit can be proposed for a rule, or ``None`` if one can."""
    return _reasons().get(code)


@cache
def _reasons() -> dict[str, str]:
    content = resources.files(__package__).joinpath("reasons.json").read_text(encoding="utf-8")
    reasons: dict[str, list[str]] = json.loads(content)
    return {code: reason for reason, codes in reasons.items() for code in codes}
