"""Checks a repository for the place where its models will run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.findings import Finding
from constructs_triton_core.program.argument_types import argument_type, version_argument, whole_number
from constructs_triton_core.spelling import quoted
from triton_model_check.artifacts.environments.placement import find_environments, with_environments
from triton_model_check.artifacts.environments.python_environment import EnvironmentNotBuiltError
from triton_model_check.cli.settings import Settings
from triton_model_check.cli.tensor_options import called_models
from triton_model_check.model_config.report import Report
from triton_model_check.model_config.target import PLATFORMS, Platform, Target, parse_shm_size
from triton_model_check.model_repository.repository import ModelRepository

_MISSING_IMPORT = "python-import-missing"
_DERIVED = "SageMaker: multi-model for several models that do not need each other, else single"


class Checked(NamedTuple):
    """A report, the target that it is for, and the default model of each single-model endpoint.

    ``target`` is ``None`` if the layout of the folder fits none.
    """

    report: Report
    target: Target | None
    default_models: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The target in words, such as ``on a server``."""
        names = quoted(self.default_models)
        if self.target is None:
            return ""
        if len(self.default_models) > 1:
            return f" on SageMaker single-model endpoints, one for each of {names}"
        return f" {self.target.place}" + (f" of {names}" if self.default_models else "")

    @property
    def subject(self) -> str:
        """The server in words, such as ``Triton 26.07 on a server``."""
        version = self.target and self.target.image_version
        return f"Triton {version}{self.where}" if version else f"Triton{self.where}"


def add_target_arguments(parser: argparse.ArgumentParser, default: Platform | None) -> None:
    """Declare where the models run; ``default`` is ``None`` for the type of SageMaker endpoint that fits."""
    add = parser.add_argument
    parser.set_defaults(default_target=default)
    add(
        "--target",
        choices=PLATFORMS,
        help="where the models run; docker, kubernetes and kserve have 64 MiB of /dev/shm, and kserve has "
        f"image 23.05 (default: {default or _DERIVED})",
    )
    add(
        "--image-version",
        type=version_argument,
        metavar="V",
        help="version of the Triton image, for example 26.05 (default: the newest one of NVIDIA; for "
        "SageMaker, unknown)",
    )
    add(
        "--shm-size",
        type=argument_type(lambda place, text: parse_shm_size(text, place)),
        metavar="SIZE",
        help="size of /dev/shm of the container, for example 256m or 1g",
    )
    add(
        "--backends",
        type=lambda text: tuple(name.strip() for name in text.split(",") if name.strip()),
        metavar="NAME,...",
        help="backends that the server has besides those of the image",
    )
    add(
        "--model-config-name",
        metavar="NAME",
        help="check configs/NAME.pbtxt in place of config.pbtxt, as the server's option does (since 24.05)",
    )
    add(
        "--load-model",
        action="append",
        metavar="NAME",
        help="only this model and its steps are loaded, as in the server's explicit mode; repeatable",
    )
    add(
        "--gpus",
        type=whole_number(RangeLimit(0, None)),
        metavar="N",
        help="number of NVIDIA GPUs of the machine, 0 for a machine without GPUs",
    )
    add(
        "--instance-type",
        metavar="TYPE",
        help="SageMaker instance type: its GPUs, memory and disk are checked too, and the GPU of plans",
    )
    add(
        "--default-model",
        metavar="NAME",
        help="model that a SageMaker single-model endpoint serves (SAGEMAKER_TRITON_DEFAULT_MODEL_NAME)",
    )


def check_for_target(arguments: argparse.Namespace) -> Checked:
    """Check the models as they are packed, with the environments of ``triton-models.toml``."""
    repository = ModelRepository.from_directory(arguments.path, calls=called_models(arguments))
    placed, problem = place_environments(repository, local_files=not arguments.no_files)
    checked = _check_repository(placed, arguments)
    return checked._replace(report=without_imports(checked.report, repository, problem))


def place_environments(repository: ModelRepository, *, local_files: bool) -> tuple[ModelRepository, str]:
    """Return the repository with its environments, or why it is without them, else ``""``."""
    if not local_files:
        return repository, ""
    try:
        return with_environments(repository), ""
    except EnvironmentNotBuiltError as error:
        return repository, str(error)


def without_imports(report: Report, repository: ModelRepository, problem: str) -> Report:
    """Return what was found without missing imports of models whose environment was not built here."""
    if not problem:
        return report
    models = find_environments(repository)
    kept = [
        each
        for each in report.findings
        if not (each.code == _MISSING_IMPORT and each.path.partition("/")[0] in models)
    ]
    not_checked = (*report.not_checked, f"not checked: {problem}")
    return replace(report, findings=tuple(kept), not_checked=not_checked)


def _check_repository(repository: ModelRepository, arguments: argparse.Namespace) -> Checked:
    target, is_derived = _target(arguments)
    check = partial(repository.check, is_packed=False, is_archive=arguments.archive)
    if is_derived:
        return _check_derived(repository, check, target, is_archive=arguments.archive)
    is_named = target.platform == "sagemaker" and target.default_model is not None
    return Checked(check(target), target, (str(target.default_model),) if is_named else ())


def _target(arguments: argparse.Namespace) -> tuple[Target, bool]:
    """The target of the arguments and the settings, and whether the type of its endpoint is derived."""
    settings = Settings.of(Path(arguments.path))
    platform = arguments.target or settings.target
    if platform is None and arguments.default_model is not None:
        platform = "sagemaker"
    platform = platform or arguments.default_target
    return Target.named(platform or "sagemaker", **_known(arguments, settings)), platform is None


def _known(arguments: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    """What the arguments, or else the settings, say of the target; ``None`` is unknown."""

    def of(name: str) -> Any:
        given = getattr(arguments, name)
        return getattr(settings, name) if given is None else given

    known = {
        "gpu_count": of("gpus"),
        "image_version": of("image_version"),
        "default_model": arguments.default_model,
        "local_files": not arguments.no_files,
        "shm_bytes": of("shm_size"),
        "backends": of("backends"),
        "model_config_name": of("model_config_name"),
        "load_models": of("load_model") and tuple(of("load_model")),
    }
    if of("instance_type") is None:
        return known
    instance = InstanceType.of(of("instance_type"))
    return {
        **known,
        "gpu_count": instance.gpus if known["gpu_count"] is None else known["gpu_count"],
        "gpu_memory_mib": instance.gpu_memory_mib,
        "gpu_model": instance.gpu_model,
        "compute_capability": instance.compute_capability,
        "memory_gib": instance.memory_gib,
        "storage_gb": instance.local_storage_gb or None,
    }


def _check_derived(
    repository: ModelRepository, check: Callable[..., Report], target: Target, *, is_archive: bool
) -> Checked:
    """Check for the SageMaker endpoint that the folder fits.

    Several models that do not need each other fit a multi-model endpoint, unless only an endpoint for each of
    them can serve them all.
    """
    names, multi_model = repository.top_level_models(), replace(target, platform="sagemaker-multi-model")
    if repository.root_model is not None and is_archive:
        return Checked(check(multi_model), multi_model)
    if repository.root_model is not None or not names:  # the layout is wrong
        return Checked(check(replace(target, platform="server")), None)
    if len(names) == 1:
        return Checked(check(replace(target, default_model=names[0])), target, (names[0],))
    together = Checked(check(multi_model), multi_model)
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
    ignored = dict.fromkeys(each for report in reports.values() for each in report.ignored)
    merged = Report(str(repository.path), tuple(findings), tuple(not_checked), tuple(ignored))
    return Checked(merged, target, tuple(names))
