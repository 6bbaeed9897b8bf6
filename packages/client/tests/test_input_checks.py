"""Inputs checked against the model's configuration."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from constructs_triton_client import InMemoryTransport, TritonClient
from constructs_triton_client.input_checks import check_inputs
from constructs_triton_core.errors import InvalidValueError, RequestEncodingError


@dataclass
class PlainInput:
    """An input of any object that has the attributes of Triton's message."""

    name: str = "X"
    data_type: Any = "TYPE_FP32"
    dims: tuple[int, ...] = (3, -1)
    optional: bool = False
    allow_ragged_batch: bool = False
    is_shape_tensor: bool = False


@dataclass
class PlainConfig:
    """A configuration of any object that has the attributes of Triton's message."""

    input: list[PlainInput]
    max_batch_size: int = 4


CONFIG = PlainConfig([PlainInput(), PlainInput("W", optional=True)])


def ones(*shape: int) -> Any:
    return np.ones(shape, "f4")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"x": ones(1, 3, 1)}, 'input "x": the model has no such input; did you mean "X"'),
        ({"image": ones(1, 3, 1)}, '''input "image": .*; the model's inputs are "W" and "X"'''),
        ({}, 'input "X": is required by the model, got nothing; add it'),
        ({"W": ones(1, 3, 1)}, 'input "X": is required by the model, got "W"; add it'),
        (
            {"X": np.ones((1, 3, 1))},
            r"must be TYPE_FP32, got TYPE_FP64 \(dtype float64\); .*astype\('<f4'",
        ),
        (
            {"X": ones(3, 1)},
            r"must fit \[-1, 3, -1\], got \[3, 1\]; add the batch axis .*array\[None\]",
        ),
        (
            {"X": ones(1, 4, 1)},
            r"must fit .*, got \[1, 4, 1\]; reshape it so that axis 1 has size 3",
        ),
        # Channels that are last: reshaping would mix them with the pixels.
        (
            {"X": ones(1, 4, 3)},
            r"must fit .*, got \[1, 4, 3\]; put the axes .* array.transpose\(0, 2, 1\)",
        ),
        ({"X": ones(3)}, r"shape must fit \[-1, 3, -1\], got \[3\]; reshape it to 3 dimensions"),
        ({"X": ones(5, 3, 1)}, 'input "X": a batch must have 1 to 4 elements, got 5; split it'),
        ({"X": ones(0, 3, 1)}, "1 to 4 elements, got 0; send at least one"),
        (
            {"X": ones(2, 3, 1), "W": ones(1, 3, 1)},
            "inputs: all must have the same batch size, got ",
        ),
    ],
)
def test_inputs_that_triton_would_reject_are_not_sent(inputs: dict[str, Any], message: str) -> None:
    """Name, datatype, shape and batch are checked before anything is sent,
    by infer and infer_async.
    """
    transport = InMemoryTransport(dict)
    with pytest.raises(RequestEncodingError, match=message):
        TritonClient(transport, model_config=CONFIG).infer(inputs)
    assert transport.calls == []


def test_path_of_a_configuration_is_no_configuration() -> None:
    """The error, before any request, names the call that reads the file."""
    with pytest.raises(
        InvalidValueError, match=r'configuration, got str; write ModelConfig.read\("config'
    ):
        TritonClient(InMemoryTransport(dict), model_config="config.pbtxt")  # type: ignore[arg-type]


@pytest.mark.parametrize("batch", [1, 4])
def test_valid_inputs_are_sent(batch: int) -> None:
    """Batches up to the maximum are sent, without the optional input or with it."""
    client = TritonClient(InMemoryTransport(dict), model_config=CONFIG)
    assert client.infer({"X": ones(batch, 3, 7)})["X"].shape == (batch, 3, 7)
    assert list(client.infer({"X": ones(batch, 3, 7), "W": ones(batch, 3, 1)})) == ["X", "W"]


BATCH_OF_ONE = PlainConfig([PlainInput()], max_batch_size=1)
NO_BATCH = PlainConfig([PlainInput(), PlainInput("W", dims=(-1,))], max_batch_size=0)
RAGGED = PlainConfig([PlainInput(allow_ragged_batch=True)])
UNKNOWN_TYPE = PlainConfig([PlainInput(data_type="TYPE_FP4")])


@pytest.mark.parametrize(
    ("config", "inputs", "message"),
    [
        (BATCH_OF_ONE, {"X": ones(1, 3, 1)}, None),
        (
            BATCH_OF_ONE,
            {"X": ones(3, 1)},
            r"shape must fit \[-1, 3, -1\], got \[3, 1\]; add the batch",
        ),
        (BATCH_OF_ONE, {"X": ones(2, 3, 1)}, "1 to 1 elements, got 2"),
        (NO_BATCH, {"X": ones(3, 9), "W": ones(0)}, None),
        (
            NO_BATCH,
            {"X": ones(1, 3, 1), "W": ones(1)},
            r"must fit \[3, -1\], got \[1, 3, 1\]; reshape it",
        ),
        (
            NO_BATCH,
            {"X": ones(3), "W": ones(1)},
            r"shape must fit \[3, -1\], got \[3\]; reshape it",
        ),
        (RAGGED, {"X": ones(2, 9, 9)}, None),
        (RAGGED, {"X": ones(2, 9)}, r"shape must fit \[-1, -1, -1\], got \[2, 9\]"),
        (
            UNKNOWN_TYPE,
            {"X": ones(1, 3, 1)},
            r"must be TYPE_FP4, got TYPE_FP32 .*astype\('TYPE_FP4'\)",
        ),
    ],
)
def test_configuration_decides_batch_axis_and_sizes(
    config: PlainConfig, inputs: dict[str, Any], message: str | None
) -> None:
    """With max_batch_size 0 shapes are the dims, with 1 a batch has one element;
    ragged sizes are free.
    """
    with pytest.raises(RequestEncodingError, match=message) if message else nullcontext():
        check_inputs(inputs, config)


def test_optional_attributes_have_triton_defaults() -> None:
    """An input without the attributes for optional,
    ragged and shape inputs has none of these features.
    """

    @dataclass
    class Input:
        name: str = "X"
        data_type: str = "TYPE_FP32"
        dims: tuple[int, ...] = (3,)

    @dataclass
    class Config:
        input: tuple[Input, ...] = (Input(),)
        max_batch_size: int = 4

    check_inputs({"X": ones(4, 3)}, Config())
    for wrong in ({}, {"X": ones(1, 2)}, {"X": ones(5, 3)}):
        with pytest.raises(RequestEncodingError):
            check_inputs(wrong, Config())


def test_shape_tensors_have_no_batch() -> None:
    """The first axis of a shape tensor is not compared with the batch."""
    config = PlainConfig([PlainInput(), PlainInput("S", dims=(), is_shape_tensor=True)])
    check_inputs({"X": ones(2, 3, 1), "S": ones(9)}, config)


@pytest.mark.parametrize("shape", [(1, 1), (2, 1)])
def test_hint_for_numbers_in_place_of_strings_leads_to_success(shape: tuple[int, ...]) -> None:
    """The array that the hint shows is accepted, with the shape of the one that was sent."""
    client = TritonClient(
        InMemoryTransport(dict), model_config=PlainConfig([PlainInput("X", "TYPE_STRING", (1,))])
    )
    with pytest.raises(
        RequestEncodingError, match="send strings or bytes, for example numpy"
    ) as refused:
        client.infer({"X": ones(*shape)})
    example = eval(
        str(refused.value).rpartition("for example ")[2].partition("; ")[0], {"numpy": np}
    )
    assert client.infer({"X": example})["X"].shape == shape


def test_pixels_in_place_of_strings_are_led_to_the_file(tmp_path: Path) -> None:
    """A model that decodes images gets the bytes of the file,
    with the array that the hint shows.
    """
    path = tmp_path / "seven.png"
    path.write_bytes(b"png")
    client = TritonClient(
        InMemoryTransport(dict), model_config=PlainConfig([PlainInput("X", "TYPE_STRING", (1,))])
    )
    names = {
        "np": np,
        "path": path,
        "open": lambda path, _: BytesIO(path.read_bytes()),
    }  # needs no close
    for wrong in (np.zeros((28, 28), np.uint8), path, BytesIO(b"png")):
        with pytest.raises(RequestEncodingError, match="for a file such as an image") as refused:
            client.infer({"X": wrong})  # type: ignore[dict-item]
        example = str(refused.value).rpartition("pass its bytes: ")[2].partition("; ")[0]
        assert client.infer({"X": eval(example, names)})["X"].tolist() == [[b"png"]]


def test_declared_datatypes_are_checked() -> None:
    """A uint16 array that is declared as BF16 is an input of TYPE_BF16, and of no other type."""
    config = PlainConfig([PlainInput(data_type="TYPE_BF16", dims=(1,))], max_batch_size=0)
    bits = np.zeros(1, "u2")
    check_inputs({"X": bits}, config, {"X": "BF16"})
    with pytest.raises(RequestEncodingError, match="must be TYPE_BF16, got TYPE_UINT16"):
        check_inputs({"X": bits}, config)
    client = TritonClient(InMemoryTransport(dict), model_config=config)
    assert client.infer({"X": bits}, datatypes={"X": "BF16"})["X"].shape == (1,)


def test_configuration_is_not_that_of_another_target_model() -> None:
    """A call that names another model than the client is not checked against the client's."""
    transport = InMemoryTransport(dict)
    config = PlainConfig([PlainInput("X", "TYPE_FP32", (1,))])
    client = TritonClient(transport, target_model="a", model_config=config)
    with pytest.raises(RequestEncodingError, match="no such input"):
        client.infer({"Y": ones(1, 1)}, TargetModel="a")
    client.infer({"Y": ones(1, 1)}, TargetModel="b")
    assert len(transport.calls) == 1


def test_raw_values_have_the_data_type_of_the_only_input() -> None:
    """The bytes of float64 would be twice as many values of FP32."""
    client = TritonClient(
        InMemoryTransport(dict), model_config=PlainConfig([PlainInput("X", "TYPE_FP32", (2,))])
    )
    with pytest.raises(RequestEncodingError, match=r"TYPE_FP32, got TYPE_FP64 .* astype\(.<f4"):
        client.infer_raw(np.zeros(2))


@pytest.mark.parametrize("name", ["Body", "ContentType", "EndpointName"])
def test_members_that_the_client_writes_are_refused(name: str) -> None:
    """They would replace the encoded request silently."""
    given: dict[str, Any] = {name: "x"}
    with pytest.raises(InvalidValueError, match=rf"^{name}: .* sets it itself"):
        TritonClient(InMemoryTransport(dict)).infer({"X": ones(1)}, **given)
