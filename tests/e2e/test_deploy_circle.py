"""The deployed models are the models that are served:
from a stack on a loopback AWS to predictions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from deploy_app import synthesize
from deploy_synth import STACK, Declared
from encrypted_app import STACK as QUEUE
from encrypted_app import synthesize_queue
from programs import run_command
from stack_view import StackView
from triton_server import needs_server

from cdk_rehearse import SimulatedAccount
from constructs_triton_client import TritonClient
from constructs_triton_core.errors import InvocationError, LocalEndpointError
from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.local.sources.deployed import read_deployed_endpoints

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("deploy_engine")]

ONES = {"x": np.ones((1, 4), dtype=np.float32)}


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(tmp_path_factory.mktemp("assemblies"), "first", "added_model")


@pytest.fixture(scope="module")
def view(assemblies: Path) -> Iterator[StackView]:
    """The stack and that of a queue, deployed."""
    with SimulatedAccount() as aws:
        aws.bootstrap()
        assert aws.deploy(assemblies / "first", STACK).status == "CREATE_COMPLETE"
        assert (
            aws.deploy(synthesize_queue(assemblies / "queue", None), QUEUE).status
            == "CREATE_COMPLETE"
        )
        yield StackView(aws, STACK)


@pytest.fixture(scope="module")
def local(view: StackView, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """One run of all deployed endpoints."""
    folder = tmp_path_factory.mktemp("s3")
    with LocalEndpoint.from_aws(view.aws.endpoint_url, bucket_folder=folder) as running:
        yield running


def predict(local: LocalEndpoint, endpoint: str, target_model: str | None = None) -> float:
    """What a model adds to one."""
    client = TritonClient.for_endpoint(
        endpoint, endpoint_url=local.endpoint_url, target_model=target_model
    )
    (first, *_) = client.infer(ONES)["y"].flatten()
    return float(first) - 1


def run_models(aws: SimulatedAccount, *arguments: str) -> str:
    """The output of ``constructs-triton models``, run against the simulated account."""
    return run_command("models", *arguments, "--json", environment=aws.environment())


def test_deployed_models_predict(view: StackView, local: LocalEndpoint, assemblies: Path) -> None:
    """Each model answers from the archive that the deployment copied to S3."""
    many = view.output("ManyName")
    assert predict(local, view.output("SingleName")) == 1
    first = Declared(assemblies / "first")
    assert predict(local, many, first.target_model("alpha")) == 1
    assert predict(local, many, first.target_model("beta")) == 2


def test_model_added_to_the_prefix_is_served_without_a_deployment(
    view: StackView, local: LocalEndpoint, assemblies: Path
) -> None:
    """A model that ``constructs-triton models add`` adds can be called immediately."""
    many = view.output("ManyName")
    target_model = Declared(assemblies / "added_model").target_model("gamma")
    with pytest.raises(InvocationError, match="Failed to download model data"):
        predict(local, many, target_model)
    models = assemblies / "models" / "added_model"
    printed = run_models(
        view.aws, "add", "gamma", str(models), "--model", "gamma", "--stack", STACK
    )
    assert json.loads(printed) == {"target_models": {"gamma": target_model}}
    assert predict(local, many, target_model) == 3
    listed = json.loads(run_models(view.aws, "list", "--stack", STACK))["models"]
    assert {each["name"]: each["is_deployed"] for each in listed} == {
        "alpha": True,
        "beta": True,
        "gamma": False,
    }


def test_command_adds_and_removes_models(view: StackView, assemblies: Path) -> None:
    """``sync`` adds a repository and ``remove`` deletes a model; the models of the stack stay."""
    models = str(assemblies / "models" / "added_model")
    declared = Declared(assemblies / "added_model")
    synced = json.loads(run_models(view.aws, "sync", models, "--stack", STACK))["target_models"]
    assert synced == {name: declared.target_model(name) for name in ("alpha", "beta", "gamma")}
    run_models(view.aws, "remove", "gamma", "--delete-archive", "--yes", "--stack", STACK)
    after = json.loads(run_models(view.aws, "list", "--stack", STACK))
    assert [each["name"] for each in after["models"]] == ["alpha", "beta"]
    assert synced["gamma"] not in after["nameless_archives"]


def test_unknown_endpoint_is_named(view: StackView, tmp_path: Path) -> None:
    """The message of a run of deployed endpoints has the name that none of them has."""
    with pytest.raises(LocalEndpointError, match="no endpoint has the name 'nothing'"):
        read_deployed_endpoints(view.aws.endpoint_url, tmp_path, endpoint="nothing")


def test_deployed_queue_is_served_as_a_queue(view: StackView, local: LocalEndpoint) -> None:
    """SageMaker describes the endpoint as asynchronous, and ``infer_async`` gets its response."""
    described = view.aws.client("sagemaker").describe_endpoint(EndpointName="adder")
    output = described["AsyncInferenceConfig"]["OutputConfig"]["S3OutputPath"]
    client = TritonClient.for_endpoint("adder", endpoint_url=local.endpoint_url)
    pending = client.infer_async(ONES, input_location=f"{output.removesuffix('output/')}input/")
    assert pending.result()["y"].tolist() == [[7, 7, 7, 7]]
