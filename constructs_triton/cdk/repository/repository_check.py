"""Whether a repository is checked at synthesis, and which findings are accepted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding
from constructs_triton_core.spelling import did_you_mean

__all__ = ["RepositoryCheck", "kept_findings"]


@dataclass(frozen=True, slots=True)
class RepositoryCheck:
    """Whether a repository is checked, and which findings are accepted.

    Create one with :meth:`on` or :meth:`off`.

    Args:
        is_enabled: Whether anything is checked.
        acknowledged: Codes of findings that are neither raised nor shown.
    """

    is_enabled: bool = True
    acknowledged: frozenset[str] = frozenset()

    @classmethod
    def on(cls, *, acknowledge: Iterable[str] = ()) -> RepositoryCheck:
        """Check everything, except for findings that are acknowledged.

        Args:
            acknowledge: Codes of findings, as ``constructs-triton check`` prints them.

        Raises:
            InvalidValueError: an unknown code.
        """
        codes = frozenset([acknowledge] if isinstance(acknowledge, str) else acknowledge)
        if codes:
            _refuse_unknown(codes)
        return cls(acknowledged=codes)

    @classmethod
    def off(cls) -> RepositoryCheck:
        """Check nothing. Mistakes in the models are found when the endpoint starts."""
        return cls(is_enabled=False)


def kept_findings(check: RepositoryCheck, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that are raised or shown."""
    return [each for each in findings if check.is_enabled and each.code not in check.acknowledged]


def _refuse_unknown(codes: frozenset[str]) -> None:
    from triton_model_check.model_config.check_run import RULES

    for code in sorted(codes - RULES.keys()):
        hint = did_you_mean(code, RULES, "write a code that `constructs-triton check` prints")
        raise InvalidValueError(f'acknowledge: no check has this code, got "{code}"; {hint}')
