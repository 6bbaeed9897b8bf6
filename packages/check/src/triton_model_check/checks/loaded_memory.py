"""What the memory of the models that a target loads is estimated from."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import WeakKeyDictionary

from triton_model_check.checks.language_models import memory_of_engines
from triton_model_check.checks.model_under_check import ModelUnderCheck, RepositoryContext
from triton_model_check.memory.certain_weights import certain_weight_bytes
from triton_model_check.memory.estimate import LoadedModel, MemoryEstimate, Server, estimate
from triton_model_check.memory.instances import HOST, is_gpu
from triton_model_check.memory.server_pools import ServerPools
from triton_model_check.model_config.target import Target
from triton_model_check.model_files.model_file import ModelFile

_MIB = 2**20
_AOTI = "torch_aoti"
_DESCRIBED: WeakKeyDictionary[ModelUnderCheck, LoadedModel] = WeakKeyDictionary()
"""Several checks ask for the memory of a model, whose files are read once."""


def estimates(context: RepositoryContext) -> list[MemoryEstimate]:
    """Return what the models take that are loaded together: all, or those of each archive.

    There are none if the number of GPUs is not known, or the files are not complete.
    """
    target = context.target
    if target.gpu_count is None or context.complete_bytes is not None:
        return []
    return [_estimate(context, names, target.gpu_count) for names in loaded_together(context)]


def certain_estimates(context: RepositoryContext) -> list[MemoryEstimate]:
    """Return what models take that certainly are loaded together.

    A model is loaded with the steps of an ensemble. A server can be started with
    ``--model-control-mode=explicit``, so it loads all models of a repository for certain only if
    ``--load-model`` names them.
    """
    target = context.target
    if not target.gpu_count or context.complete_bytes is not None:
        return []
    roots = [[name] for name in context.served]
    if target.load_models:
        roots = [list(context.served)]

    found = []
    for names in roots:
        together = [
            name
            for name in sorted(_with_steps(context, names))
            if _has_certain_weights(context.models[name])
        ]
        if together:
            found.append(_estimate(context, together, target.gpu_count))
    return found


def _has_certain_weights(model: ModelUnderCheck) -> bool:
    engines = _loaded(model).engines
    if engines is not None:
        return any(use.certain for use in engines.uses)
    return any(map(certain_weight_bytes, model.model_files))


def _with_steps(context: RepositoryContext, names: Iterable[str]) -> set[str]:
    """Return models with the steps of ensembles, at any depth."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in context.models and name not in found:
            found.add(name)
            waiting += context.folders[name].step_models
    return found


def _estimate(context: RepositoryContext, names: Iterable[str], gpu_count: int) -> MemoryEstimate:
    """Estimate the memory of these models in one server."""
    target = context.target
    server = Server(
        gpu_count,
        _gpu_bytes(target),
        _host_bytes(target),
        target.image_version,
        ServerPools.of_arguments(target.server_arguments),
    )
    return estimate([_loaded(context.models[name]) for name in names], server)


def _gpu_bytes(target: Target) -> int | None:
    """Return what models may fill of each GPU."""
    if not target.gpu_memory_mib:
        return None
    # Triton refuses a load after which more is used (core, VerifyModelLoadGpuFraction).
    fraction = 1 if target.model_load_gpu_limit is None else target.model_load_gpu_limit
    return int(target.gpu_memory_mib * _MIB * fraction)


def _host_bytes(target: Target) -> int | None:
    """Return what models may fill of the main memory."""
    if target.max_memory_mib is not None and limiting(target, HOST) is not None:
        return int(target.max_memory_mib * _MIB)
    return None if target.memory_gib is None else int(target.memory_gib * 2**30)


def limiting(target: Target, place: str) -> str | None:
    """Return what allows models a part of a place only; ``None`` if they may fill it."""
    if is_gpu(place):
        return None if target.model_load_gpu_limit in (None, 1) else "model_load_gpu_limit"
    most = target.max_memory_mib
    if place != HOST or most is None:
        return None
    is_less = target.memory_gib is None or most < target.memory_gib * 1024
    return "max_memory" if is_less else None


def loaded_together(context: RepositoryContext) -> list[list[str]]:
    """Return the names of the models that are loaded together: all, or those of each archive."""
    if context.target.mode == "multi-model" and context.archives:
        return [
            [name for name in dict.fromkeys((each.model, *each.folders)) if name in context.models]
            for each in context.archives
        ]
    return [sorted(context.loaded)]


def _loaded(model: ModelUnderCheck) -> LoadedModel:
    """Return what the memory that a model takes is calculated from, described once."""
    known = _DESCRIBED.get(model)
    if known is None:
        known = _DESCRIBED[model] = _describe(model)
    return known


def _describe(model: ModelUnderCheck) -> LoadedModel:
    """Return what the estimate of memory needs of a model."""
    return LoadedModel(
        model.name,
        model.backend,
        model.config,
        model.model_files or _packages(model),
        len(model.versions_to_load),
        model.context.declared_memory.get(model.name),
        memory_of_engines(model),
        model.folder.directory,
        model.gpu_use,
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
