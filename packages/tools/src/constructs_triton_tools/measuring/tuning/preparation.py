"""What a search needs to know before it measures: models, limits and data."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_client import Invocation
from constructs_triton_client.wire import encode_request
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.processes.children import run_child
from constructs_triton_tools.local.options import LocalRunOptions
from constructs_triton_tools.local.server.installation import find_installation
from constructs_triton_tools.measuring.sample_inputs import sample_model
from constructs_triton_tools.measuring.tuning.candidates import Candidate, SearchSpace
from constructs_triton_tools.measuring.tuning.model_settings import find_space, read_settings
from constructs_triton_tools.measuring.tuning.outputs import REQUESTS
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository
from triton_model_check.artifacts.environments.placement import as_packed
from triton_model_check.model.backends import infer_backend
from triton_model_check.model.ensemble_graph import EnsembleGraph
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model_repository import ModelRepository

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CPU_INFO = Path("/proc/cpuinfo")
_QUERY = ("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
_QUERY_SECONDS = 20
Inputs = Mapping[str, "NDArray[Any]"]


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that runs the candidates."""

    cpus: int
    cpu: str
    gpus: tuple[str, ...]

    def __str__(self) -> str:
        gpus = f"GPUs: {', '.join(self.gpus)}" if self.gpus else "no GPU"
        return f"{self.cpus} CPUs ({self.cpu}), {gpus}"


def read_machine() -> Machine:
    """Return the hardware of this machine."""
    return Machine(os.cpu_count() or 1, _cpu_name(), _gpu_names())


def _cpu_name() -> str:
    with suppress(OSError):
        for line in _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()  # platform.processor() would start `uname`


def _gpu_names() -> tuple[str, ...]:
    if shutil.which(_QUERY[0]) is None:
        return ()
    try:
        answer = run_child(_QUERY, seconds=_QUERY_SECONDS)
    except OSError:
        return ()
    lines = answer.stdout.splitlines() if answer.returncode == 0 else []
    return tuple(line.strip() for line in lines if line.strip())


# --- the server -----------------------------------------------------------------------------------


def describe_server(local: LocalRunOptions) -> str:
    """Return which Triton server runs the candidates: the image of an engine,
    or the bundled server.
    """
    if local.get("engine"):
        images = ", ".join(sorted((local.get("images") or {}).values())) or "the default image"
        return f"{images} in {local['engine']}"
    if local.get("tritonserver"):
        return str(local["tritonserver"])
    try:
        return f"nvidia-pytriton {version('nvidia-pytriton')}"
    except PackageNotFoundError:
        return "nvidia-pytriton"


def check_backends(
    repository: TunedRepository, local: LocalRunOptions, *, accept_stand_in: bool
) -> str:
    """Return a sentence about the backends that a stand-in replaces; empty if there is none."""
    if local.get("engine"):
        return ""
    server = local.get("tritonserver")
    installed = find_installation(Path(server) if server else None).backend_names()
    backends = {infer_backend(folder).backend for folder in repository.folders}
    names = ", ".join(sorted(backends - installed - {""}))
    if names and not accept_stand_in:
        raise InvalidValueError(
            f"{repository.model}: this server does not have the backend {names}. The best settings "
            "of a stand-in are not those of the backend; add --engine and --image, or "
            "--accept-stand-in to search with the stand-in"
        )
    return f"Figures of a Python stand-in, not of the backend {names}." if names else ""


def find_only_model(repository: ModelRepository) -> str:
    """Return the name of the only top-level model."""
    names = repository.top_level_models()
    if len(names) != 1:
        raise InvalidValueError(
            f"--model: is required, because {repository.path} has {len(names)} top-level models "
            f"({', '.join(names) or 'none'}); name one of them"
        )
    return names[0]


def find_spaces(
    found: ModelRepository,
    model: str,
    machine: Machine,
    *,
    latency_ms: float,
    parameters: Mapping[str, Sequence[str]],
) -> tuple[TunedRepository, dict[str, SearchSpace]]:
    """Return the model with its present settings and those of all models that it needs,
    and their limits.
    """
    found.model(model)
    gpus = len(machine.gpus)
    folders = [found.models[name] for name in found.closure(model)]
    searched = [folder for folder in folders if not folder.is_ensemble]
    present = Candidate(
        tuple((folder.name, read_settings(folder, gpus, parameters)) for folder in searched)
    )
    least = _batches_of_ensembles(folders)
    spaces = {
        folder.name: replace(
            find_space(
                folder, latency_ms, cpus=machine.cpus, gpu_count=gpus, parameters=parameters
            ),
            least_batch=least.get(folder.name, 1),
        )
        for folder in searched
    }
    return TunedRepository(as_packed(found), model, present, own=found), spaces


def _batches_of_ensembles(folders: Sequence[ModelFolder]) -> dict[str, int]:
    """Return the batch that each step of an ensemble must allow: Triton refuses a smaller one."""
    found: dict[str, int] = {}
    for folder in folders:
        if folder.is_ensemble:
            for step in EnsembleGraph.from_model(folder).steps:
                least = folder.config.max_batch_size
                found[step.model_name] = max(found.get(step.model_name, 1), least)
    return found


def draw_requests(
    repository: ModelRepository, model: str, seed: int, shapes: Mapping[str, Sequence[int]]
) -> Iterator[Invocation]:
    """Yield requests with random values for every input of a model."""
    for number in range(REQUESTS):
        samples = sample_model(repository.model(model), shapes, is_random=True, seed=seed + number)
        datatypes = {name: "BF16" for name, (_, datatype) in samples.items() if datatype == "BF16"}
        arrays = {name: array for name, (array, _) in samples.items()}
        yield encode_inputs(arrays, datatypes)


def encode_inputs(
    request: Inputs | Invocation, datatypes: Mapping[str, str] | None = None
) -> Invocation:
    """Return a request as bytes, unless it is encoded already."""
    if isinstance(request, Invocation):
        return request
    encoded = encode_request(request, datatypes=datatypes)
    return Invocation(encoded.body, encoded.content_type, {})
