"""What the models that are loaded together take of each GPU and of the host.

It is a lower bound: what is not known is named and not counted. The sources of the figures are in
``facts/memory.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from triton_model_check.facts.published import load
from triton_model_check.memory.certain_weights import (
    certain_weight_bytes,
    declares_variable_shape,
    has_variable_shape,
)
from triton_model_check.memory.engine import RESERVES, EngineMemory, of_instances, start_together
from triton_model_check.memory.instances import HOST, copies, gpu_place
from triton_model_check.memory.python_process import context_bytes, contexts, process_bytes
from triton_model_check.memory.server_pools import ServerPools
from triton_model_check.memory.weights import (
    StoredWeights,
    bytes_on_disk,
    converts_weights,
    stored_weights,
    weight_bytes,
    weight_copies,
    weight_places,
)
from triton_model_check.model.python_gpu import GpuUseOfCode
from triton_model_check.model_files.model_file import ModelFile

__all__ = ["DeclaredMemory", "LoadedModel", "MemoryEstimate", "MemoryPart", "estimate", "in_units"]

_MIB = 2**20
_NO_WEIGHTS = frozenset({"dali", "ensemble", "identity", "repeat", "square"})
_CODE_IS_NOT_KNOWN = "what the code of the model loads is not known"
_OF_THE_CODE = frozenset({"python"})
_SHARES_FIXED_SHAPES = frozenset({"tensorrt"})
"""Backends whose instances share the weights, unless a tensor has a dimension of -1."""


@dataclass(frozen=True, slots=True)
class DeclaredMemory:
    """What the user says that each instance of a model takes, in bytes."""

    gpu_bytes: int
    host_bytes: int


@dataclass(frozen=True)
class LoadedModel:
    """One model that is loaded: its backend, its configuration if it has one, and its files.

    ``file_versions`` is how many versions are loaded; each must have one file to be counted.
    ``directory`` is the folder of the model, in which its code may have weights of its own.
    ``declared`` takes the place of what the files say, and ``engines`` that of the instances.
    ``gpu_use`` is how the code of a Python model uses a GPU, if it shows that.
    """

    name: str
    backend: str
    config: Any | None
    files: Sequence[ModelFile]
    file_versions: int = 1
    declared: DeclaredMemory | None = None
    engines: EngineMemory | None = None
    directory: Path | None = None
    gpu_use: GpuUseOfCode | None = None

    @cached_property
    def stored(self) -> StoredWeights | None:
        """Files of weights in the folder of the model, whose use is not known."""
        return None if self.directory is None else stored_weights(self.directory)


@dataclass(frozen=True)
class MemoryPart:
    """What one thing takes at one place, in bytes; ``model`` is empty for the server.

    ``certain`` is how much of ``size`` are weights without which the model certainly does not load.
    """

    place: str
    model: str
    what: str
    size: int
    source: str
    certain: int = 0

    @property
    def is_share(self) -> bool:
        """Whether it is a fraction of the GPU that the model's configuration reserves."""
        return self.what.startswith(RESERVES)

    def __str__(self) -> str:
        return f"{self.model or 'server'}: {self.what} {in_units(self.size)}"


@dataclass(frozen=True)
class MemoryEstimate:
    """What the models that are loaded together take.

    ``limits`` has the bytes of each place; a place without one has an unknown size. ``not_counted``
    says what each model takes besides, and ``shared_not_counted`` what of ``/dev/shm``.
    """

    models: tuple[str, ...]
    parts: tuple[MemoryPart, ...]
    limits: Mapping[str, int] = field(default_factory=dict)
    not_counted: tuple[str, ...] = ()
    shared_not_counted: tuple[str, ...] = ()

    def total(self, place: str) -> int:
        """Return the sum of the parts at a place, in bytes."""
        return sum(each.size for each in self.parts if each.place == place)

    def certain(self, place: str) -> int:
        """Return the bytes of the weights that are certainly loaded to a place."""
        return sum(each.certain for each in self.parts if each.place == place)

    def largest(self, place: str, most: int = 3) -> list[MemoryPart]:
        """Return the largest parts at a place, largest first."""
        here = [each for each in self.parts if each.place == place]
        return sorted(here, key=lambda each: -each.size)[:most]

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The places that hold less than what is needed, at least."""
        return tuple(place for place, limit in self.limits.items() if self.total(place) > limit)


@dataclass(frozen=True)
class Server:
    """The server that loads the models, and its machine.

    ``gpu_bytes`` is the memory of each GPU, ``host_bytes`` that of the machine, and ``release`` the
    version of the image; ``None`` is unknown. ``pools`` are those that the server is started with.
    """

    gpu_count: int
    gpu_bytes: int | None = None
    host_bytes: int | None = None
    release: str | None = None
    pools: ServerPools = field(default_factory=ServerPools)

    @property
    def limits(self) -> dict[str, int]:
        """The bytes of each place whose size is known."""
        found = {}
        if self.gpu_bytes:
            found = dict.fromkeys(map(gpu_place, range(self.gpu_count)), self.gpu_bytes)
        if self.host_bytes:
            found[HOST] = self.host_bytes
        return found


def estimate(models: Sequence[LoadedModel], server: Server) -> MemoryEstimate:
    """Return what models that are loaded together take on a server."""
    parts = _server_parts(server)
    left_out: list[str] = []
    for model in models:
        found = _parts_of(model, server)
        if isinstance(found, str):
            left_out.append(f"{model.name}: {found}")
        else:
            parts += found
            left_out += [f"{model.name}: {note}" for note in _notes(model, server)]
    engines = [model.engines for model in models if model.engines and not model.declared]
    left_out += start_together(engines)
    names = tuple(model.name for model in models)
    return MemoryEstimate(names, tuple(parts), server.limits, tuple(left_out))


def in_same_units(needed: int, limit: int) -> tuple[str, str]:
    """Return two different numbers of bytes, in MiB if they are the same in GiB."""
    texts = in_units(needed), in_units(limit)
    if texts[0] != texts[1]:
        return texts
    return f"{needed / _MIB:.0f} MiB", f"{limit / _MIB:.0f} MiB"


def in_units(size: int) -> str:
    """Return a number of bytes in MiB, or in GiB from 1 GiB on."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / _MIB:.0f} MiB"


def _server_parts(server: Server) -> list[MemoryPart]:
    """Return what the server takes; the figures have the pools of its defaults in them."""
    gpu, host = load("memory")["gpu"], load("memory")["host"]
    context = gpu["server_context_bytes"] - gpu["cuda_pool_bytes"]
    parts = [
        MemoryPart(
            gpu_place(index),
            "",
            "context and pool",
            context + server.pools.cuda.get(index, gpu["cuda_pool_bytes"]),
            "gpu.server_context_bytes",
        )
        for index in range(server.gpu_count)
    ]
    if server.gpu_count:
        pinned = host["pinned_pool_bytes"] if server.pools.pinned is None else server.pools.pinned
        size = host["server_with_gpu_bytes"] - host["pinned_pool_bytes"] + pinned
        source = "host.server_with_gpu_bytes"
        parts.append(MemoryPart(HOST, "", "process and pinned pool", size, source))
    else:
        parts.append(MemoryPart(HOST, "", "process", host["server_bytes"], "host.server_bytes"))
    if server.pools.cache:
        parts.append(
            MemoryPart(HOST, "", "response cache", server.pools.cache, "limits.response_cache")
        )
    return parts


def _parts_of(model: LoadedModel, server: Server) -> list[MemoryPart] | str:
    """Return what a model takes, or why that is not counted."""
    if model.declared is not None:
        return _declared_parts(model, model.declared, server)
    if model.backend in _NO_WEIGHTS or (
        model.config is not None and model.config.HasField("ensemble_scheduling")
    ):
        return []
    if model.engines is not None:
        return _engine_parts(model, model.engines)
    placed = _copies(model, server)
    if model.backend in _OF_THE_CODE and placed is not None:
        return _python_parts(model, placed, server)
    size = _size_of_weights(model)
    if isinstance(size, str):
        return size
    return _weights_at(model, size, placed)


def _weights_at(
    model: LoadedModel, size: int, placed: Mapping[str, int] | None
) -> list[MemoryPart] | str:
    if placed is None:
        return "KIND_MODEL: the model chooses where it runs"
    places, _ = weight_places(model.backend, placed)
    return [_weights(model, place, size, count) for place, count in places.items()]


def _python_parts(
    model: LoadedModel, placed: Mapping[str, int], server: Server
) -> list[MemoryPart]:
    """Return what the processes of a Python model take besides what their code loads."""
    versions = max(1, model.file_versions)
    processes = versions * sum(placed.values())
    what = "process" if processes == 1 else f"{processes} processes"
    source = "host.python_instance_private_bytes"
    parts = [MemoryPart(HOST, model.name, what, process_bytes(processes), source)]

    found = contexts(placed, model.gpu_use, server.gpu_count)
    for place, instances in (found or {}).items():
        count = versions * instances
        what = "CUDA context" if count == 1 else f"{count} CUDA contexts"
        size = count * context_bytes(server.release)
        parts.append(MemoryPart(place, model.name, what, size, "gpu.framework_context_bytes"))
    return parts


def _engine_parts(model: LoadedModel, engines: EngineMemory) -> list[MemoryPart]:
    source = f"sharing.{model.backend}"
    return [
        MemoryPart(gpu_place(use.gpu), model.name, of_instances(use), use.size, source, use.certain)
        for use in engines.uses
    ]


def _notes(model: LoadedModel, server: Server) -> Sequence[str]:
    """Return what a counted model takes besides."""
    if model.declared is not None:
        return ()
    if model.engines is not None:
        return model.engines.not_counted
    placed = _copies(model, server) or {}
    if model.backend in _OF_THE_CODE:
        return _notes_of_the_code(model, placed, server)
    _, unknown = weight_places(model.backend, placed)
    return (unknown,) if unknown else ()


def _notes_of_the_code(
    model: LoadedModel, placed: Mapping[str, int], server: Server
) -> Sequence[str]:
    notes = [_CODE_IS_NOT_KNOWN + _stored(model)]
    use = model.gpu_use
    if use is not None and contexts(placed, use, server.gpu_count) is None:
        notes.append(f"the CUDA contexts of {use.framework}: its code does not show on which GPU")
    return notes


def _size_of_weights(model: LoadedModel) -> int | str:
    """Return the bytes of the weights of all versions, or why they are not known."""
    if model.backend in _OF_THE_CODE:
        return _CODE_IS_NOT_KNOWN + _stored(model)
    if model.config is not None and converts_weights(model.config):
        return "an accelerator makes another form of the weights at load"
    sizes = [weight_bytes(each) for each in model.files]
    known = [size for size in sizes if size is not None]
    if not known or len(known) < len(sizes) or len(sizes) != model.file_versions:
        size = sum(map(bytes_on_disk, model.files))
        reason = "the size of its weights in memory is not known from its files"
        return f"{reason}, which have {in_units(size)}" if size else reason + _stored(model)
    return sum(known)


def _stored(model: LoadedModel) -> str:
    """Return what the folder of a model has of weights whose use is not known, in words."""
    stored = model.stored
    if stored is None:
        return ""
    return f"; its folder has {in_units(stored.size)} of weights ({stored.names})"


def _copies(model: LoadedModel, server: Server) -> Mapping[str, int] | None:
    groups = () if model.config is None else model.config.instance_group
    return copies(groups, model.backend, server.gpu_count, server.release)


def _declared_parts(
    model: LoadedModel, declared: DeclaredMemory, server: Server
) -> list[MemoryPart] | str:
    """Return what the user declares: the GPU of each instance that has one, and the host."""
    placed = _copies(model, server)
    if placed is None and server.gpu_count > 1:
        return "KIND_MODEL: the model chooses its GPU"
    if placed is None:
        placed = {gpu_place(0) if server.gpu_count else HOST: 1}
    count = sum(placed.values())
    sizes = {each: declared.gpu_bytes * n for each, n in placed.items() if each != HOST}
    sizes[HOST] = declared.host_bytes * count
    return [
        MemoryPart(place, model.name, "declared", size, "triton-models.toml")
        for place, size in sizes.items()
        if size
    ]


def _weights(model: LoadedModel, place: str, size: int, instances: int) -> MemoryPart:
    """Return the memory that the weights of a model take in one place."""
    count = certain_count = _weight_copies(model, instances)
    if model.backend in _SHARES_FIXED_SHAPES:
        is_variable = has_variable_shape(model.files)
        count = instances if is_variable or declares_variable_shape(model.config) else count
        certain_count = instances if is_variable else certain_count

    certain = 0
    if place != HOST:
        certain = certain_count * sum(map(certain_weight_bytes, model.files))
    what = "weights" if count == 1 else f"weights of {count} instances"
    source = f"sharing.{model.backend}"
    return MemoryPart(place, model.name, what, size * count, source, certain)


def _weight_copies(model: LoadedModel, instances: int) -> int:
    parameters = {} if model.config is None else model.config.parameters
    return weight_copies(model.backend, parameters, load("memory")["sharing"], instances)
