"""One repository with the plans of several GPUs, from which Triton chooses by compute capability.

::

    bert/config.pbtxt            with cc_model_filenames
    bert/1/T4.plan               for compute capability 7.5
    bert/1/A10G.plan             for compute capability 8.6
    bert/T4.plan.json            the manifest of each plan
    bert/A10G.plan.json
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.spelling import quoted
from constructs_triton_core.untrusted.regular_files import read_regular
from triton_model_check.model_files.plan_manifest import MANIFEST_FILE, gpu_folder, manifest_of
from triton_model_check.model_repository import ModelRepository


def compiled_repository(path: Path, instance_type: InstanceType) -> Path:
    """Return the repository for the GPU of an instance type.

    Raises:
        InvalidValueError: there is none, or the GPU of the type is not known.
    """
    if instance_type.gpu_model is None:
        raise InvalidValueError(
            f'instance_type: must be a known type with an NVIDIA GPU, got "{instance_type}"; use '
            "from_directory with one folder of the compiled models"
        )
    repository = path / gpu_folder(instance_type.gpu_model)
    if not repository.is_dir():
        raise InvalidValueError(
            f"{path}: has no models for {instance_type} ({instance_type.gpu_model}); run "
            f"`constructs-triton compile MODEL --instance-type {instance_type} --output {path}`"
        )
    return repository


GpuRepositories = Mapping[InstanceType, Path]
"""The repository of each type of GPU, by an instance type that has it."""

_PLAN = "1/model.plan"
_CONFIG = "config.pbtxt"


def compiled_repositories(path: Path, instance_types: Sequence[InstanceType]) -> GpuRepositories:
    """Return the repository of each type of GPU that the instance types have.

    Raises:
        InvalidValueError: there is no type, a repository is missing, or two GPUs have the same
            compute capability, so that Triton cannot choose between their plans.
    """
    if not instance_types:
        raise InvalidValueError(
            "instance_type: must have at least one instance type, got none; add one"
        )
    found: dict[Path, InstanceType] = {}
    for instance_type in instance_types:
        # Types with the same GPU have the same repository.
        found.setdefault(compiled_repository(path, instance_type), instance_type)

    by_capability: dict[str | None, InstanceType] = {}
    for one in found.values():
        other = by_capability.setdefault(one.compute_capability, one)
        if other is not one:
            raise InvalidValueError(
                f"instance_type: one archive cannot contain plans for {other} ({other.gpu_model}) "
                f"and {one} ({one.gpu_model}), because Triton chooses by compute capability, "
                f"which is {one.compute_capability} for both; use from_compiled once for each, "
                "and give each InstancePool its model_repository"
            )
    return {instance_type: repository for repository, instance_type in found.items()}


def combine_gpus(repositories: GpuRepositories, directory: Path) -> ModelRepository:
    """Write a repository with all plans into ``directory``, which is empty. Plans are links.

    Raises:
        InvalidValueError: the repositories contain different models, or a file cannot be read.
    """
    first, first_path = next(iter(repositories.items()))
    models = _models(first_path)
    for instance_type, path in repositories.items():
        names = _models(path)
        if names != models:
            raise InvalidValueError(
                f"{path}: has the models {quoted(names)}, and {first_path} has {quoted(models)}; "
                f"compile each model with --instance-type {first} --instance-type {instance_type}"
            )

    linked: set[str] = set()
    for name in models:
        linked |= _combine(name, repositories, directory)
    return ModelRepository.from_directory(directory, linked_files=linked)


def _models(repository: Path) -> list[str]:
    return sorted(config.parent.name for config in repository.glob(f"*/{_CONFIG}"))


def _combine(name: str, repositories: GpuRepositories, directory: Path) -> set[str]:
    """Write one model, and return the real paths of its links."""
    configs = {_read(path / name / _CONFIG) for path in repositories.values()}
    if len(configs) > 1:
        raise InvalidValueError(
            f"{next(iter(repositories.values())) / name / _CONFIG}: differs from that of the other "
            "GPUs; compile the model again with all instance types in one command"
        )

    (directory / name / "1").mkdir(parents=True)
    lines = ""
    linked = set()
    for instance_type, repository in repositories.items():
        plan = f"{gpu_folder(instance_type.gpu_model or '')}.plan"
        lines += (
            f'cc_model_filenames {{ key: "{instance_type.compute_capability}" value: "{plan}" }}\n'
        )
        for source, place in ((_PLAN, f"1/{plan}"), (MANIFEST_FILE, manifest_of(plan))):
            real = os.path.realpath(repository / name / source)
            (directory / name / place).symlink_to(real)
            linked.add(real)
    (directory / name / _CONFIG).write_bytes(configs.pop().rstrip(b"\n") + b"\n" + lines.encode())
    return linked


def _read(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError as error:
        raise InvalidValueError(
            f"{path}: cannot be read ({(error.strerror or str(error)).lower()}); "
            "compile the model again"
        ) from None
