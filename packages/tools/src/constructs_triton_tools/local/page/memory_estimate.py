"""What the models of a running server take at least, beside what its processes use.

The models are those that the server has: unpacked, without what this machine cannot run, and with
stand-ins in place of backends. So the estimate is that of the run, and not that of the endpoint in
AWS, for which `constructs-triton memory` takes the instance type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_tools.local.gateway.inference_components import LocalVariant
from constructs_triton_tools.local.server.memory import SHARED_MEMORY, SHM_DEFAULT
from constructs_triton_tools.local.server.serve_script import DEFAULT_SHM_BYTES
from triton_model_check.facts.images import version_of_image
from triton_model_check.memory.estimate import MemoryEstimate
from triton_model_check.memory.instances import HOST, gpu_place
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What the loaded models and the server take at each place of this machine, in bytes.

    ``not_counted`` says what is not known of the models.
    """

    bytes_by_place: Mapping[str, int]
    not_counted: tuple[str, ...] = ()


def estimate_of(running: LocalVariant, gpu_count: int) -> RunEstimate | None:
    """Return the estimate of a run on a machine with this number of GPUs, or ``None``.

    There is none if the server is being replaced, or no model is unpacked.
    """
    version = version_of_image(running.server.container.image)
    target = Target(
        "server",
        gpu_count=gpu_count,
        image_version=version,
        shm_default_byte_size=_region_bytes(running.server.container.environment),
    )
    estimates: list[MemoryEstimate] = []
    for folder in _folders(running):
        estimates += _estimates(folder, running.server.container.source, target)
    return _sum(estimates, gpu_count) if estimates else None


def rows_of(
    estimate: RunEstimate,
    host_bytes: int,
    gpu_bytes: Mapping[int, int],
    shared_bytes: int | None = None,
) -> list[dict[str, object]]:
    """Return each place with its estimate and what is measured there; ``None`` is not measured."""
    measured: dict[str, int | None] = {HOST: host_bytes, SHARED_MEMORY: shared_bytes}
    measured |= {gpu_place(gpu): size for gpu, size in gpu_bytes.items()}
    return [
        {"place": place, "at_least_bytes": size, "measured_bytes": measured.get(place)}
        for place, size in estimate.bytes_by_place.items()
    ]


def _region_bytes(environment: Mapping[str, str]) -> int:
    """Return the first size of the region of a Python instance in ``/dev/shm``."""
    chosen = environment.get(SHM_DEFAULT, "")
    return int(chosen) if chosen.isdecimal() else DEFAULT_SHM_BYTES


def _folders(running: LocalVariant) -> Iterator[Path]:
    """Yield the folders of models that are loaded."""
    container = running.multi_model
    if container is None:
        yield running.server.models_directory.parent / "model"
        return
    for target_model in sorted(container.loaded_models):
        yield container.unpacked(target_model)


def _estimates(folder: Path, source: Path | None, target: Target) -> Sequence[MemoryEstimate]:
    """Return the estimates of a folder, with what the user's folder ``source`` declares."""
    try:
        repository = ModelRepository.from_directory(folder)
        if source is not None:
            repository.description = ModelRepository.from_directory(source).description
        return repository.memory(target)
    except (ConstructsTritonError, OSError):  # a model is being unloaded, or its folder was deleted
        return ()


def _sum(estimates: Sequence[MemoryEstimate], gpu_count: int) -> RunEstimate:
    """Add what the models take, and the server once."""
    sizes = dict.fromkeys([*map(gpu_place, range(gpu_count)), HOST], 0)
    reasons: dict[str, None] = {}
    for number, estimate in enumerate(estimates):
        for part in estimate.parts:
            if part.model or number == 0:
                sizes[part.place] = sizes.get(part.place, 0) + part.size
        reasons |= dict.fromkeys(estimate.not_counted)
    return RunEstimate(sizes, tuple(reasons))
