"""Runs every rule on every model of a repository."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from constructs_triton_core.findings import Finding, Fix, Place, Severity
from constructs_triton_core.spelling import limited_suggestions
from triton_model_check.checks.chapters import RULES, rules_for
from triton_model_check.checks.files import POINTER_CODE, pointers_of
from triton_model_check.checks.image_content import not_known_of_image
from triton_model_check.checks.model_under_check import (
    ENVIRONMENT_PARAMETER,
    ModelUnderCheck,
    RepositoryContext,
)
from triton_model_check.checks.report import Report, lines_of_open_findings
from triton_model_check.checks.rules import IGNORE_MARK, Problem, Rule
from triton_model_check.model_config.target import Target

if TYPE_CHECKING:
    from triton_model_check.checks.comments import IgnoreComment
    from triton_model_check.checks.other_python import Asked
    from triton_model_check.model_config.locations import Range

__all__ = ["RULES", "RepositoryContext"]

# People fix the first ones, and a generated file can have a hundred thousand.
_MOST_PROBLEMS = 100
_MORE = Problem(
    f"there are more errors of this check, of which the first {_MOST_PROBLEMS} are listed",
    hint="fix those that are listed, and check again",
)
_LONGEST_MESSAGE = 1000
# Models that are worth copies of this process.
_FEWEST_IN_COPIES = 100


class _CheckedModel(NamedTuple):
    """What the rules find in a model, and what a whole report asks about it."""

    findings: list[Finding]
    not_checked: tuple[str, ...]
    comments: tuple[IgnoreComment, ...]
    asked: tuple[Asked, ...]
    pointers: tuple[str, ...]


def run_checks(
    context: RepositoryContext,
    repository: str,
    only: Collection[str] = (),
    *,
    in_copies: bool = False,
) -> Report:
    """Return all findings of a repository, sorted by place.

    An error in a model that the endpoint does not load becomes a warning: the endpoint starts
    without it.

    Args:
        context: The repository and its target.
        repository: Path of the repository.
        only: Names of the models to check. Default: all.
        in_copies: Whether the models of a large repository are checked in copies of this process,
            one for each core.
    """
    findings = list(_repository_findings(context))
    models = [model for model in context.models.values() if not only or model.name in only]
    checked = _check_all(models, in_copies=in_copies)

    comments: list[IgnoreComment] = []
    asked: list[Asked] = []
    pointers: set[str] = set()
    for model, result in zip(models, checked, strict=True):
        if model.name in context.loaded:
            findings += result.findings
        else:
            findings += [_as_not_loaded(finding, context) for finding in result.findings]
        model.not_checked = result.not_checked
        comments += result.comments
        asked += result.asked
        pointers.update(result.pointers)
    findings += _syntax_findings(context, asked)
    if pointers:
        findings = _with_one_of_each(pointers, findings)

    ignored: list[Finding] = []
    if comments:  # they count for findings without a line too, which then need a place
        from triton_model_check.model.places import with_places

        placed = with_places(findings, repository)
        findings, ignored = _with_comments(comments, placed, context)

    findings.sort(key=_order)
    kept = tuple(dict.fromkeys(findings))
    not_checked: list[str] = []
    for name in sorted(context.loaded & context.models.keys()):
        not_checked += context.models[name].not_checked
    not_checked += lines_of_open_findings(kept)
    return Report(repository, kept, tuple(not_checked), tuple(dict.fromkeys(ignored)))


def _order(finding: Finding) -> tuple[str, int, int, str]:
    """Sort findings by place."""
    return finding.path, finding.line or 0, finding.column or 0, finding.code


def _with_comments(
    comments: Sequence[IgnoreComment], findings: Iterable[Finding], context: RepositoryContext
) -> tuple[list[Finding], list[Finding]]:
    """Return the findings with those about comments, and those that comments ignore."""
    from triton_model_check.checks.comments import apply_comments

    kept, ignored, used = apply_comments(comments, findings, _expected_codes(context))
    for rule in rules_for(("comment",), frozenset(), context.target):
        problems = chain.from_iterable(map(rule.function, used))
        with limited_suggestions():
            listed = list(islice(problems, _MOST_PROBLEMS))
        for problem in listed:
            kept.append(_finding(rule, problem, str(problem.path), context.target))
    return kept, ignored


def _expected_codes(context: RepositoryContext) -> Collection[str]:
    """The codes of which a comment must ignore something.

    None when packing is checked, for one endpoint at a time. Whether a rule about the machine finds
    something depends on what is known about it.
    """
    if context.is_packed:
        return ()
    target = context.target
    return {
        code
        for code, rule in RULES.items()
        if rule.group not in ("server", "shared_memory", "real_server", "target", "target_size")
        and (target.local_files or not rule.needs_files)
        and rule.holds_for(target)
    }


def _with_one_of_each(pointers: Collection[str], findings: Iterable[Finding]) -> list[Finding]:
    """Return what was found without what the rules say of the text of a pointer, which would
    mislead.

    Triton rejects a pointer if it rejects its text.
    """
    kept: list[Finding] = []
    rejected: set[str] = set()
    for finding in findings:
        if finding.path not in pointers or finding.code == POINTER_CODE:
            kept.append(finding)
        elif finding.rejects:
            rejected.add(finding.path)
    return [
        replace(finding, rejects=finding.rejects or finding.path in rejected) for finding in kept
    ]


def _repository_findings(context: RepositoryContext) -> Iterator[Finding]:
    for rule in rules_for(context.scopes, frozenset(), context.target):
        for problem in _limited(rule.function(context)):
            yield _finding(rule, problem, problem.path or ".", context.target)


def _check_all(models: Sequence[ModelUnderCheck], *, in_copies: bool) -> list[_CheckedModel]:
    """Check models, in the order in which they are given."""
    # A copy costs about as much as the check of ten models.
    if not in_copies or len(models) < _FEWEST_IN_COPIES:
        return [_check_model(model) for model in models]
    from triton_model_check.checks.side_by_side import check_all

    return check_all(models, _check_model)


def _check_model(model: ModelUnderCheck) -> _CheckedModel:
    """Return what is wrong with a model, and what was not checked."""
    with limited_suggestions():
        findings = list(_model_findings(model))
    comments = tuple(_comments_of(model))
    not_checked = (
        *_still_open(model),
        *_imports_not_checked(model),
        *_environment_not_checked(model),
        *_calls_not_checked(model),
        *_arguments_not_checked(model),
        *not_known_of_image(model),
    )
    asked: tuple[Asked, ...] = ()
    if model.python_sources:
        from triton_model_check.checks.other_python import files_to_ask_about

        asked = tuple(files_to_ask_about(model))
    model.forget_sources()
    return _CheckedModel(findings, not_checked, comments, asked, tuple(pointers_of(model)))


def _still_open(model: ModelUnderCheck) -> tuple[str, ...]:
    """Return what is not known of the model files, after what a real server said of the model."""
    if not model.target.answers:
        return model.not_checked
    from triton_model_check.checks.real_server import is_looked_at, open_lines

    lines = open_lines(model)
    if is_looked_at(model):
        return lines
    return (*model.not_checked, *lines)


def _syntax_findings(context: RepositoryContext, asked: Sequence[Asked]) -> Iterator[Finding]:
    """Yield what another program finds in the syntax of Python models."""
    if not asked:
        return
    from triton_model_check.checks.other_python import as_problems
    from triton_model_check.model.ruff_parser import Question, ask_ruff

    answers = as_problems(asked, ask_ruff([Question(file.content, file.python) for file in asked]))
    for name, reason in answers.not_checked:
        context.models[name].not_checked += (reason,)
    for name, problem in answers.problems:
        found = _finding(RULES["python-syntax"], problem, problem.path or ".", context.target)
        yield found if name in context.loaded else _as_not_loaded(found, context)


def _comments_of(model: ModelUnderCheck) -> Iterable[IgnoreComment]:
    # Most models have no such comment, and need no module that reads it.
    mark = IGNORE_MARK.encode()
    is_in_config = IGNORE_MARK in (model.folder.config_text or "")
    if not is_in_config and not any(mark in source.content for source in model.python_sources):
        return ()
    from triton_model_check.checks.comments import comments_of

    return comments_of(model)


def _imports_not_checked(model: ModelUnderCheck) -> tuple[str, ...]:
    if not model.python_sources:
        return ()
    from triton_model_check.checks.python_imports import imports_not_checked

    return imports_not_checked(model)


def _environment_not_checked(model: ModelUnderCheck) -> tuple[str, ...]:
    if ENVIRONMENT_PARAMETER not in model.config_parameters:
        return ()
    from triton_model_check.checks.python_environment import environment_not_checked

    return environment_not_checked(model)


def _calls_not_checked(model: ModelUnderCheck) -> tuple[str, ...]:
    if model.name not in model.context.calls:
        return ()
    from triton_model_check.checks.called_models import calls_not_checked

    return calls_not_checked(model)


def _arguments_not_checked(model: ModelUnderCheck) -> tuple[str, ...]:
    if model.backend != "vllm":
        return ()
    from triton_model_check.checks.vllm import arguments_not_checked

    return arguments_not_checked(model)


def _model_findings(model: ModelUnderCheck) -> Iterator[Finding]:
    for rule in rules_for(model.scopes, model.fields, model.target):
        for problem in _limited(rule.function(model)):
            yield _finding_of(model, rule, problem)


def _limited(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the first problems of a rule; the last one says that there are more."""
    for number, problem in enumerate(problems):
        if number == _MOST_PROBLEMS:
            yield _MORE
            return
        yield problem


def _finding_of(model: ModelUnderCheck, rule: Rule, problem: Problem) -> Finding:
    """Return the finding of a problem in a model, with its place and fix."""
    folder = model.folder
    if problem.path is None:
        path = model.config_place
        place = folder.locate(problem.field)
    else:
        path = problem.path
        place = None
    fix = problem.fix.fix(folder, path, problem.field) if problem.fix else None
    return _finding(rule, problem, path, model.target, place=place, fix=fix)


def _finding(
    rule: Rule,
    problem: Problem,
    path: str,
    target: Target,
    *,
    place: Range | None = None,
    fix: Fix | None = None,
) -> Finding:
    """Return the finding that a rule reports for a problem."""
    line, column = place[:2] if place else (problem.line, problem.column)
    return Finding(
        rule.code,
        rule.severity,
        path,
        _shortened(problem.message),
        _shortened(rule.hint_for(problem, target)),
        rule.source,
        line,
        column,
        rule.rejects or problem.rejects,
        Place(path, *place) if place else None,  # with_places gives one to those that have none
        fix,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"


def _as_not_loaded(finding: Finding, context: RepositoryContext) -> Finding:
    if finding.severity is Severity.WARNING:
        return finding
    place = "this endpoint" if context.target.is_sagemaker else "the server"
    message = f"{finding.message} ({place} does not load it)"
    return replace(finding, severity=Severity.WARNING, message=message, rejects=False)
