"""Every type of endpoint on this machine, with the Triton server behind SageMaker's runtime API."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from local_assembly import PYTHON_CONFIG, AssemblyBuilder, adding_ensemble, adding_model, below
from local_processes import loaded_target_models
from triton_server import needs_server
from tritonclient.http import InferenceServerClient, InferInput

from constructs_triton.cli import main
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

GPU_CONFIG = PYTHON_CONFIG + "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]"
OUT_OF_MEMORY = "raise MemoryError('no room for these weights')\n"


def _assembly(directory: Path) -> Path:
    builder = AssemblyBuilder(directory)
    archive = builder.asset("ensemble", adding_ensemble("pipe", 1, 10))
    builder.single_model("Pipe", archive, {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "pipe"})
    builder.endpoint("Single", {"AllTraffic": ("Pipe", 1)}, name="digits-ensemble")
    targets = {
        "gpu.tar.gz": builder.asset("gpu", below("inner", adding_model(100, config=GPU_CONFIG))),
        "root.tar.gz": builder.asset("root", adding_model(200)),
        "ensemble.tar.gz": builder.asset("mme-ensemble", adding_ensemble("whole", 300, 1)),
        "refused.tar.gz": builder.asset(
            "refused", below("m", {"config.pbtxt": "no such field: 1"})
        ),
    }
    builder.multi_model("Many", targets)
    builder.endpoint("Multi", {"AllTraffic": ("Many", 1)})
    builder.single_model("Thousand", builder.asset("thousand", below("m", adding_model(1000))))
    uncached = {"once.tar.gz": builder.asset("once", below("m", adding_model(2)))}
    builder.multi_model("Fleeting", uncached, MultiModelConfig={"ModelCacheSetting": "Disabled"})
    builder.endpoint("Uncached", {"AllTraffic": ("Fleeting", 1)})
    recorder = builder.asset("recorder", below("m", recording_model(directory.parent / "seen")))
    builder.single_model("Recorder", recorder)
    builder.endpoint(
        "Shadowed", {"Production": ("Thousand", 1)}, shadows={"Shadow": ("Recorder", 1)}
    )
    return builder.write()


def recording_model(seen: Path) -> dict[str, str]:
    """A model that adds one and writes its inputs to a file."""
    files = adding_model(1)
    noting = f"    def answer(self, x):\n        open({str(seen)!r}, 'a').write(f'{{x[0]:.0f}} ')\n"
    return {
        **files,
        "1/model.py": files["1/model.py"].replace("    def answer(self, x):\n", noting),
    }


def eventually(holds: Callable[[], bool]) -> bool:
    """Return whether a condition becomes true within a minute."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.05)
    return False


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the assembly and of the recording model's notes."""
    return tmp_path_factory.mktemp("local")


@pytest.fixture(scope="module")
def local(folder: Path) -> Iterator[LocalEndpoint]:
    """One run that serves all the endpoints of one assembly."""
    with LocalEndpoint.from_assembly(_assembly(folder / "cdk.out")) as local:
        yield local


class Caller:
    """A caller that uses only boto3."""

    def __init__(self, url: str) -> None:
        self.runtime: Any = boto3.client(
            "sagemaker-runtime",
            endpoint_url=url,
            config=Config(retries={"total_max_attempts": 1}),
        )

    def add(self, endpoint: str, value: float = 0.0, **parameters: str) -> float:
        """What the endpoint adds to ``value``, and ``value``."""
        tensor = {"name": "X", "datatype": "FP32", "shape": [1], "data": [value]}
        response = self.runtime.invoke_endpoint(
            EndpointName=endpoint,
            ContentType="application/json",
            Body=json.dumps({"inputs": [tensor]}),
            **parameters,
        )
        return float(json.load(response["Body"])["outputs"][0]["data"][0])

    def refusal(self, endpoint: str, value: float = 0.0, **parameters: str) -> dict[str, Any]:
        """The endpoint's error response."""
        with pytest.raises(ClientError) as refused:
            self.add(endpoint, value, **parameters)
        return dict(refused.value.response)


@pytest.fixture(scope="module")
def caller(local: LocalEndpoint) -> Caller:
    """A boto3 client for the run."""
    return Caller(local.endpoint_url)


def test_a_response_stream_carries_the_answer_in_parts(caller: Caller) -> None:
    """botocore decodes the event stream; the parts together are the container's answer."""
    tensor = {"name": "X", "datatype": "FP32", "shape": [50_000], "data": [1.0] * 50_000}
    response = caller.runtime.invoke_endpoint_with_response_stream(
        EndpointName="digits-ensemble",
        ContentType="application/json",
        Body=json.dumps({"inputs": [tensor]}),
    )
    parts = [event["PayloadPart"]["Bytes"] for event in response["Body"]]
    assert json.loads(b"".join(parts))["outputs"][0]["data"] == [12.0] * 50_000
    assert (response["ContentType"], response["InvokedProductionVariant"]) == (
        "application/json",
        "AllTraffic",
    )


def test_every_endpoint_is_served_under_its_own_name(local: LocalEndpoint) -> None:
    """The name is EndpointName if the template has a string, else the logical ID."""
    assert local.endpoint_names == ("digits-ensemble", "Multi", "Uncached", "Shadowed")


def test_an_ensemble_answers_json(caller: Caller) -> None:
    """The steps of the ensemble are loaded with it, and all of them run."""
    assert caller.add("digits-ensemble", 5.0) == 16.0


def test_binary_bodies_pass_through_both_ways(caller: Caller) -> None:
    """Requests of tritonclient are passed on unchanged, and tritonclient can read the responses."""
    values = np.linspace(0, 1, 150_000, dtype=np.float32)
    tensor = InferInput("X", list(values.shape), "FP32")
    tensor.set_data_from_numpy(values)
    body, header_size = InferenceServerClient.generate_request_body([tensor])
    response = caller.runtime.invoke_endpoint(
        EndpointName="digits-ensemble",
        ContentType=f"application/vnd.sagemaker-triton.binary+json;json-header-size={header_size}",
        Body=body,
    )
    size = int(response["ContentType"].rpartition("json-header-size=")[2])
    result = InferenceServerClient.parse_response_body(response["Body"].read(), header_length=size)
    np.testing.assert_allclose(result.as_numpy("Z"), values + 11, rtol=1e-6)


@pytest.mark.parametrize(
    ("target_model", "constant"),
    [("gpu.tar.gz", 100), ("root.tar.gz", 200), ("ensemble.tar.gz", 301)],
)
def test_a_multi_model_endpoint_loads_on_first_use(
    local: LocalEndpoint, caller: Caller, target_model: str, constant: float
) -> None:
    """A GPU model, one with its configuration at the root, and an ensemble: each loads,
    and is counted.
    """
    assert caller.add("Multi", 1.0, TargetModel=target_model) == 1 + constant

    def is_counted() -> bool:
        counted = {each.name: each.inferences for each in local.statistics()["Multi"]["AllTraffic"]}
        return counted[target_model] >= 1

    assert eventually(is_counted)  # Triton answers a request before it counts it


def test_models_of_a_local_run_are_warmed(
    local: LocalEndpoint, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The models are loaded without a Region and credentials; one that Triton refuses is an
    error.
    """
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    warm = ("models", "warm", "Multi", "--endpoint-url", local.endpoint_url, "--model")
    assert main([*warm, "root.tar.gz"]) == 0
    assert "root.tar.gz: loaded" in capsys.readouterr().out
    assert main([*warm, "refused.tar.gz"]) != 0


def test_gpu_instance_groups_run_on_the_cpu_and_are_reported(
    local: LocalEndpoint, caller: Caller
) -> None:
    """The model with a GPU instance group runs, and a message says once that it runs on the CPU."""
    caller.add("Multi", TargetModel="gpu.tar.gz")
    assert local.messages.count("GPU instance groups run on the CPU: inner") == 1


def test_a_model_that_the_server_rejects_is_a_model_error(caller: Caller) -> None:
    """The container's 400 is a ModelError with its status and message;
    the endpoint still responds.
    """
    refusal = caller.refusal("Multi", TargetModel="refused.tar.gz")
    assert refusal["Error"]["Code"] == "ModelError"
    assert refusal["OriginalStatusCode"] == 400
    assert "failed" in refusal["OriginalMessage"]
    assert caller.add("Multi", TargetModel="root.tar.gz") == 200


@pytest.mark.parametrize(
    ("endpoint", "parameters", "words"),
    [
        ("digits-ensemble", {"TargetModel": "root.tar.gz"}, "only accepted by multi-model"),
        ("Multi", {}, "needs TargetModel"),
    ],
)
def test_wrong_requests_are_validation_errors(
    caller: Caller, endpoint: str, parameters: dict[str, Any], words: str
) -> None:
    """A request that is not sent to a container is a ValidationError with the reason."""
    refusal = caller.refusal(endpoint, **parameters)
    assert refusal["Error"]["Code"] == "ValidationError"
    assert words in refusal["Error"]["Message"]


def test_without_a_model_cache_models_are_unloaded_after_each_call(
    local: LocalEndpoint, caller: Caller
) -> None:
    """ModelCacheSetting Disabled: the model answers, is unloaded,
    and answers again when called again.
    """
    assert caller.add("Uncached", TargetModel="once.tar.gz") == 2
    assert eventually(lambda: loaded_target_models(local, "Uncached") == set())
    assert caller.add("Uncached", TargetModel="once.tar.gz") == 2


def test_a_model_that_raises_is_a_model_error_with_the_log_group(caller: Caller) -> None:
    """The container's 500 is a ModelError with status, message and the log group."""
    refusal = caller.refusal("digits-ensemble", -3.0)
    assert (refusal["OriginalStatusCode"], refusal["ResponseMetadata"]["HTTPStatusCode"]) == (
        500,
        424,
    )
    assert "minus three" in refusal["OriginalMessage"]
    assert refusal["LogStreamArn"].endswith("log-group:/aws/sagemaker/Endpoints/digits-ensemble")


def test_models_are_unloaded_when_memory_is_short_or_a_load_gets_507(tmp_path: Path) -> None:
    """The real server's side of both rules; which model is unloaded is a unit test of the gateway.

    The run does not use private mounts. That matters for these models, whose configuration is at
    the root.
    """
    builder = AssemblyBuilder(tmp_path / "cdk.out")
    models = {"zero": adding_model(0), "one": adding_model(1)}
    models["greedy"] = {**adding_model(0), "1/model.py": OUT_OF_MEMORY}
    targets = {f"{name}.tar.gz": builder.asset(name, files) for name, files in models.items()}
    builder.multi_model("Many", targets)
    builder.endpoint("Multi", {"AllTraffic": ("Many", 1)})
    with LocalEndpoint.from_assembly(
        builder.write(), memory_limit_mib=1, uses_private_mounts=False
    ) as local:
        assert "/opt/ml: " in local.messages
        caller = Caller(local.endpoint_url)
        assert caller.add("Multi", TargetModel="zero.tar.gz") == 0
        assert caller.add("Multi", TargetModel="one.tar.gz") == 1
        assert eventually(lambda: loaded_target_models(local, "Multi") == {"one.tar.gz"})
        assert caller.refusal("Multi", TargetModel="greedy.tar.gz")["OriginalStatusCode"] == 507
        assert eventually(lambda: loaded_target_models(local, "Multi") == set())


def test_a_shadow_variant_gets_a_copy_and_never_answers(caller: Caller, folder: Path) -> None:
    """Callers get only production's responses, while every request is also sent
    to the shadow variant.
    """
    assert [caller.add("Shadowed", float(number)) for number in (70, 71, 72)] == [1070, 1071, 1072]
    seen = folder / "seen"
    assert eventually(lambda: seen.exists() and {"70", "71", "72"} <= set(seen.read_text().split()))
