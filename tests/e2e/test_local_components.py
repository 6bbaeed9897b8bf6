"""The example of inference components on this machine:
each has a Triton server behind one gateway.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deploy_twice import synthesize_apps
from triton_server import needs_server

from constructs_triton.cli import main
from constructs_triton_client import TritonClient
from constructs_triton_core.cloud_assembly.endpoints import NOT_TRITON
from constructs_triton_core.errors import InvocationError, NoCapacityError
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

APP = "inference_components"
FLAGGED = [False, False, False, True, False]
READINGS = {"readings": np.array([[1, 1, 1, 50, 1]], np.float32)}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """Two components that start at zero copies, and one whose container is not Triton."""
    assemblies = synthesize_apps(tmp_path_factory.mktemp("components"), [APP])
    (template,) = (assemblies / APP).glob("*.template.json")
    template.write_text(json.dumps(with_chat(json.loads(template.read_text()))))
    with LocalEndpoint.from_assembly(assemblies / APP, wake_delay_seconds=1.5) as local:
        yield local


def with_chat(template: dict[str, Any]) -> dict[str, Any]:
    """Add what ``ContainerInferenceComponent`` writes: a model with its mark, and a component."""
    resources: dict[str, Any] = template["Resources"]
    kind = "AWS::SageMaker::InferenceComponent"
    component = copy.deepcopy(next(each for each in resources.values() if each["Type"] == kind))
    component["Properties"]["InferenceComponentName"] = "chat"
    component["Properties"]["Specification"]["ModelName"] = {
        "Fn::GetAtt": ["ChatModel", "ModelName"]
    }
    container = {"PrimaryContainer": {"Image": "registry.example.com/chat:1"}}
    model = {
        "Type": "AWS::SageMaker::Model",
        "Properties": container,
        "Metadata": {NOT_TRITON: True},
    }
    resources |= {"ChatModel": model, "Chat": component}
    return template


def client(local: LocalEndpoint, component: str, wake_timeout: float = 0) -> TritonClient:
    (name,) = local.endpoint_names
    return TritonClient.for_endpoint(
        name,
        endpoint_url=local.endpoint_url,
        inference_component=component,
        wake_timeout=wake_timeout,
    )


def test_component_at_zero_wakes_and_answers_by_its_name(local: LocalEndpoint) -> None:
    """A client without ``wake_timeout`` gets SageMaker's error;
    one with it waits for the answer.
    """
    for _ in range(2):
        with pytest.raises(NoCapacityError, match=r"no capacity .*wake_timeout"):
            client(local, "AlertsComponent").infer(READINGS)
    result = client(local, "AlertsComponent", wake_timeout=30).infer(READINGS)
    assert result["alerts"].tolist() == [FLAGGED]
    assert "AlertsComponent: has zero copies; the first call wakes it in 1.5 s" in local.messages


def test_container_that_is_not_triton_is_named_and_does_not_run(local: LocalEndpoint) -> None:
    """The components of Triton run, and a request to the other one says why it has no answer."""
    assert local.inference_component_names == ("DigitsComponent", "AlertsComponent")
    assert (
        "/chat: its container is not Triton, so it does not run on your machine" in local.messages
    )
    with pytest.raises(
        InvocationError, match=r"chat does not run on your machine, .* call it in AWS"
    ):
        client(local, "chat").infer(READINGS)


def test_recorded_requests_are_verified_by_component(local: LocalEndpoint, tmp_path: Path) -> None:
    """A component that sleeps is woken first."""
    tensor = {"name": "readings", "datatype": "FP32", "shape": [1, 5], "data": [1, 1, 1, 50, 1]}
    alerts = {"name": "alerts", "datatype": "BOOL", "shape": [1, 5], "data": FLAGGED}
    request = {"name": "spike", "inputs": [tensor], "outputs": [alerts]}
    file = tmp_path / "requests.json"
    file.write_text(json.dumps({"version": 1, "requests": [request]}))
    target = ["--endpoint-url", local.endpoint_url, "--inference-component", "AlertsComponent"]
    assert main(["verify", *local.endpoint_names, str(file), *target, "--wake-timeout", "30"]) == 0
