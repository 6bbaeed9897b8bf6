"""Implicit state of sequence models. Source: triton core, GenerateInitialStateData."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from constructs_triton_core.datatypes import by_data_type
from triton_model_check.checks.files import pointer_path
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.fixes.steps import put, remove, string, unsafe
from triton_model_check.model_config.schema import data_type_name
from triton_model_check.untrusted.budget import count_elements

_LENGTH_BYTES = 4
_SOURCE = "triton core SequenceBatchScheduler"


@rule("state-initial-count", "sequence", source=_SOURCE, hint="remove all but one initial_state")
def initial_count(model: ModelUnderCheck) -> Iterator[Problem]:
    """A state has at most one ``initial_state``, and only one state has the same input.

    The schema allows several for future use; Triton does not.
    """
    seen: set[str] = set()
    for place, state in _states(model):
        if len(state.initial_state) > 1:
            message = f'initial_state field for state input "{state.input_name}" must contain '
            message += "exactly one or zero"
            others = range(1, len(state.initial_state))
            fix = unsafe(*(remove("initial_state", index) for index in others))
            yield Problem(f"{message} element, got {len(state.initial_state)}", place, fix=fix)
        if state.initial_state and state.input_name in seen:
            message = f'State input name "{state.input_name}" specified more than once'
            yield Problem(message, place, "give each state its own input_name")
        seen.update([state.input_name] if state.initial_state else [])


@rule("state-initial", "sequence", source=_SOURCE)
def initial(model: ModelUnderCheck) -> Iterator[Problem]:
    """An initial state has a name, the data type of its state, matching fixed dims, and data.

    The data is ``zero_data``, or a ``data_file`` in the folder ``initial_state`` of the model.
    """
    for place, state in _states(model):
        if len(state.initial_state) != 1:
            continue
        start = state.initial_state[0]
        where = (*place, "initial_state")
        if not start.name:
            message = "Field 'name' must be set when using initial_state"
            fix = unsafe(put(string(state.input_name), 0, "name"))
            yield Problem(message, where, "add name to initial_state", fix=fix)
        if start.data_type != state.data_type:
            message = "The data type used for 'initial_state' does not match the state data type"
            wanted = data_type_name(state.data_type)
            got = data_type_name(start.data_type)
            typed = unsafe(put(wanted, 0, "data_type"))
            yield Problem(f"{message}, got {got}", where, f"set data_type: {wanted}", fix=typed)
        if not _fits(start.dims, state.dims):
            message = f"'initial_state' dims don't match 'state' dims {list(state.dims)}"
            hint = "write the dims of the state, with a size for each -1"
            same = (
                unsafe(put(f"{list(state.dims)}", 0, "dims"))
                if _fits(state.dims, state.dims)
                else None
            )
            yield Problem(f"{message}, got {list(start.dims)}", where, hint, fix=same)
        if start.WhichOneof("state_data") is None:
            message = "initial_state setting expects state to have state_data set"
            yield Problem(
                message, where, "add zero_data: true", fix=unsafe(put("true", 0, "zero_data"))
            )


@rule("state-initial-file", "sequence", source=_SOURCE, needs_files=True)
def initial_file(model: ModelUnderCheck) -> Iterator[Problem]:
    """The file of an initial state is in the folder ``initial_state``, and is large enough.

    A file of strings may have any size.
    """
    for place, state in _states(model):
        for start in state.initial_state:
            if start.WhichOneof("state_data") == "data_file":
                field = (*place, "initial_state", "data_file")
                yield from file_problems(model, "initial_state", start.data_file, start, field)


@warning(
    "state-pairing",
    "sequence",
    source="triton core SequenceStates::OutputState, read in the releases from 22.04 to 26.05",
)
def pairing(model: ModelUnderCheck) -> Iterator[Problem]:
    """The ``input_name`` and the ``output_name`` of states are in the same alphabetical order.

    Triton sorts the inputs and the outputs of all states by name, and passes the first output to
    the first input. Names in another order give each state the value of another one, without an
    error. States that share one buffer for input and output are skipped.
    """
    states = model.config.sequence_batching.state
    inputs = {each.input_name for each in states}
    outputs = {each.output_name for each in states}
    if len(inputs) < len(states) or len(outputs) < len(states):
        return  # Triton ignores a state whose name another one has.
    written = {state.input_name: state.output_name for state in states}
    paired = dict(zip(sorted(inputs), sorted(outputs), strict=True))
    for place, state in _states(model):
        got = paired[state.input_name]
        if got != written[state.input_name] and not state.use_same_buffer_for_input_output:
            message = f'Triton passes the state output "{got}" to the state input'
            yield Problem(
                f'{message} "{state.input_name}", not "{state.output_name}"',
                place,
                "rename them so that the inputs and the outputs have the same alphabetical order",
            )
            return


def file_problems(
    model: ModelUnderCheck, folder: str, file: str, tensor: Any, field: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield what is wrong with a file of raw tensor data that ``field`` names."""
    fault = _file_fault(model, folder, file, tensor)
    if fault:
        yield Problem(fault[0], field, fault[1], path=pointer_path(model, folder, *file.split("/")))


def _file_fault(
    model: ModelUnderCheck, folder: str, file: str, tensor: Any
) -> tuple[str, str] | None:
    """Return message and hint if a file of tensor data is missing or has a wrong size."""
    size = model.folder.size_of(folder, *file.split("/"))
    if size is None:
        message = f'failed to open file for read: no such file or directory, got "{folder}/{file}"'
        return message, f"add the file {folder}/{file} to the model's folder"
    if folder == "warmup" and data_type_name(tensor.data_type) == "TYPE_STRING":
        return _string_fault(
            model.folder.read(folder, *file.split("/")), f"{folder}/{file}", tensor.dims
        )
    row = by_data_type(data_type_name(tensor.data_type))
    if row is None or row.item_size is None or any(dim < 0 for dim in tensor.dims):
        return None
    needed = count_elements(tensor.dims) * row.item_size
    if size < needed:
        message = (
            f"setting expects {needed} bytes, "
            f"but the data provided from {file} only has {size} bytes"
        )
        return f"{folder} {message}", "write the bytes of the whole tensor to the file"
    return None


def _string_fault(content: bytes | None, file: str, dims: Sequence[int]) -> tuple[str, str] | None:
    """Check the strings of a file: each has its length in four bytes before it."""
    wanted = 0 if content is None or any(dim < 0 for dim in dims) else count_elements(dims)
    position = count = 0
    while content is not None and count < wanted:
        start = position + _LENGTH_BYTES
        position = start + int.from_bytes(content[position:start], "little")
        if max(start, position) > len(content):
            message = (
                f"incomplete string {count} of {wanted} in {file}, which has {len(content)} bytes"
            )
            return (
                message,
                "write each string with its length in four bytes, little-endian, before it",
            )
        count += 1
    if content is not None and wanted > 0 and position < len(content):
        return f"{file} has more than {wanted} strings", "write the strings of one row"
    return None


def _fits(start: Any, state: Any) -> bool:
    if len(start) != len(state):
        return False
    return all(dim != -1 and other in (-1, dim) for dim, other in zip(start, state, strict=True))


def _states(model: ModelUnderCheck) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for index, state in enumerate(model.config.sequence_batching.state):
        yield ("sequence_batching", "state", index), state
