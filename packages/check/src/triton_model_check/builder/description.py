"""Describes a configuration for display: its settings, its tensors with their
batch axis, its graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from triton_model_check.model.ensemble_graph import EnsembleGraph
from triton_model_check.model_config.schema import data_type_name

_SHOWN_SEPARATELY = frozenset({"name", "input", "output", "ensemble_scheduling"})


@dataclass(frozen=True)
class TensorDescription:
    """One input or output; ``shape`` is that of a request,
    with ``"batch"`` first in a batching model; ``("...",)`` if it is not known.
    """

    direction: str
    name: str
    data_type: str
    dims: tuple[int, ...]
    shape: tuple[int | str, ...]
    notes: str


@dataclass(frozen=True)
class ConfigDescription:
    """The content of a ``ModelConfig`` message; ``name`` is that of the folder if the file has
    none.

    ``filled_in`` are the fields that Triton sets when it loads the model. ``notes`` say what is
    unknown.
    """

    name: str
    config: Any
    filled_in: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @cached_property
    def settings(self) -> list[tuple[str, str]]:
        """Every field that is set, except tensors and steps, with its value as text."""
        return [
            (descriptor.name, _line(value))
            for descriptor, value in _set_fields(self.config)
            if descriptor.name not in _SHOWN_SEPARATELY
        ]

    @cached_property
    def tensors(self) -> list[TensorDescription]:
        """Inputs, then outputs, in the order of the file."""
        return [*self._tensors("input"), *self._tensors("output")]

    def _tensors(self, direction: str) -> Iterator[TensorDescription]:
        """Yield the description of each input or output."""
        for tensor in getattr(self.config, direction):
            dims = tuple(tensor.dims)
            batch = ("batch",) if self.config.max_batch_size > 0 else ()
            data_type = data_type_name(tensor.data_type) if tensor.data_type else ""
            filled_in = ["filled in"] if direction in self.filled_in else []
            notes = ", ".join([*_notes(tensor), *filled_in])
            # Only an output without known dims has none: what is written has at least one.
            shape = (*batch, *dims) if dims else ("...",)
            yield TensorDescription(direction, tensor.name, data_type, dims, shape, notes)

    @property
    def graph(self) -> EnsembleGraph | None:
        """The steps of an ensemble."""
        if not self.config.HasField("ensemble_scheduling"):
            return None
        return EnsembleGraph.from_config(self.config, self.name)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set, and the shape of each tensor,
        as values that JSON can hold.
        """
        return {
            "name": self.name,
            "config": _plain(self.config),
            "tensors": [vars(tensor) for tensor in self.tensors],
            "filled_in": sorted(self.filled_in),
            "notes": list(self.notes),
        }


def _set_fields(message: Any) -> list[tuple[Any, Any]]:
    """The fields that are set, in the order of the schema's file."""
    return sorted(message.ListFields(), key=lambda pair: pair[0].index)


def _notes(tensor: Any) -> Iterator[str]:
    for descriptor, value in _set_fields(tensor):
        if descriptor.name in ("name", "data_type", "dims"):
            continue
        plain = _field(descriptor, value)
        if descriptor.name == "reshape":
            plain = plain.get("shape", [])
        yield descriptor.name if plain is True else f"{descriptor.name} {plain}"


def _plain(message: Any) -> Any:
    if message.DESCRIPTOR.name == "ModelParameter":
        return message.string_value
    return {
        descriptor.name: _field(descriptor, value) for descriptor, value in _set_fields(message)
    }


def _field(descriptor: Any, value: Any) -> Any:
    if descriptor.message_type and descriptor.message_type.GetOptions().map_entry:
        inner = descriptor.message_type.fields_by_name["value"]
        return {str(key): _single(inner, value[key]) for key in sorted(value)}
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return _single(descriptor, value)
    return [_single(descriptor, item) for item in value]


def _single(descriptor: Any, value: Any) -> Any:
    if descriptor.message_type:
        return _plain(value)
    if descriptor.enum_type:
        known = descriptor.enum_type.values_by_number.get(value)
        return known.name if known else value
    return value


def _line(value: Any) -> str:
    """A value as text, with one line for each entry of a list or a map."""
    from google.protobuf import text_format

    if hasattr(value, "ListFields"):
        return (
            text_format.MessageToString(value, as_one_line=True, use_short_repeated_primitives=True)
            or "{}"
        )
    if hasattr(value, "items"):
        return "\n".join(f"{key} = {_entry(value[key])}" for key in sorted(value))
    if hasattr(value, "__len__") and not isinstance(value, str):
        return "\n".join(_line(item) for item in value)
    return str(value)


def _entry(value: Any) -> str:
    return str(value.string_value) if hasattr(value, "string_value") else _line(value)
