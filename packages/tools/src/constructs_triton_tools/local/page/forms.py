"""What a form needs to call a model: tensors, labels and steps, from the model's configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.datatypes import by_data_type
from constructs_triton_tools.local.sources.inference_type import (
    DEFAULT_MODEL,
    is_decoupled,
    used_inference_type,
)
from triton_model_check.checks.loaded_config import complete
from triton_model_check.model.ensemble_graph import EnsembleGraph, Step
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model.python_calls import find_calls
from triton_model_check.model_config.schema import data_type_name
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.archive_outline import outline_archive

if TYPE_CHECKING:
    from constructs_triton_tools.local.gateway.inference_components import LocalVariant

_MOST_LABELS = 10_000
_MOST_STEPS = 200


def model_form(running: LocalVariant, target_model: str | None) -> dict[str, object]:
    """Return the form of a variant or component, or of one target model."""
    container = running.server.container
    repository = _repository(running, target_model)
    folder = _called_model(repository, container.environment.get(DEFAULT_MODEL, ""))
    if folder is None:
        return {
            "model": "",
            "inputs": [],
            "outputs": [],
            "steps": [],
            "notes": ["no model was found"],
        }
    kind = used_inference_type(container, container.image)
    decoupled = kind == "infer" and is_decoupled(repository.path, folder.name)
    return {**describe_model(repository, folder), "inference_type": kind, "is_decoupled": decoupled}


def describe_model(repository: ModelRepository, folder: ModelFolder) -> dict[str, object]:
    """Return the tensors and steps of one model of a repository."""
    loaded = complete(folder)
    config = loaded.config
    return {
        "model": folder.name,
        "max_batch_size": int(config.max_batch_size),
        "inputs": [_tensor(tensor) for tensor in config.input],
        "outputs": [
            {**_tensor(tensor), "labels": _labels(folder, tensor)} for tensor in config.output
        ],
        "steps": steps_of(repository.models, folder),
        "notes": list(loaded.notes),
    }


def _repository(running: LocalVariant, target_model: str | None) -> ModelRepository:
    """Return the unpacked models, or the outline of an archive that is not unpacked yet."""
    if running.multi_model is None or target_model is None:
        return ModelRepository.from_directory(running.server.models_directory.parent / "model")
    unpacked = running.multi_model.unpacked(target_model)
    if unpacked.is_dir():
        return ModelRepository.from_directory(unpacked)
    return outline_archive(running.multi_model.archive(target_model)).repository


def _called_model(repository: ModelRepository, default_model: str) -> ModelFolder | None:
    if default_model in repository.models:
        return repository.models[default_model]
    if repository.root_model is not None:
        return repository.root_model
    return next((repository.models[name] for name in repository.top_level_models()), None)


def _tensor(tensor: Any) -> dict[str, object]:
    datatype = by_data_type(data_type_name(tensor.data_type))
    return {
        "name": tensor.name,
        "datatype": "" if datatype is None else datatype.datatype,
        "dims": [int(dim) for dim in tensor.dims],
        "optional": bool(getattr(tensor, "optional", False)),
        "format": _format(tensor),
    }


def _format(tensor: Any) -> str:
    """Return the layout that the configuration declares; outputs have none."""
    field = tensor.DESCRIPTOR.fields_by_name.get("format")
    if field is None:
        return "FORMAT_NONE"
    return str(field.enum_type.values_by_number[tensor.format].name)


def _labels(folder: ModelFolder, output: Any) -> list[str]:
    """Return the lines of the output's label file; nothing if it has none."""
    name = output.label_filename
    if not name or ".." in Path(name).parts or Path(name).is_absolute():
        return []
    lines = (folder.read(name) or b"").decode("utf-8", "replace").splitlines()
    return lines[:_MOST_LABELS]


def steps_of(models: Mapping[str, ModelFolder], folder: ModelFolder) -> list[dict[str, object]]:
    """Return the models that run for a call, in order: steps of an ensemble, and models that models
    call.

    Steps of the same ``layer`` run at the same time. A model without steps is its own only step.
    """
    if folder.is_ensemble:
        return list(_ensemble_steps(folder))[:_MOST_STEPS]
    found: dict[str, dict[str, object]] = {}
    _add_called(models, folder, 0, found)
    return list(found.values())[:_MOST_STEPS]


def _ensemble_steps(folder: ModelFolder) -> Iterable[dict[str, object]]:
    graph = EnsembleGraph.from_model(folder)
    layers = _layers(graph)
    for step in sorted(graph.steps, key=lambda each: (layers[each.index], each.index)):
        yield {
            "model": step.model_name,
            "layer": layers[step.index],
            "reads": sorted(set(step.input_map.values())),
            "writes": sorted(set(step.output_map.values())),
            "called_by": "",
        }


def _layers(graph: EnsembleGraph) -> Sequence[int]:
    """Return the layer of each step: one more than the highest of the steps
    that write its inputs.
    """
    layers = [0] * len(graph.steps)
    # Each pass settles at least one further layer.
    for _ in graph.steps:
        before = list(layers)
        for step in graph.steps:
            sources: list[Step] = []
            for name in step.input_map.values():
                sources += graph.producers.get(name, ())
            others = [layers[source.index] for source in sources if source.index != step.index]
            layers[step.index] = max(others, default=-1) + 1
        # In a cycle, which the server refuses, the layers would grow without end.
        has_cycle = max(layers) > len(layers)
        if layers == before or has_cycle:
            break
    return layers


def _add_called(
    models: Mapping[str, ModelFolder],
    folder: ModelFolder,
    layer: int,
    found: dict[str, dict[str, object]],
    caller: str = "",
) -> None:
    if folder.name in found or layer > _MOST_STEPS:
        return
    found[folder.name] = {
        "model": folder.name,
        "layer": layer,
        "reads": [],
        "writes": [],
        "called_by": caller,
    }
    for name in find_calls(folder).models:
        if name in models:
            _add_called(models, models[name], layer + 1, found, folder.name)
