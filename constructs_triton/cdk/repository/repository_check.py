"""How strictly a repository is checked at synth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from constructs_triton.errors import InvalidValueError
from constructs_triton.findings import Finding

__all__ = ["RepositoryCheck"]


@dataclass(frozen=True, slots=True)
class RepositoryCheck:
    """Whether a repository is checked, and which findings are known and accepted.

    Made by :meth:`on` or :meth:`off`. An acknowledged code is neither raised nor shown.
    """

    is_enabled: bool = True
    acknowledged: frozenset[str] = frozenset()

    @classmethod
    def on(cls, *, acknowledge: Iterable[str] = ()) -> RepositoryCheck:
        """Check everything; ``acknowledge`` names the codes of findings that are known and accepted.

        Raises ``InvalidValueError`` for a code that no check has.
        """
        codes = frozenset([acknowledge] if isinstance(acknowledge, str) else acknowledge)
        if codes:
            _refuse_unknown(codes)
        return cls(acknowledged=codes)

    @classmethod
    def off(cls) -> RepositoryCheck:
        """Check nothing: what is wrong with the models is found when the endpoint starts."""
        return cls(is_enabled=False)

    def keeps(self, finding: Finding) -> bool:
        """Whether the finding is to be raised or shown."""
        return self.is_enabled and finding.code not in self.acknowledged


def _refuse_unknown(codes: frozenset[str]) -> None:
    from constructs_triton.model_config.check_run import all_rules  # noqa: PLC0415 - only to refuse a typo
    from constructs_triton.spelling import did_you_mean  # noqa: PLC0415 - likewise

    for code in sorted(codes - all_rules().keys()):
        hint = did_you_mean(code, all_rules(), "see the list of checks")
        raise InvalidValueError(f'acknowledge: no check has this code, got "{code}"; {hint}')
