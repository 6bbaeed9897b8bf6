"""Inference components on this machine: each has a Triton server of its own behind one gateway."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError
from local_assembly import AssemblyBuilder, adding_ensemble, adding_model, below
from test_local_endpoints import Caller
from triton_server import needs_server

from constructs_triton.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """An endpoint with an ensemble that starts at zero and a model that does not."""
    builder = AssemblyBuilder(tmp_path_factory.mktemp("components") / "cdk.out")
    pipe = builder.asset("pipe", adding_ensemble("pipe", 1, 10))
    builder.single_model("Pipe", pipe, {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "pipe"})
    builder.single_model("Thousand", builder.asset("thousand", below("m", adding_model(1000))))
    builder.shared_endpoint("Shared", {"Ensemble": "Pipe", "Adder": "Thousand"}, name="shared")
    builder.scale_to_zero("Ensemble")
    with LocalEndpoint.from_assembly(builder.write(), wake_delay_seconds=1.0) as local:
        yield local


def test_each_component_answers_by_its_name(local: LocalEndpoint) -> None:
    """The response has the component's variant; a call without a name is refused."""
    caller = Caller(local.endpoint_url)
    assert caller.add("shared", 1.0, InferenceComponentName="Adder") == 1001.0
    with pytest.raises(
        ClientError, match=r"\(ValidationError\).*Inference Component Name header is required"
    ):
        caller.add("shared", 1.0)
    (described,) = local.description["endpoints"]
    assert list(described["inference_components"]) == ["Ensemble", "Adder"]


def test_component_at_zero_wakes(local: LocalEndpoint) -> None:
    """SageMaker's error until the delay has passed since the first call, then the ensemble's answer."""
    caller = Caller(local.endpoint_url)
    for _ in range(2):
        with pytest.raises(ClientError, match=r"\(ValidationError\).*has no capacity to process this"):
            caller.add("shared", 1.0, InferenceComponentName="Ensemble")
    time.sleep(1.0)
    assert caller.add("shared", 1.0, InferenceComponentName="Ensemble") == 12.0
    assert "shared/Ensemble: has zero copies; the first call wakes it in 1 s" in local.messages
