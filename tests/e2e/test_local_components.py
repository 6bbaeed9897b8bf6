"""The example of inference components on this machine: each has a Triton server behind one gateway."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import boto3
import numpy as np
import pytest
from botocore.exceptions import ClientError
from deploy_twice import synthesize_apps
from triton_server import needs_server

from constructs_triton.local import LocalEndpoint
from constructs_triton.wire import decode_response, encode_request

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

APP = "inference_components"
READINGS = {"readings": np.array([[1, 1, 1, 50, 1]], np.float32)}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """Two components that start at zero copies."""
    assemblies = synthesize_apps(tmp_path_factory.mktemp("components"), [APP])
    with LocalEndpoint.from_assembly(assemblies / APP, wake_delay_seconds=1.0) as local:
        yield local


def invoke(local: LocalEndpoint, **target: str) -> Any:
    runtime: Any = boto3.client("sagemaker-runtime", endpoint_url=local.endpoint_url)
    request = encode_request(READINGS)
    (name,) = local.endpoint_names
    response = runtime.invoke_endpoint(
        EndpointName=name, ContentType=request.content_type, Body=request.body, **target
    )
    return decode_response(response["Body"].read(), response["ContentType"])


def test_component_at_zero_wakes_and_answers_by_its_name(local: LocalEndpoint) -> None:
    """SageMaker's error until the delay has passed since the first call, then the ensemble's answer."""
    for _ in range(2):
        with pytest.raises(ClientError, match=r"\(ValidationError\).*has no capacity to process this"):
            invoke(local, InferenceComponentName="AlertsComponent")
    time.sleep(1.0)
    result = invoke(local, InferenceComponentName="AlertsComponent")
    assert result["alerts"].tolist() == [[False, True, True, True, True]]
    assert "AlertsComponent: has zero copies; the first call wakes it in 1 s" in local.messages


def test_components_are_listed_and_needed(local: LocalEndpoint) -> None:
    """A call without a name is refused."""
    (described,) = local.description["endpoints"]
    assert list(described["inference_components"]) == ["DigitsComponent", "AlertsComponent"]
    with pytest.raises(
        ClientError, match=r"\(ValidationError\).*Inference Component Name header is required"
    ):
        invoke(local)
