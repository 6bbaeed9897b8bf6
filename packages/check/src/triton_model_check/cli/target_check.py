"""Checks a repository for the place where its models will run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding
from constructs_triton_core.spelling import quoted
from triton_model_check.artifacts.environments.placement import find_environments, with_environments
from triton_model_check.artifacts.environments.python_environment import EnvironmentNotBuiltError
from triton_model_check.cli.tensor_options import called_models
from triton_model_check.model_config.report import Report
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository.repository import ModelRepository

_MISSING_IMPORT = "python-import-missing"
_ENDPOINTS = {"single": "single-model endpoint", "multi-model": "multi-model endpoint"}


class Checked(NamedTuple):
    """A report, the type of the endpoint that it is for, and the default model of each such endpoint."""

    report: Report
    endpoint: str
    default_models: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The endpoint in words."""
        names = quoted(self.default_models)
        if self.endpoint == "none":
            return "" if self.report.errors else "; SageMaker's rules were not checked"
        if len(self.default_models) > 1:
            return f" on single-model endpoints, one for each of {names}"
        return f" on a {_ENDPOINTS[self.endpoint]}" + (f" of {names}" if self.default_models else "")


def check_for_target(arguments: argparse.Namespace) -> Checked:
    """Check the models as they are packed, with the environments of ``triton-models.toml``."""
    repository = ModelRepository.from_directory(arguments.path, calls=called_models(arguments))
    try:
        placed = repository if arguments.no_files else with_environments(repository)
    except EnvironmentNotBuiltError as error:
        return _without_imports(_check_repository(repository, arguments), repository, str(error))
    return _check_repository(placed, arguments)


def _without_imports(checked: Checked, repository: ModelRepository, problem: str) -> Checked:
    """Return what was found without missing imports of models whose environment was not built here."""
    models, report = find_environments(repository), checked.report
    kept = [
        each
        for each in report.findings
        if not (each.code == _MISSING_IMPORT and each.path.partition("/")[0] in models)
    ]
    not_checked = (*report.not_checked, f"not checked: {problem}")
    return checked._replace(report=replace(report, findings=tuple(kept), not_checked=not_checked))


def _check_repository(repository: ModelRepository, arguments: argparse.Namespace) -> Checked:
    target = _target(arguments)
    check = partial(repository.check, is_packed=False, is_archive=arguments.archive)
    if arguments.endpoint == "none":
        return Checked(check(replace(target, platform="server")), "none")
    if arguments.endpoint == "multi-model":
        return Checked(check(replace(target, platform="sagemaker-multi-model")), "multi-model")
    if arguments.endpoint == "single" or arguments.default_model is not None:
        given = () if arguments.default_model is None else (arguments.default_model,)
        return Checked(check(target), "single", given)
    return _check_derived(repository, check, target, is_archive=arguments.archive)


def _target(arguments: argparse.Namespace) -> Target:
    target = Target(
        gpu_count=arguments.gpus,
        image_version=arguments.image_version,
        default_model=arguments.default_model,
        local_files=not arguments.no_files,
    )
    if arguments.instance_type is None:
        return target
    instance = InstanceType.of(arguments.instance_type)
    return replace(
        target,
        gpu_count=instance.gpus if arguments.gpus is None else arguments.gpus,
        gpu_memory_mib=instance.gpu_memory_mib,
        gpu_model=instance.gpu_model,
        compute_capability=instance.compute_capability,
        memory_gib=instance.memory_gib,
        storage_gb=instance.local_storage_gb or None,
    )


def _check_derived(
    repository: ModelRepository, check: Callable[..., Report], target: Target, *, is_archive: bool
) -> Checked:
    """Check for the endpoint that the folder fits.

    Several models that do not need each other fit a multi-model endpoint, unless only an endpoint for each of
    them can serve them all.
    """
    names = repository.top_level_models()
    if repository.root_model is not None and is_archive:
        return Checked(check(replace(target, platform="sagemaker-multi-model")), "multi-model")
    if repository.root_model is not None or not names:  # the layout is wrong
        return Checked(check(replace(target, platform="server")), "none")
    if len(names) == 1:
        return Checked(check(replace(target, default_model=names[0])), "single", (names[0],))
    together = Checked(check(replace(target, platform="sagemaker-multi-model")), "multi-model")
    if together.report.errors:
        alone = _check_each(repository, check, target, names)
        if len(alone.report.errors) < len(together.report.errors):
            return alone
    return together


def _check_each(
    repository: ModelRepository, check: Callable[..., Report], target: Target, names: Sequence[str]
) -> Checked:
    """Check each model with those that it needs for an endpoint of its own."""
    reports = {name: check(replace(target, default_model=name)) for name in names}
    findings: dict[Finding, None] = {}
    for name, report in reports.items():
        own = {".", *repository.closure(name)}
        findings |= {each: None for each in report.findings if each.path.partition("/")[0] in own}
    not_checked = dict.fromkeys(line for report in reports.values() for line in report.not_checked)
    merged = Report(str(repository.path), tuple(findings), tuple(not_checked))
    return Checked(merged, "single", tuple(names))
