"""The shapes that a plan accepts: for each dynamic input, the smallest, the usual and the largest.

``trtexec`` builds a plan for one row where it gets no shapes of a dynamic model, and only warns. It
ends with an error where it gets shapes of a static model. So the shapes follow from the model file,
and what the file leaves open must be given. Source: NVIDIA TensorRT v10.16,
samples/common/sampleEngines.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean
from triton_model_check.model_files.model_file import ModelFile, ModelTensor

__all__ = ["Range", "input_ranges", "read_input_ranges", "shape_arguments"]

_FORM = "--input has the form NAME=DIMS, for example --input input_ids=1..8..16,1..128..512"
_LARGEST = 2**31 - 1
_UNUSABLE = re.compile(r"[,'\n\r]")


class Range(NamedTuple):
    """The sizes of one dimension."""

    least: int
    usual: int
    most: int


@dataclass(frozen=True, slots=True)
class InputRange:
    """The shapes of one input."""

    name: str
    dims: tuple[Range, ...]


def read_input_ranges(texts: Sequence[str]) -> dict[str, tuple[Range, ...]]:
    """Read options such as ``input_ids=1..8..16,512``: each dimension is a size, or
    least..usual..most.

    Raises:
        InvalidValueError: an option has another form, or an input has two.
    """
    ranges: dict[str, tuple[Range, ...]] = {}
    for text in texts:
        name, separator, dims = text.rpartition("=")
        if not (separator and name and dims):
            raise InvalidValueError(f"--input: must have a name and dims, got {text!r}; {_FORM}")
        if name in ranges:
            raise InvalidValueError(
                f'--input {name}: is given twice; write all dims of "{name}" in one option'
            )
        ranges[name] = tuple(_range(name, part) for part in dims.split(","))
    return ranges


def _range(name: str, text: str) -> Range:
    sizes = [
        int(number) if number.isdecimal() and number.isascii() else 0
        for number in text.strip().split("..")
    ]
    if len(sizes) == 1:
        given = Range(*sizes * 3)
    elif len(sizes) == 3:
        given = Range(*sizes)
    else:
        given = Range(0, 0, 0)
    if not 1 <= given.least <= given.usual <= given.most <= _LARGEST:
        raise InvalidValueError(
            f"--input {name}: each dim must be a size of at least 1, or three sizes that do not "
            f"decrease, got {text!r}; {_FORM}"
        )
    return given


def input_ranges(
    file: ModelFile, config: Any, given: Mapping[str, tuple[Range, ...]], usual_batch: int
) -> tuple[InputRange, ...]:
    """Return the shapes of the inputs that have a variable size; none for a static model.

    Args:
        file: The ONNX file.
        config: Configuration of the model; its dims fix sizes that the file leaves open.
        given: What the user gave, by the name of the input.
        usual_batch: Batch size for which the plan is fastest, if the configuration has batches.

    Raises:
        InvalidValueError: a size is not known, or contradicts the file or the configuration.
    """
    inputs = {tensor.name: tensor for tensor in file.inputs}
    for name in given:
        if name not in inputs:
            hint = did_you_mean(name, inputs) or f"the inputs are {', '.join(inputs)}"
            raise InvalidValueError(f"--input {name}: {file.path} has no such input; {hint}")
    batch = Range(1, usual_batch, config.max_batch_size) if config.max_batch_size else None
    declared = {tensor.name: tuple(tensor.dims) for tensor in config.input}
    found = [
        _InputShapes(
            file, tensor, batch, declared.get(tensor.name), given.get(tensor.name)
        ).settle()
        for tensor in file.inputs
        if not tensor.is_optional
    ]
    return tuple(shape for shape in found if shape is not None)


@dataclass(frozen=True, slots=True)
class _InputShapes:
    file: ModelFile
    tensor: ModelTensor
    batch: Range | None
    declared: tuple[int, ...] | None
    given: tuple[Range, ...] | None

    def settle(self) -> InputRange | None:
        shape = self.tensor.shape or ()
        self._check_rank(shape)
        self._check_batch(shape)
        dims = tuple(self._dim(index, size) for index, size in enumerate(shape))
        if -1 not in shape:
            return None
        if _UNUSABLE.search(self.tensor.name):
            raise self._error(
                "trtexec cannot read a name with a comma, a quote or a line break", "rename it"
            )
        return InputRange(self.tensor.name, dims)

    def _check_rank(self, shape: Sequence[int]) -> None:
        if self.given is not None and len(self.given) != len(shape):
            raise self._error(
                f"has {len(shape)} dims with the batch dimension, got {len(self.given)} in --input",
                f"write {len(shape)} dims; the file has {_shown(shape)}",
            )

    def _check_batch(self, shape: Sequence[int]) -> None:
        if self.batch is None:
            return
        if not shape or shape[0] != -1:
            raise self._error(
                f"max_batch_size is {self.batch.most}, but the first dim of the file is fixed, got "
                f"{_shown(shape)}",
                "export the model with a dynamic first dim, or set max_batch_size to 0",
            )
        if self.given is not None and self.given[0].most < self.batch.most:
            raise self._error(
                f"the largest batch of --input must be at least max_batch_size, {self.batch.most}, "
                f"got {self.given[0].most}, because Triton does not load such a plan",
                "raise it, or lower max_batch_size",
            )

    def _dim(self, index: int, size: int) -> Range:
        chosen = self.given[index] if self.given is not None else None
        if size >= 0:
            if chosen is not None and chosen != Range(size, size, size):
                raise self._error(
                    f"dim {index} is fixed in the file, got --input "
                    f"{chosen.least}..{chosen.usual}..{chosen.most}",
                    f"write {size}, or export the model with a dynamic dim",
                )
            return Range(size, size, size)
        if chosen is not None:
            return chosen
        if index == 0 and self.batch is not None:
            return self.batch
        declared = self._declared(index)
        if declared > 0:
            return Range(declared, declared, declared)
        shape = self.tensor.shape or ()
        shown = _shown(shape)
        example = ",".join("1..8..16" if dim < 0 else str(dim) for dim in shape)
        raise self._error(
            f"dim {index} has no fixed size in the file or the configuration, got {shown}",
            f"set --input {self.tensor.name}={example} with the smallest, usual and largest size",
        )

    def _declared(self, index: int) -> int:
        """The size that the configuration has, or -1. Its dims begin after the batch dimension."""
        dims = self.declared or ()
        place = index - (self.batch is not None)
        return dims[place] if 0 <= place < len(dims) else -1

    def _error(self, message: str, hint: str) -> InvalidValueError:
        return InvalidValueError(f'{self.file.path}: input "{self.tensor.name}": {message}; {hint}')


def _shown(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def shape_arguments(ranges: Sequence[InputRange]) -> Iterator[str]:
    """Yield the arguments of ``trtexec``; none for a static model."""
    for option, field in (("minShapes", "least"), ("optShapes", "usual"), ("maxShapes", "most")):
        shapes = []
        for tensor in ranges:
            sizes = "x".join(str(getattr(dim, field)) for dim in tensor.dims)
            shapes.append(f"{_quoted(tensor.name)}:{sizes}")
        if shapes:
            yield f"--{option}={','.join(shapes)}"


def _quoted(name: str) -> str:
    return f"'{name}'" if ":" in name else name
