"""Asks every rule about every model of a repository, and says what the server would say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from constructs_triton.findings import Finding, Severity
from constructs_triton.model_config.model_under_check import ModelUnderCheck, RepositoryContext
from constructs_triton.model_config.report import Report
from constructs_triton.model_config.rules import RULES, Rule

__all__ = ["all_rules", "judge"]


@cache
def all_rules() -> dict[str, Rule]:
    """Every rule by its code."""
    from constructs_triton.model_config import checks  # noqa: PLC0415 - importing registers; rules import us

    assert checks.__all__
    return RULES


@cache
def _concerning(scopes: tuple[str, ...], fields: frozenset[str], local_files: bool) -> tuple[Rule, ...]:
    """The rules for a model of these kinds with these fields: a repository has few different ones."""
    return tuple(
        rule
        for rule in all_rules().values()
        if rule.scope in scopes
        and (local_files or not rule.needs_files)
        and (not rule.when or not fields.isdisjoint(rule.when))
    )


def judge(around: RepositoryContext, repository: str) -> Report:
    """All findings of a repository, sorted by place, with the server's verdict.

    A model that the endpoint does not load cannot keep it from starting: its errors become warnings.
    """
    findings: list[Finding] = []
    rejected = False
    for rule, finding in _repository_findings(around):
        findings.append(finding)
        rejected = rejected or rule.refuses
    for subject in around.subjects.values():
        is_loaded = subject.name in around.loaded
        for rule, finding in _model_findings(subject):
            rejected = rejected or (rule.refuses and is_loaded)
            findings.append(finding if is_loaded else _as_not_loaded(finding))
    findings.sort(key=lambda finding: (finding.path, finding.line or 0, finding.column or 0, finding.code))
    return Report(repository, tuple(findings), "rejected" if rejected else "loads")


def _repository_findings(around: RepositoryContext) -> Iterator[tuple[Rule, Finding]]:
    for rule in _concerning(("repository",), frozenset(), around.target.local_files):
        for finding in rule.repository_findings(around):
            yield rule, finding


def _model_findings(subject: ModelUnderCheck) -> Iterator[tuple[Rule, Finding]]:
    for rule in _concerning(subject.scopes, subject.fields, subject.target.local_files):
        for problem in rule.function(subject):
            yield rule, rule.finding(subject, problem)


def _as_not_loaded(finding: Finding) -> Finding:
    if finding.severity is Severity.WARNING:
        return finding
    return replace(
        finding, severity=Severity.WARNING, message=f"{finding.message} (this endpoint does not load it)"
    )
