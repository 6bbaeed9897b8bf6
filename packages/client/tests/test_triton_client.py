"""The client over the in-memory transport."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import boto3
import numpy as np
import pytest
import urllib3
from loopback_server import Answer, Exchange, binary_answer, run_server
from numpy.typing import NDArray

from constructs_triton_client import (
    Classification,
    HttpTransport,
    InferenceResult,
    InMemoryTransport,
    Invocation,
    ModelIndex,
    Reply,
    RequestedOutput,
    SequencePosition,
    Transport,
    TritonClient,
    triton_client,
)
from constructs_triton_client.wire import encode_response
from constructs_triton_core.errors import InvalidValueError, InvocationError, RequestEncodingError


def double(inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {"Y": inputs["X"] * 2, "Z": inputs["X"] + 1}


def one(value: float) -> dict[str, NDArray[Any]]:
    return {"X": np.array([value], dtype="f4")}


class FixedTransport:
    """A transport as a user writes it: it records invocations and returns one reply."""

    def __init__(self) -> None:
        self.sent: list[Invocation] = []

    def invoke(self, invocation: Invocation) -> Reply:
        self.sent.append(invocation)
        response = encode_response({"C": np.array([b"0.9:3:cat"], dtype=object)}, model_version="4")
        return Reply(response.body, response.content_type, {"RequestId": "r"})

    def stream(self, invocation: Invocation) -> Iterator[bytes]:
        self.sent.append(invocation)
        yield b'data: {"a":1}\n\n'


@pytest.mark.parametrize("in_binary", [True, False])
def test_infer_in_either_format(in_binary: bool) -> None:
    """Arrays are sent and returned in either format,
    and only the requested outputs are returned.
    """
    client = TritonClient(InMemoryTransport(double))
    result = client.infer(one(1.5), ["Y"], binary=in_binary)
    assert {name: array.tolist() for name, array in result.items()} == {"Y": [3.0]}
    assert list(client.infer(one(1.5), [RequestedOutput("Z", binary_data=in_binary)])) == ["Z"]


def test_own_transport() -> None:
    """A transport of the user's own gets invocations, and its reply becomes the result."""
    transport = FixedTransport()
    as_protocol: Transport = transport
    client = TritonClient(as_protocol, target_model="m")
    result = client.infer(one(1), id="7", SessionId="s")
    assert isinstance(result, InferenceResult)
    assert result.classifications("C") == [[Classification(0.9, 3, "cat")]]
    assert (result.model_version, result.metadata) == ("4", {"RequestId": "r"})
    assert result.latency_seconds is not None
    assert 0 <= result.latency_seconds < 60
    assert transport.sent[0].options == {"SessionId": "s", "TargetModel": "m"}
    events = TritonClient(transport).infer_stream({"text": "x"}, InferenceId="i")
    assert list(events) == [{"a": 1}]
    assert transport.sent[1] == Invocation(
        b'{"text":"x"}', "application/json", {"InferenceId": "i"}
    )


@pytest.mark.parametrize("is_http", [False, True])
def test_latency_is_that_of_the_request_alone(
    monkeypatch: pytest.MonkeyPatch, is_http: bool
) -> None:
    """Creating boto3's client or urllib3's pool, before the first request,
    is no part of its latency.
    """
    clock = [0.0]

    class SlowSession(boto3.Session):
        def client(self, *arguments: Any, **options: Any) -> Any:
            clock[0] += 10
            return super().client(*arguments, **options)

    class SlowPool(urllib3.PoolManager):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            clock[0] += 10
            super().__init__(*arguments, **options)

    def answer(_: Exchange) -> Answer:
        clock[0] += 0.25
        return binary_answer()

    monkeypatch.setattr(urllib3, "PoolManager", SlowPool)
    monkeypatch.setattr(triton_client, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    with run_server() as server:
        monkeypatch.setattr(server, "next_answer", answer)
        session = SlowSession("akid", "secret", region_name="eu-central-1")
        client = (
            TritonClient(HttpTransport(server.url))
            if is_http
            else TritonClient.for_endpoint("demo", session=session, endpoint_url=server.url)
        )
        assert client.infer(one(1)).latency_seconds == 0.25
    assert clock == [10.25]


def test_infer_passes_every_argument() -> None:
    """Each argument of infer reaches the request."""
    transport = FixedTransport()
    TritonClient(transport).infer(
        {"X": np.array([1], "u2")},
        ["C"],
        binary=True,
        binary_output=False,
        datatypes={"X": "BF16"},
        id="7",
        sequence=SequencePosition(5),
        priority=2,
        timeout_microseconds=9,
        parameters={"beam": 4},
    )
    body = transport.sent[0].body
    header = json.loads(body[: body.rindex(b"}") + 1])
    assert header["id"] == "7"
    assert header["inputs"][0]["datatype"] == "BF16"
    assert header["outputs"] == [{"name": "C", "parameters": {"binary_data": False}}]
    sequence = {"sequence_id": 5, "sequence_start": False, "sequence_end": False}
    assert header["parameters"] == {**sequence, "priority": 2, "timeout": 9, "beam": 4}
    TritonClient(transport).infer(one(1), binary=False)
    assert transport.sent[1].content_type == "application/json"


def test_name_in_place_of_a_transport_is_rejected() -> None:
    """The error names the ways to create a client."""
    name: Any = "demo"
    with pytest.raises(
        InvalidValueError, match=r"transport: .* got 'demo'; .*TritonClient.for_endpoint\(name"
    ):
        TritonClient(name)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        (
            "infer",
            {"timeout": 5},
            r"default_config\(read_timeout_seconds=5, max_attempts=1\) to TritonClient.for_",
        ),
        ("infer_many", {"timeout": 5}, r"for a time limit, pass config="),
        ("infer_raw", {"timeout": 5}, r"for a time limit, pass config="),
        (
            "infer",
            {"model_name": "m"},
            "remove it, or for a multi-model endpoint, pass target_model to",
        ),
        (
            "infer",
            {"zzz": 1},
            "it takes inputs, outputs, binary, binary_output, datatypes, id, sequence, prio",
        ),
        ("infer_raw", {"zzz": 1}, "it takes data$"),
        ("infer_stream", {"zzz": 1}, "it takes fields$"),
        (
            "infer_many",
            {"zzz": 1},
            "it takes requests, outputs, max_concurrency, binary, binary_output",
        ),
        ("infer", {"max_concurency": 1}, "it takes inputs, outputs"),
    ],
)
def test_unknown_options_are_rejected(method: str, options: dict[str, Any], message: str) -> None:
    """The error lists the arguments of the method in their order, or leads to what does it."""
    transport = FixedTransport()
    start = (
        rf"^TritonClient.{method}\(\) got an unexpected keyword argument '{next(iter(options))}'; "
    )
    with pytest.raises(TypeError, match=f"{start}.*{message}"):
        getattr(TritonClient(transport), method)(one(1), **options)
    assert not transport.sent


def test_infer_raw_sends_only_the_bytes() -> None:
    """A raw request is the input's bytes, with a header size of 0 and the options of infer."""
    transport = FixedTransport()
    client = TritonClient(transport, target_model="m.tar.gz")
    assert client.infer_raw(b"jpeg", InferenceId="i").model_version == "4"
    client.infer_raw(np.array([1], "<u2"))
    assert [invocation.body for invocation in transport.sent] == [b"jpeg", b"\x01\x00"]
    assert transport.sent[0].content_type.endswith("json-header-size=0")
    assert transport.sent[0].options == {"InferenceId": "i", "TargetModel": "m.tar.gz"}


def test_target_model_is_looked_up_in_the_index() -> None:
    """A model name becomes its archive; the name of a call replaces that of the client."""
    transport = InMemoryTransport(double)
    index = ModelIndex.from_json(
        '{"version": 1, "target_models": {"a": "a-1f.tar.gz", "b": "b-2e.tar.gz"}}'
    )
    client = TritonClient(transport, target_model="a", index=index)
    client.infer(one(1))
    client.infer(one(1), TargetModel="b")
    client.infer(one(1), TargetModel="a-0d.tar.gz")
    sent = [call.options["TargetModel"] for call in transport.calls]
    assert sent == ["a-1f.tar.gz", "b-2e.tar.gz", "a-0d.tar.gz"]
    TritonClient(transport, index=index).infer(one(1))
    assert transport.calls[3].options == {}


@pytest.mark.parametrize("target_model", [5, ""])
def test_invalid_target_model_is_rejected(target_model: Any) -> None:
    """A number and an empty string are not names of models, with an index or without."""
    transport = InMemoryTransport(double)
    for index in (None, ModelIndex({"a": "a-1f.tar.gz"})):
        with pytest.raises(
            InvalidValueError, match="target_model: must be the name of a model or archive"
        ):
            TritonClient(transport, index=index).infer(one(1), TargetModel=target_model)
    assert transport.calls == []


def test_infer_many_keeps_order_and_stops_at_the_first_error() -> None:
    """Results are in order; after an error, requests that are not yet sent are dropped."""

    def model(inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        if inputs["X"][0] == 1:
            raise InvocationError("model: fell over", status=500)
        return {"X": inputs["X"], "Y": inputs["X"]}

    transport = InMemoryTransport(model)
    client = TritonClient(transport)
    results = client.infer_many(
        map(one, range(1000)), ["X"], max_concurrency=2, id="7", InferenceId="i"
    )
    first = next(results)
    assert ({name: array.tolist() for name, array in first.items()}, first.id) == (
        {"X": [0.0]},
        "7",
    )
    with pytest.raises(InvocationError, match="fell over"):
        list(results)
    assert len(transport.calls) < 10
    assert transport.calls[0].options == {"InferenceId": "i"}
    with pytest.raises(InvalidValueError, match="max_concurrency: must be at least 1, got 0"):
        client.infer_many([], max_concurrency=0)


def test_infer_many_runs_eight_at_a_time() -> None:
    """The default is eight requests at a time: the generator is read sixteen requests ahead."""
    drawn = []

    def requests() -> Iterator[dict[str, NDArray[Any]]]:
        for value in range(100):
            drawn.append(value)
            yield one(value)

    results = TritonClient(InMemoryTransport(double)).infer_many(requests())
    next(results)
    assert len(drawn) == 16


@pytest.mark.parametrize("options", [{}, {"TargetModel": "b.tar.gz"}])
def test_multi_model_endpoints_cannot_stream(options: dict[str, str]) -> None:
    """Streaming has no TargetModel, so a target model is rejected before anything is sent."""
    client = TritonClient(InMemoryTransport(double), target_model=None if options else "a.tar.gz")
    name = "b" if options else "a"
    with pytest.raises(
        InvalidValueError, match=f'endpoints cannot stream, got "{name}.tar.gz"; use infer'
    ):
        client.infer_stream({}, **options)


def test_asynchronous_inference_needs_sagemaker() -> None:
    """Asynchronous inference is a feature of SageMaker, so another transport is rejected."""
    message = "got InMemoryTransport; create the client with TritonClient"
    with pytest.raises(InvalidValueError, match=message):
        TritonClient(InMemoryTransport(double)).infer_async(one(1), input_location="s3://b/in")


def test_arguments_of_for_endpoint() -> None:
    """for_endpoint passes its arguments to the transport and the client."""
    index = ModelIndex({"a": "a-1f.tar.gz"})
    client = TritonClient.for_endpoint("demo", target_model="a", index=index, model_config=None)
    assert (client.target_model, client.index, client.model_config) == ("a", index, None)
    default = TritonClient.for_endpoint("demo")
    assert (default.target_model, default.index, default.model_config) == (None, None, None)
    default = TritonClient(InMemoryTransport(double))
    assert (default.target_model, default.index, default.model_config) == (None, None, None)
    with pytest.raises(
        InvalidValueError, match=r"S3 URI: must be s3://bucket/key, got 'index.json'"
    ):
        TritonClient.for_endpoint("demo", index="index.json")
    with pytest.raises(InvocationError, match=r"InvalidRegionError.*set region_name"):
        TritonClient.for_endpoint("demo", region_name="no region").infer(one(1))


def test_inputs_are_not_checked_without_a_configuration() -> None:
    """Without model_config any input is sent; unsupported dtypes still raise an error."""
    transport = FixedTransport()
    TritonClient(transport).infer({"unknown": np.zeros(1)})
    assert len(transport.sent) == 1
    with pytest.raises(RequestEncodingError):
        TritonClient(transport).infer({"unknown": np.zeros(1, "c8")})


def test_importing_the_client_loads_nothing_heavy() -> None:
    """Node, gRPC, gevent, boto3 and urllib3 are not imported before the first call."""
    heavy = [
        "jsii",
        "aws_cdk",
        "grpc",
        "gevent",
        "boto3",
        "botocore",
        "urllib3",
        "google.protobuf",
        "rich",
    ]
    code = "import sys, json, constructs_triton_client; print(json.dumps(list(sys.modules)))"
    loaded = json.loads(
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout
    )
    assert not set(heavy) & set(loaded)
