"""Checks a repository for the place where its models will run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from constructs_triton_core.findings import Finding
from constructs_triton_core.spelling import quoted
from triton_model_check.checks.report import Report
from triton_model_check.choosing.settings import OPTIONS, TYPES, Settings
from triton_model_check.cli.tensor_options import called_models
from triton_model_check.facts.image_tags import flavor_of, release_of
from triton_model_check.model_config.server_answer import ServerAnswer
from triton_model_check.model_config.target import Platform, Target
from triton_model_check.model_repository.kept.kept_repository import KeptRepository
from triton_model_check.model_repository.repository import ModelRepository

__all__ = [
    "Checked",
    "add_target_arguments",
    "check_for_target",
    "place_files",
    "target_of",
    "without_imports",
]

_MISSING_IMPORT = "python-import-missing"
_DERIVED = "SageMaker: multi-model for several models that do not need each other, else single"


class Checked(NamedTuple):
    """A report, the target that it is for, and the default model of each single-model endpoint.

    ``target`` is ``None`` if the layout of the folder fits none. ``models`` are those that the user
    named; none means the whole repository, for which an endpoint or a server is started. ``path``
    is the folder that the user named; the report may be of a copy with Python environments.
    ``has_several`` is whether the repository has several models that no other one calls; ``None``
    if the target does not depend on it.
    """

    report: Report
    target: Target | None
    default_models: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    path: Path | None = None
    has_several: bool | None = None

    @property
    def thing(self) -> str:
        """What the verdict is on, in words: ``it``, or the named models."""
        if not self.models:
            return "it"
        return f"the model{'s' if len(self.models) > 1 else ''} {quoted(self.models)}"

    @property
    def where(self) -> str:
        """The target in words, such as ``on a server``."""
        names = quoted(self.default_models)
        if self.target is None or (self.models and self.target.is_sagemaker):
            return ""
        if len(self.default_models) > 1:
            return f" on SageMaker single-model endpoints, one for each of {names}"
        return f" {self.target.place}" + (f" of {names}" if self.default_models else "")

    @property
    def subject(self) -> str:
        """The server in words, such as ``Triton 26.08 on a server``."""
        version = self.target and self.target.image_version
        return f"Triton {version}{self.where}" if version else f"Triton{self.where}"


def add_target_arguments(parser: argparse.ArgumentParser, default: Platform | None) -> None:
    """Declare where the models run; ``default`` is ``None`` for the type of
    SageMaker endpoint that fits.
    """
    parser.set_defaults(default_target=default)
    for name, option in OPTIONS.items():
        if "help" in option:
            text = option["help"].format(default=default or _DERIVED)
            more = {"action": "append"} if name == "load-model" else {"type": TYPES.get(name)}
            parser.add_argument(f"--{name}", metavar=option["metavar"], help=text, **more)


def check_for_target(
    path: Path,
    arguments: argparse.Namespace,
    settings: Settings,
    models: Collection[str] = (),
    answers: Sequence[ServerAnswer] = (),
    *,
    is_saved: bool = True,
) -> Checked:
    """Check the models as they are packed, with the environments of ``triton-models.toml``.

    Args:
        path: The repository.
        arguments: What the command was given.
        settings: What the project has decided.
        models: The models that the user named. Default: the repository as a whole.
        answers: What a real server says of the models. Default: none was asked.
        is_saved: Whether the files are those on disk. Otherwise, an editor has newer ones of the
            named models: only these are checked, what is found is not kept, and no environment is
            placed beside them.
    """
    calls = called_models(arguments)
    repository: ModelRepository
    if is_saved:
        repository = KeptRepository.from_directory(path, calls=calls)
        placed, problem = place_files(repository, local_files=not arguments.no_files)
    else:
        from triton_model_check.artifacts.environments.placement import without_environments

        repository = ModelRepository.from_directory(path, calls=calls)
        placed = without_environments(repository)
        problem = "the files are not saved"
    only = () if is_saved else models
    checked = _check_repository(placed, arguments, settings, models, answers, only=only)
    report = without_imports(checked.report, repository, problem)
    return checked._replace(report=report, models=tuple(sorted(models)))


def place_files(repository: ModelRepository, *, local_files: bool) -> tuple[ModelRepository, str]:
    """Return the repository with its shared files and environments, or why it is without the
    latter, else ``""``.
    """
    if not local_files or repository.description is None:
        return repository, ""
    from triton_model_check.artifacts.environments.placement import (
        as_packed,
        without_environments,
    )
    from triton_model_check.artifacts.environments.python_environment import (
        EnvironmentNotBuiltError,
    )

    try:
        return as_packed(repository), ""
    except EnvironmentNotBuiltError as error:
        return without_environments(repository), str(error)


def without_imports(report: Report, repository: ModelRepository, problem: str) -> Report:
    """Return what was found without missing imports of models whose environment
    was not built here.
    """
    if not problem:
        return report
    from triton_model_check.artifacts.environments.placement import find_environments

    models = find_environments(repository)
    description = repository.description
    shared = () if description is None else tuple(description.shared_files)
    kept = [
        each
        for each in report.findings
        if each.code != _MISSING_IMPORT
        or not (each.path.partition("/")[0] in models or each.path.startswith(shared))
    ]
    report = report.with_findings(kept, report.ignored)
    open_lines = [f"{name}: environment not checked: {problem}" for name in sorted(models)]
    return replace(report, not_checked=(*report.not_checked, *open_lines))


def _check_repository(
    repository: ModelRepository,
    arguments: argparse.Namespace,
    settings: Settings,
    models: Collection[str],
    answers: Sequence[ServerAnswer],
    *,
    only: Collection[str] = (),
) -> Checked:
    """Check a repository for the target of the arguments, or the one that it fits."""
    target, is_derived = target_of(arguments, settings)
    if answers:
        target = replace(target, answers=tuple(answers))
    check = partial(repository.check, is_packed=False, is_archive=arguments.archive)
    if only:
        check = partial(check, only=only)
    if is_derived and models:
        return _check_named(repository, check, target, models)
    if is_derived:
        return _check_derived(repository, check, target, is_archive=arguments.archive)
    is_named = target.platform == "sagemaker" and target.default_model is not None
    return Checked(check(target), target, (str(target.default_model),) if is_named else ())


def target_of(arguments: argparse.Namespace, settings: Settings) -> tuple[Target, bool]:
    """Return the target of the arguments and the settings,
    and whether the type of its endpoint is derived.
    """
    platform = arguments.target or settings.target
    if platform is None and arguments.default_model is not None:
        platform = "sagemaker"
    platform = platform or arguments.default_target
    return Target.named(platform or "sagemaker", **_known(arguments, settings)), platform is None


def _known(arguments: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    """What the arguments, or else the settings, say of the target; ``None`` is unknown."""
    known: dict[str, Any] = {
        "local_files": not arguments.no_files,
        "default_model": arguments.default_model,
    }
    for option, each in OPTIONS.items():
        name = option.replace("-", "_")
        if "field" in each:
            given = getattr(arguments, name)
            known[each["field"]] = getattr(settings, name) if given is None else given
    if known["image_version"] is not None:
        tag = known["image_version"]
        known |= {"image_version": release_of(tag), "image_flavor": flavor_of(tag)}
    for field in ("backends", "load_models"):
        known[field] = tuple(known[field] or ())
    known["onnx_runtime"] = known["onnx_runtime"] or "auto"
    return known


def _check_derived(
    repository: ModelRepository, check: Callable[..., Report], target: Target, *, is_archive: bool
) -> Checked:
    """Check for the SageMaker endpoint that the folder fits.

    Several models that do not need each other fit a multi-model endpoint, unless only an endpoint
    for each of them can serve them all.
    """
    names = repository.top_level_models()
    server = replace(target, platform="server")
    multi_model = replace(target, platform="sagemaker-multi-model")
    if repository.root_model is not None and is_archive:
        return Checked(check(multi_model), multi_model)

    # Ensembles that are steps of each other are on top of none, so no endpoint loads them.
    are_in_a_circle = len(names) == 1 and len(repository.closure(names[0])) < len(repository.models)
    is_wrong_layout = repository.root_model is not None or not names or are_in_a_circle
    if is_wrong_layout:
        return Checked(check(server), None)
    if len(names) == 1:
        report = check(replace(target, default_model=names[0]))
        return Checked(report, target, (names[0],), has_several=False)

    together = Checked(check(multi_model), multi_model, has_several=True)
    errors = together.report.errors
    if not errors:
        return together
    errors_anywhere = {(error.code, error.path) for error in check(server).errors}
    if all((error.code, error.path) in errors_anywhere for error in errors):
        # other endpoints have these errors too; to check each of a thousand takes minutes
        return together
    alone = _check_each(repository, check, target, names)
    return alone if len(alone.report.errors) < len(errors) else together


def _check_named(
    repository: ModelRepository,
    check: Callable[..., Report],
    target: Target,
    models: Collection[str],
) -> Checked:
    """Check the endpoints that need one of the named models, each for a model of its own.

    The other models of the folder may be of other endpoints, so they decide nothing here.
    """
    users = [
        name
        for name in repository.top_level_models()
        if not set(models).isdisjoint(repository.closure(name))
    ]
    # Models in a circle are on top of none, and their rules report them.
    return _check_each(repository, check, target, users or sorted(models))


def _check_each(
    repository: ModelRepository, check: Callable[..., Report], target: Target, names: Sequence[str]
) -> Checked:
    """Check each model with those that it needs for an endpoint of its own."""
    is_kept: dict[Finding, bool] = {}  # False if comments or settings ignore it
    not_checked: list[str] = []
    for name in names:
        report = check(replace(target, default_model=name))
        own_folders = {".", *repository.closure(name)}
        for finding in report.findings:
            if finding.path.partition("/")[0] in own_folders:
                is_kept[finding] = True
        for finding in report.ignored:
            if finding.path.partition("/")[0] in own_folders:
                is_kept[finding] = False
        not_checked += report.not_checked

    merged = Report(
        str(repository.path),
        tuple(finding for finding, kept in is_kept.items() if kept),
        tuple(dict.fromkeys(not_checked)),
        tuple(finding for finding, kept in is_kept.items() if not kept),
    )
    return Checked(merged, target, tuple(names))
