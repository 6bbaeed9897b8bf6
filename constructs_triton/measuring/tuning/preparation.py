"""What a search needs to know before it measures: options, models, limits and data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton.errors import InvalidValueError
from constructs_triton.local.options import LocalRunOptions
from constructs_triton.local.server.installation import find_installation
from constructs_triton.measuring.sample_inputs import sample_inputs
from constructs_triton.measuring.tuning.candidates import Candidate, SearchSpace
from constructs_triton.measuring.tuning.machine import Machine
from constructs_triton.measuring.tuning.model_settings import find_space, read_settings
from constructs_triton.measuring.tuning.outputs import REQUESTS
from constructs_triton.measuring.tuning.repositories import TunedRepository
from constructs_triton.model_config.backends import infer_backend
from constructs_triton.model_repository import ModelRepository
from constructs_triton_client import Invocation
from constructs_triton_client.wire import encode_request

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Inputs",
    "TuneOptions",
    "draw_requests",
    "encode_inputs",
    "find_only_model",
    "find_spaces",
    "find_stand_in",
]

Inputs = Mapping[str, "NDArray[Any]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    """How a search is run; see ``tune``."""

    latency_ms: float
    percentile: float = 95
    budget_minutes: float = 20
    output: Path = Path("tuned")
    step_seconds: float = 4.0
    parameters: Mapping[str, Sequence[str]] | None = None
    calls: Mapping[str, Sequence[str]] | None = None
    shapes: Mapping[str, Sequence[int]] | None = None
    accept_stand_in: bool = False
    compares_outputs: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.step_seconds <= 600:
            raise InvalidValueError(f"step_seconds: must be from 1 to 600, got {self.step_seconds:g}; use 4")
        if not 1 <= self.budget_minutes <= 7 * 24 * 60:
            raise InvalidValueError(
                f"budget_minutes: must be at least 1 and at most a week, got {self.budget_minutes:g}; use 20"
            )


def find_only_model(repository: ModelRepository) -> str:
    """Return the name of the only top-level model.

    Raises:
        InvalidValueError: there is none, or there are several.
    """
    names = repository.top_level_models()
    if len(names) != 1:
        raise InvalidValueError(
            f"--model: is required, because {repository.path} has {len(names)} top-level models "
            f"({', '.join(names) or 'none'}); name one of them"
        )
    return names[0]


def find_spaces(
    found: ModelRepository, model: str, options: TuneOptions, machine: Machine
) -> tuple[TunedRepository, dict[str, SearchSpace]]:
    """Return the model with its present settings and those of all models that it needs, and their limits.

    Raises:
        InvalidValueError: a search cannot tune one of the models.
    """
    found.model(model)
    gpus, parameters = len(machine.gpus), options.parameters or {}
    folders = [found.models[name] for name in found.closure(model)]
    searched = [folder for folder in folders if not folder.is_ensemble]
    present = Candidate(tuple((each.name, read_settings(each, gpus, parameters)) for each in searched))
    spaces = {
        folder.name: find_space(
            folder, options.latency_ms, cpus=machine.cpus, gpu_count=gpus, parameters=parameters
        )
        for folder in searched
    }
    return TunedRepository(found, model, present), spaces


def find_stand_in(repository: TunedRepository, options: TuneOptions, local: LocalRunOptions) -> str:
    """Return a sentence about the backends that a stand-in replaces; empty if there is none.

    Raises:
        InvalidValueError: there is one, and it was not accepted.
    """
    if local.get("engine"):
        return ""
    server = local.get("tritonserver")
    installed = find_installation(Path(server) if server else None).backend_names()
    backends = {infer_backend(folder).backend for folder in repository.folders}
    missing = sorted(backends - installed - {""})
    if not missing:
        return ""
    names = ", ".join(missing)
    if not options.accept_stand_in:
        raise InvalidValueError(
            f"{repository.model}: this server does not have the backend {names}. The best settings of a "
            "stand-in are not those of the backend; add --engine docker, or --accept-stand-in to search "
            "with the stand-in"
        )
    return f"Figures of a Python stand-in, not of the backend {names}."


def draw_requests(repository: Path, model: str, options: TuneOptions) -> Iterator[Invocation]:
    """Yield requests with random values for every input of a model.

    Raises:
        InvalidValueError: the inputs of the model are not known.
    """
    for number in range(REQUESTS):
        seed = options.seed + number
        samples = sample_inputs(repository, model, [], options.shapes or {}, is_random=True, seed=seed)
        datatypes = {name: "BF16" for name, (_, datatype) in samples.items() if datatype == "BF16"}
        arrays = {name: array for name, (array, _) in samples.items()}
        encoded = encode_request(arrays, datatypes=datatypes)
        yield Invocation(encoded.body, encoded.content_type, {})


def encode_inputs(request: Inputs | Invocation) -> Invocation:
    """Return a request as bytes, unless it is encoded already."""
    if isinstance(request, Invocation):
        return request
    encoded = encode_request(request)
    return Invocation(encoded.body, encoded.content_type, {})
