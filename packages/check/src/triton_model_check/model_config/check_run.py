"""Runs every rule on every model of a repository."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import islice

from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.spelling import limited_suggestions
from triton_model_check.model_config.checks import RULES
from triton_model_check.model_config.checks.packing.files import POINTER_CODE, pointers_of
from triton_model_check.model_config.model_under_check import ModelUnderCheck, RepositoryContext
from triton_model_check.model_config.report import Report
from triton_model_check.model_config.rules import Problem, Rule
from triton_model_check.model_config.target import Target

__all__ = ["RULES", "RepositoryContext"]

# People fix the first ones, and a generated file can have a hundred thousand.
_MOST_PROBLEMS = 100
_MORE = Problem(
    f"there are more errors of this check, of which the first {_MOST_PROBLEMS} are listed",
    hint="fix those that are listed, and check again",
)
_LONGEST_MESSAGE = 1000


@cache
def _rules_for(scopes: tuple[str, ...], fields: frozenset[str], target: Target) -> tuple[Rule, ...]:
    """The rules for a model of these scopes with these fields; a repository has few combinations."""
    return tuple(
        rule
        for rule in RULES.values()
        if rule.scope in scopes
        and (not rule.when or not fields.isdisjoint(rule.when))
        and rule.holds_for(target)
    )


def run_checks(context: RepositoryContext, repository: str) -> Report:
    """Return all findings of a repository, sorted by place.

    An error in a model that the endpoint does not load becomes a warning: the endpoint starts without it.
    """
    findings = list(_repository_findings(context))
    for model in context.models.values():
        is_loaded = model.name in context.loaded
        found = _limited_model_findings(model)
        findings += found if is_loaded else [_as_not_loaded(each, context) for each in found]
    pointers = {path for model in context.models.values() for path in pointers_of(model)}
    if pointers:
        findings = _with_one_of_each(pointers, findings)
    findings.sort(key=lambda finding: (finding.path, finding.line or 0, finding.column or 0, finding.code))
    loaded = sorted(context.loaded & context.models.keys())
    not_checked = tuple(line for name in loaded for line in context.models[name].not_checked)
    return Report(repository, tuple(dict.fromkeys(findings)), not_checked)


def _with_one_of_each(pointers: Collection[str], findings: Iterable[Finding]) -> list[Finding]:
    """Return what was found without what the rules say of the text of a pointer, which would mislead.

    Triton rejects a pointer if it rejects its text.
    """
    kept, rejected = [], set()
    for each in findings:
        if each.path not in pointers or each.code == POINTER_CODE:
            kept.append(each)
        elif each.rejects:
            rejected.add(each.path)
    return [replace(each, rejects=each.rejects or each.path in rejected) for each in kept]


def _repository_findings(context: RepositoryContext) -> Iterator[Finding]:
    for rule in _rules_for(("repository",), frozenset(), context.target):
        problems = list(islice(rule.function(context), _MOST_PROBLEMS + 1))
        problems[_MOST_PROBLEMS:] = [_MORE] * (len(problems) > _MOST_PROBLEMS)
        for problem in problems:
            yield _finding(rule, problem, problem.path or ".", None, context.target)


def _limited_model_findings(model: ModelUnderCheck) -> list[Finding]:
    with limited_suggestions():
        found = list(_model_findings(model))
    model.forget_sources()
    return found


def _model_findings(model: ModelUnderCheck) -> Iterator[Finding]:
    for rule in _rules_for(model.scopes, model.fields, model.target):
        for number, problem in enumerate(rule.function(model)):
            if number == _MOST_PROBLEMS:
                yield _finding_of(model, rule, _MORE)
                break
            yield _finding_of(model, rule, problem)


def _finding_of(model: ModelUnderCheck, rule: Rule, problem: Problem) -> Finding:
    if problem.path is not None:
        return _finding(rule, problem, problem.path, None, model.target)
    return _finding(rule, problem, model.config_place, model.folder.locate(problem.field), model.target)


def _finding(
    rule: Rule, problem: Problem, path: str, place: tuple[int, int] | None, target: Target
) -> Finding:
    line, column = place or (problem.line, problem.column)
    message, hint = _shortened(problem.message), _shortened(rule.hint_for(problem, target))
    return Finding(rule.code, rule.severity, path, message, hint, rule.source, line, column, rule.rejects)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"


def _as_not_loaded(finding: Finding, context: RepositoryContext) -> Finding:
    if finding.severity is Severity.WARNING:
        return finding
    place = "this endpoint" if context.target.is_sagemaker else "the server"
    message = f"{finding.message} ({place} does not load it)"
    return replace(finding, severity=Severity.WARNING, message=message, rejects=False)
