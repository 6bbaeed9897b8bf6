"""From app.py to a prediction: the template that ``cdk synth`` writes, run by the Triton server."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import boto3
import demo
import numpy as np
import pytest
from demo_output import accuracy_of, assert_steps_in_order
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


def run_demo(assembly: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run ``make demo`` without the two steps that the fixtures of this module have done."""
    monkeypatch.setattr(demo, "ASSEMBLY", assembly)
    monkeypatch.setattr(demo, "synthesize", lambda: None)
    monkeypatch.setattr(demo, "running_endpoint", lambda: nullcontext(url))
    return demo.main()


def test_make_demo_prints_what_the_template_contains(
    assembly: Path,
    endpoints: LocalEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``make demo`` prints the counts of resources and the variants of the template, and no
    JSON.
    """
    assert run_demo(assembly, endpoints.endpoint_url, monkeypatch) == 0
    printed = capsys.readouterr().out
    assert_steps_in_order(printed, "Synthesize", "Send")
    assert accuracy_of(printed) >= 95

    resources = json.loads((assembly / "TritonDemo.template.json").read_text())["Resources"]
    types = Counter(resource["Type"] for resource in resources.values())
    rows = [line.split() for line in printed.splitlines()]
    assert f"contains {len(resources)} resources:" in printed
    for name in demo.TELLING_TYPES:
        assert [str(types[name]), name] in rows
    telling = sum(types[name] for name in demo.TELLING_TYPES)
    assert [str(len(resources) - telling), "other", "types"] in rows

    for resource in resources.values():
        if resource["Type"] == "AWS::SageMaker::EndpointConfig":
            for variant in resource["Properties"]["ProductionVariants"]:
                shown = [variant["VariantName"], variant["InstanceType"]]
                assert any(row[1:3] == shown for row in rows)


def test_make_demo_fails_if_the_accuracy_is_too_low(
    assembly: Path,
    endpoints: LocalEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``make demo`` exits with 1 if the accuracy is below the one of the model."""
    monkeypatch.setattr(demo, "WANTED_ACCURACY", 1.0)
    assert run_demo(assembly, endpoints.endpoint_url, monkeypatch) == 1
    assert "This is too low" in capsys.readouterr().out


def test_make_demo_marks_wrong_answers(capsys: pytest.CaptureFixture[str]) -> None:
    """The table of answers has the first pictures and the wrong answers after them, marked."""
    digits = np.arange(40) % 10
    labels = digits.copy()
    labels[[4, 20]] = 9
    demo.print_answers(demo.Answers(labels, np.full(40, 0.5, np.float32), digits))

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    marked = [row for row in rows if row[-1:] == ["wrong"]]
    assert marked == [["4", "4", "9", "0.500", "wrong"], ["20", "0", "9", "0.500", "wrong"]]
    pictures = [int(row[0]) for row in rows if row and row[0].isdigit()]
    assert pictures == [*range(10), 20]


def test_make_demo_prints_why_the_endpoint_cannot_start(
    assembly: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If the endpoint cannot start, ``make demo`` prints the error and exits with its code."""
    monkeypatch.setattr(demo, "ASSEMBLY", assembly)
    monkeypatch.setattr(demo, "ENDPOINT", "digit")
    with pytest.raises(SystemExit) as caught, demo.running_endpoint():
        pass
    assert caught.value.code == 2
    printed = capsys.readouterr()
    assert "no such endpoint, got 'digit'" in printed.err
    assert "{" not in printed.out
