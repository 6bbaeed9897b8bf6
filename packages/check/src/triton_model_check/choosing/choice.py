"""Which findings options and settings leave out of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding
from constructs_triton_core.spelling import did_you_mean
from triton_model_check.checks.chapters import RULES
from triton_model_check.checks.report import Report

#: What a real server says is reported unless it is ignored by its code, because it was asked for.
_OF_A_SERVER = frozenset({"server-refused"})
Patterns = Sequence[tuple[str, frozenset[str]]]
"""Patterns of names, each with the codes that are ignored there."""


@dataclass(frozen=True)
class Choice:
    """The codes to report and to ignore; create one with :meth:`of`.

    Errors of the syntax are always reported, because nothing else of their file is checked. What a
    real server refuses is reported unless its code is ignored by name.
    """

    select: frozenset[str] = frozenset()
    ignore: frozenset[str] = frozenset()
    per_model: Patterns = ()
    per_file: Patterns = ()

    @classmethod
    def of(
        cls,
        select: Iterable[str] = (),
        ignore: Iterable[str] = (),
        per_model: Mapping[str, Sequence[str]] | None = None,
        per_file: Mapping[str, Sequence[str]] | None = None,
    ) -> Choice:
        """Return the choice of codes and groups.

        Args:
            select: What to report. Default: everything.
            ignore: What not to report.
            per_model: What not to report of models, by their names or by patterns such as
                ``"bert-*"``.
            per_file: What not to report of files, by patterns of their paths in the repository.

        Raises:
            InvalidValueError: there is no such code and no such group, or it cannot be ignored.
        """
        return cls(
            codes_of(select, "select"),
            _ignored_codes(ignore, "ignore"),
            _patterns(per_model or {}, "per-model-ignores"),
            _patterns(per_file or {}, "per-file-ignores"),
        )

    def apply(self, report: Report) -> Report:
        """Return the report with only what was chosen."""
        kept: list[Finding] = []
        ignored = [each for each in report.ignored if self._is_chosen(each)]
        for each in filter(self._is_chosen, report.findings):
            (ignored if self._ignores(each) else kept).append(each)
        return report.with_findings(kept, ignored)

    def _is_chosen(self, finding: Finding) -> bool:
        is_always = _is_syntax(finding.code) or finding.code in _OF_A_SERVER
        return not self.select or finding.code in self.select or is_always

    def _ignores(self, finding: Finding) -> bool:
        """Whether a code is ignored everywhere, or in the model or the file of a finding."""
        if finding.code in self.ignore:
            return True
        model = finding.path.partition("/")[0]
        return _matches(self.per_model, model, finding.code) or _matches(
            self.per_file, finding.path, finding.code
        )


def _matches(patterns: Patterns, name: str, code: str) -> bool:
    """Whether one of the patterns with this code fits a name."""
    return any(code in codes and fnmatchcase(name, pattern) for pattern, codes in patterns)


def _patterns(ignores: Mapping[str, Sequence[str]], keyword: str) -> Patterns:
    """Return each pattern with the codes that it ignores; ``keyword`` is for error messages."""
    return tuple(
        (pattern, _ignored_codes(codes, f'{keyword}["{pattern}"]'))
        for pattern, codes in ignores.items()
    )


def _ignored_codes(names: Iterable[str], keyword: str) -> frozenset[str]:
    """Return the codes to ignore, without those that cannot be ignored."""
    listed = list(names)
    for name in listed:
        if _is_syntax(name):
            raise InvalidValueError(
                f"{keyword}: errors of the syntax cannot be ignored, "
                f'got "{name}"; fix what it reports'
            )
    codes: set[str] = set()
    for name in listed:
        named = codes_of([name], keyword)
        # A group that has other codes too, such as "server", is not about what a server refused.
        codes |= named if named == _OF_A_SERVER else named - _OF_A_SERVER
    return frozenset(code for code in codes if not _is_syntax(code))


def _is_syntax(code: str) -> bool:
    return code in RULES and RULES[code].scope == "fault"


def codes_of(names: Iterable[str], keyword: str) -> frozenset[str]:
    """Return the codes of checks, of which a name is a code, a chapter or the beginning of codes.

    Raises:
        InvalidValueError: a name is none of these.
    """
    found: set[str] = set()
    for name in names:
        codes = {name} if name in RULES else group_of(name)
        if not codes:
            known = [*RULES, *(rule.group for rule in RULES.values())]
            hint = did_you_mean(
                name, known, "write a code that the check prints, or a chapter of the checks"
            )
            raise InvalidValueError(
                f'{keyword}: no check and no group has this name, got "{name}"; {hint}'
            )
        found |= codes
    return frozenset(found)


def group_of(name: str) -> set[str]:
    """Return the codes of a chapter of the documentation, and those that begin with the name."""
    prefix = f"{name.rstrip('-')}-"
    chapter = name.replace("-", "_")
    return {
        code for code, rule in RULES.items() if rule.group == chapter or code.startswith(prefix)
    }
