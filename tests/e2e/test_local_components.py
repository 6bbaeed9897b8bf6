"""The example of inference components on this machine: each has a Triton server behind one gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import boto3
import numpy as np
import pytest
from botocore.exceptions import ClientError
from deploy_twice import synthesize_apps
from programs import PROJECT
from triton_server import needs_server

from constructs_triton import (
    ContainerInferenceComponent,
    InstanceType,
    ModelSource,
    ServingImage,
    TritonComponentEndpoint,
    TritonInferenceComponent,
    TritonModelRepository,
)
from constructs_triton.cli import main
from constructs_triton.errors import InvocationError, NoCapacityError
from constructs_triton.local import LocalEndpoint
from constructs_triton_client import TritonClient

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

APP = "inference_components"
FLAGGED = [False, False, False, True, False]
READINGS = {"readings": np.array([[1, 1, 1, 50, 1]], np.float32)}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """Two components that start at zero copies."""
    assemblies = synthesize_apps(tmp_path_factory.mktemp("components"), [APP])
    with LocalEndpoint.from_assembly(assemblies / APP, wake_delay_seconds=1.5) as local:
        yield local


def client(local: LocalEndpoint, component: str, wake_timeout: float = 0) -> TritonClient:
    (name,) = local.endpoint_names
    return TritonClient.for_endpoint(
        name, endpoint_url=local.endpoint_url, inference_component=component, wake_timeout=wake_timeout
    )


def test_component_at_zero_wakes_and_answers_by_its_name(local: LocalEndpoint) -> None:
    """A client without ``wake_timeout`` gets SageMaker's error; one with it waits for the answer."""
    for _ in range(2):
        with pytest.raises(NoCapacityError, match=r"no capacity .*wake_timeout"):
            client(local, "AlertsComponent").infer(READINGS)
    result = client(local, "AlertsComponent", wake_timeout=30).infer(READINGS)
    assert result["alerts"].tolist() == [FLAGGED]
    assert "AlertsComponent: has zero copies; the first call wakes it in 1.5 s" in local.messages


def test_components_are_listed_and_needed(local: LocalEndpoint) -> None:
    """A call without a name is refused."""
    assert local.inference_component_names == ("DigitsComponent", "AlertsComponent")
    runtime = boto3.client("sagemaker-runtime", endpoint_url=local.endpoint_url)
    with pytest.raises(ClientError, match="Inference Component Name header is required for endpoints"):
        runtime.invoke_endpoint(EndpointName=local.endpoint_names[0], Body=b"x")


def test_recorded_requests_are_verified_by_component(local: LocalEndpoint, tmp_path: Path) -> None:
    """A component that sleeps is woken first."""
    tensor = {"name": "readings", "datatype": "FP32", "shape": [1, 5], "data": [1, 1, 1, 50, 1]}
    alerts = {"name": "alerts", "datatype": "BOOL", "shape": [1, 5], "data": FLAGGED}
    request = {"name": "spike", "inputs": [tensor], "outputs": [alerts]}
    file = tmp_path / "requests.json"
    file.write_text(json.dumps({"version": 1, "requests": [request]}))
    target = ["--endpoint-url", local.endpoint_url, "--inference-component", "AlertsComponent"]
    assert main(["verify", *local.endpoint_names, str(file), *target, "--wake-timeout", "30"]) == 0


def test_container_that_is_not_triton_is_named_and_the_others_run(tmp_path: Path) -> None:
    """The component of Triton answers, and a request to the other one says why it does not."""
    stack = cdk.Stack(cdk.App(outdir=str(tmp_path)), "Mixed")
    endpoint = TritonComponentEndpoint(
        stack,
        "Endpoint",
        instance_type=InstanceType.of("ml.c5.4xlarge"),
        min_instance_count=1,
        max_instance_count=1,
        endpoint_name="mixed",
    )
    source = ModelSource.from_directory(PROJECT / "assets" / "model_repositories" / "alerts")
    shared: Any = {"endpoint": endpoint, "min_memory": cdk.Size.gibibytes(2)}
    models = TritonModelRepository(stack, "Models", source=source)
    TritonInferenceComponent(
        stack, "A", model_repository=models, ensemble="alerts", inference_component_name="alerts", **shared
    )
    image = ServingImage.from_registry("registry.example.com/chat:1")
    ContainerInferenceComponent(stack, "C", image=image, inference_component_name="chat", **shared)
    with LocalEndpoint.from_app(cast(cdk.App, stack.node.root)) as mixed:
        assert mixed.inference_component_names == ("alerts",)
        assert "mixed/chat: its container is not Triton, so it does not run" in mixed.messages
        assert client(mixed, "alerts").infer(READINGS)["alerts"].tolist() == [FLAGGED]
        with pytest.raises(InvocationError, match=r"chat does not run on your machine, .* call it in AWS"):
            client(mixed, "chat").infer(READINGS)
