"""Implicit state of sequence models. Source: triton core, GenerateInitialStateData."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from constructs_triton.datatypes import by_data_type
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.model_config.schema import data_type_name

__all__: list[str] = []

_SOURCE = "triton core SequenceBatchScheduler"


@rule("state-initial-count", "sequence", source=_SOURCE, hint="keep one initial_state")
def initial_count(model: ModelUnderCheck) -> Iterator[Problem]:
    """A state has at most one initial state, and a state input only one description.

    The field is repeated in the schema only for the future's sake.
    """
    seen: set[str] = set()
    for place, state in _states(model):
        if len(state.initial_state) > 1:
            yield Problem(f'state "{state.input_name}" has {len(state.initial_state)} initial states', place)
        if state.initial_state and state.input_name in seen:
            yield Problem(f'state input "{state.input_name}" is described twice', place, "keep one")
        seen.update([state.input_name] if state.initial_state else [])


@rule("state-initial", "sequence", source=_SOURCE)
def initial(model: ModelUnderCheck) -> Iterator[Problem]:
    """An initial state has a name, the state's type, fixed dims that fit, and data.

    Data is ``zero_data`` or a ``data_file`` in the model's folder ``initial_state``.
    """
    for place, state in _states(model):
        if len(state.initial_state) != 1:
            continue
        start = state.initial_state[0]
        where = (*place, "initial_state")
        if not start.name:
            yield Problem("initial_state has no name", where, "give it one")
        if start.data_type != state.data_type:
            message = f"initial_state differs from its state, got {data_type_name(start.data_type)}"
            yield Problem(message, where, f"write {data_type_name(state.data_type)}")
        if not _fits(start.dims, state.dims):
            message = f"initial_state has dims {list(start.dims)}, its state {list(state.dims)}"
            yield Problem(message, where, "give as many dims, all of them fixed")
        if start.WhichOneof("state_data") is None:
            yield Problem("initial_state has no data", where, "write zero_data: true")


@rule("state-initial-file", "sequence", source=_SOURCE, needs_files=True)
def initial_file(model: ModelUnderCheck) -> Iterator[Problem]:
    """The file of an initial state lies in the folder ``initial_state`` and is long enough.

    Strings are taken as they are, at any length.
    """
    for place, state in _states(model):
        for start in state.initial_state:
            if start.WhichOneof("state_data") == "data_file":
                fault = file_fault(model, "initial_state", start.data_file, start)
                if fault:
                    yield Problem(*fault[:1], (*place, "initial_state", "data_file"), fault[1])


def file_fault(model: ModelUnderCheck, folder: str, file: str, tensor: Any) -> tuple[str, str] | None:
    """What is wrong with a file of raw tensor data, and the mend; ``None`` where it will do."""
    size = model.folder.size_of(folder, *file.split("/"))
    if size is None:
        return f'no such file in {folder}, got "{file}"', f"add {folder}/{file}"
    row = by_data_type(data_type_name(tensor.data_type))
    if row is None or row.item_size is None or any(dim < 0 for dim in tensor.dims):
        return None
    needed = math.prod(tensor.dims) * row.item_size
    if size < needed:
        return f'"{file}" has {size} bytes and {needed} are needed', "store the whole tensor"
    return None


def _fits(start: Any, state: Any) -> bool:
    if len(start) != len(state):
        return False
    return all(dim != -1 and other in (-1, dim) for dim, other in zip(start, state, strict=True))


def _states(model: ModelUnderCheck) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for index, state in enumerate(model.config.sequence_batching.state):
        yield ("sequence_batching", "state", index), state
