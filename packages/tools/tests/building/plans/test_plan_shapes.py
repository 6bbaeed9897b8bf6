"""The shapes of a plan: from the file, from the configuration, and from what the user gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.building.plans.shapes import (
    input_ranges,
    read_input_ranges,
    shape_arguments,
)
from triton_model_check.model_config.text import parse_model_config
from triton_model_check.model_files.model_file import ModelFile, ModelTensor

TENSOR = '{{ name: "{}" data_type: TYPE_FP32 dims: [{}] }}'


def arguments(
    shapes: dict[str, tuple[int, ...]], *given: str, batch: int = 0, dims: str = "", usual: int = 1
) -> list[str]:
    """Return the arguments for a model whose inputs have these shapes in the file."""
    inputs = tuple(ModelTensor(name, "TYPE_FP32", shape) for name, shape in shapes.items())
    file = ModelFile(Path("m.onnx"), "onnx", inputs)
    text = f"max_batch_size: {batch}\n" + (f"input {TENSOR.format('x', dims)}" if dims else "")
    config = parse_model_config(text)
    return list(shape_arguments(input_ranges(file, config, read_input_ranges(given), usual)))


def test_static_model_gets_no_shapes() -> None:
    """trtexec refuses shapes of a static model; an input without dims has none either."""
    assert arguments({"x": (1, 3), "scale": ()}) == []


def test_batch_comes_from_the_configuration() -> None:
    """The first dim goes from 1 to max_batch_size, and the others are those of the file."""
    assert arguments({"x": (-1, 3, 8)}, batch=16, usual=4) == [
        "--minShapes=x:1x3x8",
        "--optShapes=x:4x3x8",
        "--maxShapes=x:16x3x8",
    ]


def test_dims_of_the_configuration_fix_sizes() -> None:
    """A size that the file leaves open may be fixed by config.pbtxt,
    with and without a batch dimension.
    """
    assert arguments({"x": (-1, -1)}, batch=2, dims="512")[2] == "--maxShapes=x:2x512"
    assert arguments({"x": (-1, 5)}, dims="7, 5")[2] == "--maxShapes=x:7x5"


def test_given_sizes_of_several_inputs() -> None:
    """Every dynamic input has its shapes in one argument; names with a colon are quoted."""
    given = ("x:0=1..8..16,1..128..512", "y=1..2..4")
    assert arguments({"x:0": (-1, -1), "y": (-1,), "z": (3,)}, *given) == [
        "--minShapes='x:0':1x1,y:1",
        "--optShapes='x:0':8x128,y:2",
        "--maxShapes='x:0':16x512,y:4",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("x", r"^--input: must have a name and dims, got 'x'"),
        ("=1", r"^--input: must have a name and dims"),
        (
            "x=1..2",
            r"each dim must be a size of at least 1, or three sizes that do not decrease, "
            r"got '1..2'",
        ),
        ("x=4..2..1", r"got '4..2..1'"),
        ("x=0", r"got '0'"),
        ("x=²", r"got '²'"),
        ("y=1", r"^--input y: m.onnx has no such input; the inputs are x"),
        ("x=1", r'input "x": has 2 dims with the batch dimension, got 1 in --input; write 2 dims'),
        ("x=1..2..4,3", r"the largest batch of --input must be at least max_batch_size, 8, got 4"),
        ("x=1 x=2", r'^--input x: is given twice; write all dims of "x"'),
        ("x=8,4", r"dim 1 is fixed in the file, got --input 4..4..4; write 3"),
    ],
)
def test_wrong_sizes_are_explained(given: str, message: str) -> None:
    """A size that contradicts the file, the configuration or the form names
    the input and the fix.
    """
    with pytest.raises(InvalidValueError, match=message):
        arguments({"x": (-1, 3)}, *given.split(), batch=8)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"x": (-1, -1, 3)}, r"set --input x=1..8..16,1..8..16,3 with the smallest, usual"),
        ({"x": (1, 3)}, r"max_batch_size is 4, but the first dim of the file is fixed"),
        ({"a,b": (-1, 3)}, "trtexec cannot read a name with a comma"),
    ],
)
def test_model_without_a_plan_is_explained(
    shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    """A hint can be copied, a model with a fixed first dim has no batches,
    and a comma separates shapes.
    """
    with pytest.raises(InvalidValueError, match=message):
        arguments(shapes, batch=4)
