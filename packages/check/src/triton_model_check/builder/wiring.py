"""Connects the outputs of steps to inputs of other steps, by the given names or else by equal
names.

An output that is not mapped is *offered* under its own name. It becomes a tensor of the ensemble if
a step or an output of the ensemble reads that name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import quoted
from triton_model_check.builder.tensors import ModelInput, ModelOutput
from triton_model_check.model_config.schema import data_type_name


@dataclass(frozen=True)
class PlannedStep:
    """A step as the user declared it; ``config`` is ``None`` if only the name of the model is
    known.

    ``inputs`` and ``outputs`` map the tensor names of the model to those of the ensemble.
    """

    model_name: str
    config: Any
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    model_version: int

    @property
    def max_batch_size(self) -> int | None:
        """The ``max_batch_size`` of the model, or ``None`` if unknown."""
        return None if self.config is None else int(self.config.max_batch_size)

    def tensors(self, kind: str) -> Mapping[str, Any]:
        """Return the known inputs or outputs (``"input"``, ``"output"``) of the model by name."""
        return (
            {}
            if self.config is None
            else {tensor.name: tensor for tensor in getattr(self.config, kind)}
        )


class Tensor(NamedTuple):
    """One use of a tensor of the ensemble: the index of the step, and the name in its model."""

    step: int
    name: str


@dataclass
class Wiring:
    """The maps of each step, in the order in which the steps were declared."""

    input_maps: list[dict[str, str]]
    output_maps: list[dict[str, str]]
    offers: dict[str, list[Tensor]] = field(default_factory=dict)

    def readers(self, tensor: str) -> Iterator[Tensor]:
        """Yield the inputs that read a tensor of the ensemble."""
        return _ends(self.input_maps, tensor)

    def writers(self, tensor: str) -> Iterator[Tensor]:
        """Yield the outputs that write a tensor of the ensemble."""
        return _ends(self.output_maps, tensor)

    def in_order(self) -> list[int]:
        """Return the indices of the steps, each after the steps that it reads from."""
        waiting = list(range(len(self.input_maps)))
        ordered: list[int] = []
        while waiting:
            pending = {tensor for index in waiting for tensor in self.output_maps[index].values()}
            ready = (
                index for index in waiting if pending.isdisjoint(self.input_maps[index].values())
            )
            following = next(ready, waiting[0])  # a cycle keeps its order; a rule reports it
            waiting.remove(following)
            ordered.append(following)
        return ordered


def _ends(maps: list[dict[str, str]], tensor: str) -> Iterator[Tensor]:
    return (
        Tensor(i, key)
        for i, entries in enumerate(maps)
        for key, value in entries.items()
        if value == tensor
    )


def wire(
    steps: tuple[PlannedStep, ...], inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Wiring:
    """Return the maps of all steps."""
    wiring = Wiring([dict(step.inputs) for step in steps], [dict(step.outputs) for step in steps])
    for index, step in enumerate(steps):
        for name in step.tensors("output"):
            if name not in step.outputs:
                wiring.offers.setdefault(name, []).append(Tensor(index, name))
    for index in range(len(steps)):
        _map_inputs(wiring, steps, index, inputs)
    for index, step in enumerate(steps):
        for tensor in step.inputs.values():
            _take(wiring, steps, tensor, inputs, reader=index)
    for tensor in outputs:
        _take(wiring, steps, tensor, inputs, reader=None)
    return wiring


def _map_inputs(
    wiring: Wiring, steps: tuple[PlannedStep, ...], index: int, inputs: tuple[str, ...]
) -> None:
    """Map the inputs without a mapping to the tensor of the same name;
    optional ones only if it exists.
    """
    for name, tensor in steps[index].tensors("input").items():
        if name in wiring.input_maps[index]:
            continue
        found = _take(wiring, steps, name, inputs, reader=index)
        if found or not tensor.optional:
            wiring.input_maps[index][name] = name


def _take(
    wiring: Wiring,
    steps: tuple[PlannedStep, ...],
    tensor: str,
    inputs: tuple[str, ...],
    reader: int | None,
) -> bool:
    """Let the step that offers a tensor write it; return whether the tensor has a source."""
    offers = [offer for offer in wiring.offers.get(tensor, ()) if offer.step != reader]
    written = [
        end
        for end in wiring.writers(tensor)
        if end.step != reader or end.name in steps[end.step].outputs
    ]
    sources = [_title(steps, end) for end in dict.fromkeys((*written, *offers))]
    if tensor in inputs:
        sources.insert(0, f'the ensemble\'s input "{tensor}"')
    # The rules report a tensor that the user mapped twice.
    if len(sources) > 1 and any(offer not in written for offer in offers):
        raise InvalidValueError(_ambiguous(steps, tensor, sources, reader))
    if offers and not written:
        wiring.output_maps[offers[0].step][offers[0].name] = tensor
    return bool(sources)


def _title(steps: tuple[PlannedStep, ...], end: Tensor) -> str:
    return f'output "{end.name}" of step {end.step + 1} ("{steps[end.step].model_name}")'


def _ambiguous(
    steps: tuple[PlannedStep, ...], tensor: str, sources: list[str], reader: int | None
) -> str:
    owner = (
        "the ensemble" if reader is None else f'step {reader + 1} ("{steps[reader].model_name}")'
    )
    return (
        f'{owner} reads "{tensor}", which is ambiguous, got {" and ".join(sources)}; '
        f'rename one of them with outputs={{"{tensor}": ...}}'
    )


Declared = TypeVar("Declared", ModelInput, ModelOutput)


def batch_size_of(name: str, given: int | None, steps: Sequence[PlannedStep]) -> int:
    """Return the ``max_batch_size`` of an ensemble: the given one,
    or the smallest of its models.
    """
    if given is not None:
        return given
    sizes = {
        step.model_name: step.max_batch_size for step in steps if step.max_batch_size is not None
    }
    batching = [model for model, size in sizes.items() if size]
    if batching and len(batching) < len(sizes):
        others = [model for model in sizes if model not in batching]
        raise InvalidValueError(
            f'ensemble "{name}": max_batch_size cannot be inferred, got {quoted(batching)} with '
            f'batching and {quoted(others)} without; write Ensemble("{name}", max_batch_size=...)'
        )
    return min(sizes.values(), default=0)


def inferred(
    tensor: Declared, kind: str, steps: Sequence[PlannedStep], wiring: Wiring, max_batch_size: int
) -> Declared:
    """Return an input or output (``kind``) of the ensemble,
    completed from the steps that use it.
    """
    ends = wiring.readers(tensor.name) if kind == "input" else wiring.writers(tensor.name)
    found = [(steps[end.step], steps[end.step].tensors(kind).get(end.name)) for end in ends]
    known = [(step, declared) for step, declared in found if declared is not None]
    data_type, dims = tensor.data_type, tuple(tensor.dims)
    if data_type == "TYPE_INVALID" and known:
        data_type = data_type_name(known[0][1].data_type)  # type: ignore[assignment]
    if not dims:
        dims = _merged([_dims(step, declared, max_batch_size) for step, declared in known])
    return replace(tensor, data_type=data_type, dims=dims)


def _dims(step: PlannedStep, declared: Any, max_batch_size: int) -> tuple[int, ...]:
    """The dims of a step as the ensemble writes them;
    without batching they include the batch axis.
    """
    full = (-1, *declared.dims) if step.max_batch_size else tuple(declared.dims)
    return full[1:] if max_batch_size else full


def _merged(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The narrowest shape that all agree with, or else the first, which a rule reports."""
    first = shapes[0] if shapes else ()
    alike = [shape for shape in shapes if len(shape) == len(first)]
    return tuple(
        next((size for size in sizes if size != -1), -1) for sizes in zip(*alike, strict=True)
    )
