"""What a search needs to know before it measures: models, limits and data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from constructs_triton_client import Invocation
from constructs_triton_client.wire import encode_request
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.sample_inputs import sample_model
from constructs_triton_tools.measuring.tuning.candidates import Candidate, SearchSpace
from constructs_triton_tools.measuring.tuning.machine import Machine
from constructs_triton_tools.measuring.tuning.model_settings import find_space, read_settings
from constructs_triton_tools.measuring.tuning.outputs import REQUESTS
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository
from triton_model_check.artifacts.environments.placement import with_environments
from triton_model_check.model_config.ensemble import EnsembleGraph
from triton_model_check.model_config.folder import ModelFolder
from triton_model_check.model_repository import ModelRepository

if TYPE_CHECKING:
    from numpy.typing import NDArray

Inputs = Mapping[str, "NDArray[Any]"]


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
    """Return the model with its present settings and those of all models that it needs, and their limits."""
    found.model(model)
    gpus = len(machine.gpus)
    folders = [found.models[name] for name in found.closure(model)]
    searched = [folder for folder in folders if not folder.is_ensemble]
    present = Candidate(tuple((each.name, read_settings(each, gpus, parameters)) for each in searched))
    least = _batches_of_ensembles(folders)
    spaces = {
        each.name: replace(
            find_space(each, latency_ms, cpus=machine.cpus, gpu_count=gpus, parameters=parameters),
            least_batch=least.get(each.name, 1),
        )
        for each in searched
    }
    return TunedRepository(with_environments(found), model, present, own=found), spaces


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


def encode_inputs(request: Inputs | Invocation, datatypes: Mapping[str, str] | None = None) -> Invocation:
    """Return a request as bytes, unless it is encoded already."""
    if isinstance(request, Invocation):
        return request
    encoded = encode_request(request, datatypes=datatypes)
    return Invocation(encoded.body, encoded.content_type, {})
