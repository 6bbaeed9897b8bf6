"""The client over the in-memory transport."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tritonclient.grpc import model_config_pb2

from constructs_triton.client import (
    HttpTransport,
    InMemoryTransport,
    ModelIndex,
    RequestedOutput,
    TritonClient,
)
from constructs_triton.client.input_checks import check_inputs
from constructs_triton.datatypes import DATATYPES
from constructs_triton.errors import InvalidValueError, InvocationError, RequestEncodingError


def double(inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {"Y": inputs["X"] * 2, "Z": inputs["X"] + 1}


def one(value: float) -> dict[str, NDArray[Any]]:
    return {"X": np.array([value], dtype="f4")}


@pytest.mark.parametrize("in_binary", [True, False])
def test_infer_there_and_back(in_binary: bool) -> None:
    """Arrays go out and come back in either format, and only the outputs that were asked for."""
    client = TritonClient(InMemoryTransport(double))
    result = client.infer(one(1.5), ["Y"], binary=in_binary)
    assert {name: array.tolist() for name, array in result.items()} == {"Y": [3.0]}
    assert list(client.infer(one(1.5), [RequestedOutput("Z", binary_data=in_binary)])) == ["Z"]


def test_calls_are_recorded_for_users_tests() -> None:
    """Every call keeps its arrays and options."""
    transport = InMemoryTransport(double)
    TritonClient(transport, target_model="a.tar.gz").infer(one(2), InferenceId="i")
    (call,) = transport.calls
    assert call.inputs["X"].tolist() == [2.0]
    assert call.options == {"InferenceId": "i", "TargetModel": "a.tar.gz"}


def test_target_model_goes_through_the_index() -> None:
    """A logical name becomes the archive's, that of a call before that of the client."""
    transport = InMemoryTransport(double)
    index = ModelIndex.from_json('{"version": 1, "target_models": {"a": "a-1f.tar.gz", "b": "b-2e.tar.gz"}}')
    client = TritonClient(transport, target_model="a", index=index)
    client.infer(one(1))
    client.infer(one(1), TargetModel="b")
    client.infer(one(1), TargetModel="a-0d.tar.gz")
    assert [call.options["TargetModel"] for call in transport.calls] == [
        "a-1f.tar.gz",
        "b-2e.tar.gz",
        "a-0d.tar.gz",
    ]


@pytest.mark.parametrize("target_model", [5, ""])
def test_target_model_that_is_no_name_is_refused(target_model: Any) -> None:
    """Neither a number nor nothing is a model's name, with an index or without."""
    transport = InMemoryTransport(double)
    for index in (None, ModelIndex({"a": "a-1f.tar.gz"})):
        with pytest.raises(InvalidValueError, match="target_model: must be the name"):
            TritonClient(transport, index=index).infer(one(1), TargetModel=target_model)
    assert transport.calls == []


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 2, "target_models": {}}', '{"version": 1}'])
def test_malformed_index_is_refused(text: str) -> None:
    """An index of another shape or version names its source."""
    with pytest.raises(InvalidValueError, match=r"^s3://b/index\.json: "):
        ModelIndex.from_json(text, "s3://b/index.json")


def test_infer_many_keeps_order_and_its_bounds() -> None:
    """Results come in order, no more run at once than allowed, and the source is not read ahead of need."""
    lock, running, most, drawn = threading.Lock(), 0, 0, 0
    turn = threading.Barrier(3)

    def model(inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        turn.wait(timeout=30)
        with lock:
            running -= 1
        return {"Y": inputs["X"]}

    def requests() -> Any:
        nonlocal drawn
        for value in range(30):
            drawn += 1
            yield one(value)

    results = TritonClient(InMemoryTransport(model)).infer_many(requests(), max_concurrency=3)
    assert next(results)["Y"].tolist() == [0.0]
    assert drawn <= 6
    assert [result["Y"].item() for result in results] == list(range(1, 30))
    assert most == 3


def test_infer_many_stops_at_the_first_error() -> None:
    """An error is raised in its place, and what was not yet sent never is."""

    def model(inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        if inputs["X"][0] == 1:
            raise InvocationError("model: fell over", status=500)
        return dict(inputs)

    transport = InMemoryTransport(model)
    results = TritonClient(transport).infer_many(map(one, range(1000)), max_concurrency=2)
    assert next(results)["X"].tolist() == [0.0]
    with pytest.raises(InvocationError, match="fell over"):
        list(results)
    assert len(transport.calls) < 10
    with pytest.raises(InvalidValueError, match="max_concurrency"):
        TritonClient(transport).infer_many([], max_concurrency=0)


EVENTS = (
    b': a comment\n\ndata: {"text_output":"gr\xc3\xbc\xc3\x9f"}\r\n\r\n'
    b'data: {"text_output":\r\ndata:  "dich"}\n\nevent: x\rdata: {"done":true}\r\r'
)


def test_stream_cut_at_every_byte_gives_the_same_answers() -> None:
    """Events are whole whatever the cut, in two parts or in parts of any size."""
    cuts = [[EVENTS[:at], EVENTS[at:]] for at in range(len(EVENTS) + 1)]
    cuts += [[EVENTS[i : i + n] for i in range(0, len(EVENTS), n)] for n in range(1, 9)]
    for parts in cuts:
        client = TritonClient(InMemoryTransport(double, parts=parts))
        answers = list(client.infer_stream({"text_input": np.array([1, 2]), "stream": True}))
        assert answers == [{"text_output": "grüß"}, {"text_output": "dich"}, {"done": True}]


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (b'data: {"error":"out of tokens"}\n\n', "event 0: the model failed, got out of tokens"),
        (b"data: [1]\n\n", "event 0: must be a JSON object"),
        (b'data: {"a":1}', "the stream was cut off"),
        (b"data: \xff\n\n", "must be valid UTF-8, got 0xff"),
    ],
)
def test_faulty_streams_are_errors_of_ours(stream: bytes, message: str) -> None:
    """A failing model, a stream that is cut off and one that is no JSON each say so."""
    with pytest.raises((InvocationError, ValueError), match=message):
        list(TritonClient(InMemoryTransport(double, parts=[stream])).infer_stream({}))


def test_multi_model_endpoints_cannot_stream() -> None:
    """Streaming has no TargetModel, so it is refused before anything is sent."""
    with pytest.raises(InvalidValueError, match="cannot stream"):
        TritonClient(InMemoryTransport(double), target_model="a.tar.gz").infer_stream({})


def test_options_that_plain_http_cannot_carry_are_refused() -> None:
    """A container never sees EnableExplanations, so asking for it is a mistake."""
    with pytest.raises(InvalidValueError, match="EnableExplanations"):
        TritonClient(HttpTransport("http://127.0.0.1:9")).infer(one(1), EnableExplanations="x")
    with pytest.raises(InvalidValueError, match="http://"):
        HttpTransport("localhost:8080")


def test_asynchronous_inference_needs_sagemaker() -> None:
    """Only a SageMaker endpoint has an S3 of its own."""
    with pytest.raises(InvalidValueError, match="InMemoryTransport"):
        TritonClient(InMemoryTransport(double)).infer_async(one(1), input_location="s3://b/in")


@dataclass
class PlainInput:
    """An input as any object may describe it."""

    name: str = "X"
    data_type: Any = "TYPE_FP32"
    dims: tuple[int, ...] = (3, -1)
    optional: bool = False


@dataclass
class PlainConfig:
    """A model's configuration as any object may hold it."""

    input: list[PlainInput]
    max_batch_size: int = 4


def test_checked_inputs_pass_and_are_sent() -> None:
    """What the configuration allows goes through, an absent optional input too."""
    config = PlainConfig([PlainInput(), PlainInput("W", optional=True)])
    client = TritonClient(InMemoryTransport(double), model_config=config)
    assert client.infer({"X": np.ones((2, 3, 7), dtype="f4")})["Y"].shape == (2, 3, 7)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"x": np.ones((1, 3, 1), "f4")}, 'input "x": the model has no such input'),
        ({"XX": np.ones((1, 3, 1), "f4")}, 'did you mean "X"'),
        ({}, 'input "X": is required'),
        ({"X": np.ones((1, 3, 1))}, "must be TYPE_FP32, got TYPE_FP64 .*astype"),
        ({"X": np.ones((3, 1), "f4")}, r"shape must fit \[-1, 3, -1\], got \[3, 1\]; .*array\[None\]"),
        ({"X": np.ones((5, 3, 1), "f4")}, "1 to 4 elements, got 5"),
        ({"X": np.ones((0, 3, 1), "f4")}, "1 to 4 elements, got 0"),
        ({"X": np.ones((2, 3, 1), "f4"), "W": np.ones((1, 3, 1), "f4")}, "all must have the same batch"),
    ],
)
def test_inputs_that_triton_would_refuse_are_never_sent(inputs: dict[str, Any], message: str) -> None:
    """Name, datatype, shape and batch are held against the configuration first."""
    transport = InMemoryTransport(double)
    config = PlainConfig([PlainInput(), PlainInput("W", optional=True)])
    with pytest.raises(RequestEncodingError, match=message):
        TritonClient(transport, model_config=config).infer(inputs)
    assert transport.calls == []


def test_tritons_own_configuration_is_understood() -> None:
    """The numbers of the protobuf enum mean what the table of data types says."""
    for row in DATATYPES:
        config = model_config_pb2.ModelConfig(
            input=[{"name": "X", "data_type": getattr(model_config_pb2, row.data_type), "dims": [1]}]
        )
        array = np.zeros(1, dtype=row.dtype) if row.item_size else np.array([b""], dtype=object)
        check_inputs({"X": array}, config, {"X": "BF16"} if row.datatype == "BF16" else None)
        with pytest.raises(RequestEncodingError, match=f"must be {row.data_type}"):
            check_inputs({"X": np.zeros(1, "f4" if row.datatype != "FP32" else "f8")}, config)


def test_importing_the_client_loads_nothing_heavy() -> None:
    """No Node, no gRPC, no gevent, no boto3, and no HTTP stack before the first call."""
    heavy = ["jsii", "aws_cdk", "grpc", "gevent", "boto3", "botocore", "urllib3", "google.protobuf", "rich"]
    code = "import sys, json, constructs_triton.client; print(json.dumps(list(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)
    assert not set(heavy) & set(loaded)
