"""What the memory of the models that a target loads is estimated from."""

from __future__ import annotations

from triton_model_check.checks.language_models import memory_of_engines
from triton_model_check.checks.model_under_check import ModelUnderCheck, RepositoryContext
from triton_model_check.memory.estimate import LoadedModel, MemoryEstimate, estimate
from triton_model_check.memory.instances import HOST
from triton_model_check.model_config.target import Target
from triton_model_check.model_files.model_file import ModelFile

_MIB = 2**20
_AOTI = "torch_aoti"


def estimates(context: RepositoryContext) -> list[MemoryEstimate]:
    """Return what the models take that are loaded together: all, or those of each archive.

    There are none if the number of GPUs is not known, or the files are not complete.
    """
    target = context.target
    if target.gpu_count is None or context.complete_bytes is not None:
        return []
    together: list[list[str]] = [sorted(context.loaded)]
    if target.mode == "multi-model" and context.archives:
        together = [
            [name for name in dict.fromkeys((each.model, *each.folders)) if name in context.models]
            for each in context.archives
        ]
    gpu_bytes = target.gpu_memory_mib and target.gpu_memory_mib * _MIB
    if gpu_bytes and target.model_load_gpu_limit is not None:
        # Triton refuses a load after which more is used (core, VerifyModelLoadGpuFraction).
        gpu_bytes = int(gpu_bytes * target.model_load_gpu_limit)
    host_bytes = None if target.memory_gib is None else int(target.memory_gib * 2**30)
    if target.max_memory_mib is not None and limiting(target, HOST) is not None:
        host_bytes = int(target.max_memory_mib * _MIB)
    return [
        estimate(
            [_loaded(context.models[name]) for name in names],
            target.gpu_count,
            gpu_bytes,
            host_bytes,
        )
        for names in together
    ]


def limiting(target: Target, place: str) -> str | None:
    """Return what allows models a part of a place only; ``None`` if they may fill it."""
    most = target.max_memory_mib
    if place != HOST:
        fraction = target.model_load_gpu_limit
        return None if fraction is None or fraction == 1 else "model_load_gpu_limit"
    if most is None or (target.memory_gib is not None and most >= target.memory_gib * 1024):
        return None
    return "max_memory"


def _loaded(model: ModelUnderCheck) -> LoadedModel:
    return LoadedModel(
        model.name,
        model.backend,
        model.config,
        model.model_files or _packages(model),
        len(model.versions_to_load),
        model.context.declared_memory.get(model.name),
        memory_of_engines(model),
        model.folder.directory,
    )


def _packages(model: ModelUnderCheck) -> list[ModelFile]:
    """Return the packages of an AOTInductor model, which other checks do not read.

    Source: triton pytorch_backend README.md, "PyTorch PT2 Model Archive", 26.03 and newer.
    """
    if model.backend != "pytorch" or model.config is None or model.config.platform != _AOTI:
        return []
    name = model.config.default_model_filename or "model.pt2"
    return [
        ModelFile(model.folder.directory / version / name.lstrip("/"), "torch_package")
        for version in model.versions_to_load
    ]
