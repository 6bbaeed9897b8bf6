"""From app.py to a prediction: the template that ``cdk synth`` writes, run by the Triton server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
from programs import PROJECT, synthesize_app
from triton_server import needs_server

from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint

sys.path.insert(0, str(PROJECT / "assets" / "training"))

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("examples")]


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What app.py synthesizes, with CDK's own template validation as errors (cdk.json)."""
    directory = tmp_path_factory.mktemp("demo") / "cdk.out"
    synthesize_app(PROJECT / "app.py", directory)
    return directory


@pytest.fixture(scope="module")
def endpoints(assembly: Path) -> Iterator[LocalEndpoint]:
    with LocalEndpoint.from_assembly(assembly) as local:
        yield local


@pytest.fixture(scope="module")
def runtime(endpoints: LocalEndpoint) -> Any:
    return boto3.client("sagemaker-runtime", endpoint_url=endpoints.endpoint_url)


def test_held_out_digits_are_classified_through_boto3(runtime: Any) -> None:
    """Images that were never trained on are classified with at least 95 percent accuracy,
    through boto3.
    """
    from split import encode_png, held_out_images
    from tritonclient.grpc import model_config_pb2  # noqa: F401 - users may have imported it

    from constructs_triton_client.wire import decode_response, encode_request

    images, digits = held_out_images()
    pngs = np.array([encode_png(image) for image in images], dtype=object)[:, np.newaxis]
    labels: list[int] = []
    for start in range(0, len(pngs), 64):
        request = encode_request({"image": pngs[start : start + 64]})
        response = runtime.invoke_endpoint(
            EndpointName="digits", ContentType=request.content_type, Body=request.body
        )
        result = decode_response(response["Body"].read(), response["ContentType"])
        labels += [int(label) for label in result["label"][:, 0]]
    assert np.mean(np.array(labels) == digits) >= 0.95


def target_model(assembly: Path, name: str) -> str:
    """The archive to which the deployment would give a model's name."""
    template = json.loads((assembly / "TritonDemo.template.json").read_text())
    (sync,) = [
        each for each in template["Resources"].values() if each["Type"] == "Custom::TritonModelSync"
    ]
    archives = json.loads((assembly / sync["Properties"]["ManifestKey"]).read_text())["archives"]
    return {str(each["Name"]): str(each["TargetModel"]) for each in archives}[name]


def test_json_and_binary_give_the_same_answer(endpoints: LocalEndpoint, assembly: Path) -> None:
    """The JSON form of a request is answered with the same probabilities as the binary form."""
    client = TritonClient.for_endpoint("catalog", endpoint_url=endpoints.endpoint_url)
    sentiment = target_model(assembly, "sentiment")
    texts = {
        "text": np.array([[b"what a wonderful, helpful tool"], [b"a terrible waste"]], dtype=object)
    }
    binary = client.infer(texts, TargetModel=sentiment)
    plain = client.infer(texts, TargetModel=sentiment, binary=False)
    assert set(binary) == set(plain)
    for name in binary:
        np.testing.assert_array_equal(binary[name], plain[name])


def test_a_request_that_is_not_an_image_is_a_model_error(runtime: Any) -> None:
    """A request that the model rejects is SageMaker's ModelError, with the model's message."""
    from constructs_triton_client.wire import encode_request

    request = encode_request({"image": np.array([[b"no picture"]], dtype=object)})
    with pytest.raises(runtime.exceptions.ModelError) as caught:
        runtime.invoke_endpoint(
            EndpointName="digits", ContentType=request.content_type, Body=request.body
        )
    assert "PNG" in caught.value.response["OriginalMessage"]
