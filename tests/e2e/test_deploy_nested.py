"""Endpoints and models of nested stacks, which ListStackResources does not list with the parent."""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
import boto3
import pytest

from cdk_rehearse import SimulatedAccount, rehearse
from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)
from constructs_triton_core.cloud_assembly.assembly import read_stacks
from constructs_triton_tools.assembly.service_graph import ServiceGraph
from constructs_triton_tools.local.sources.assembly import read_endpoints
from constructs_triton_tools.operations.model_prefix import find_prefix
from constructs_triton_tools.operations.stack_endpoints import diagnose_stack, endpoints_of_stack
from constructs_triton_tools.planning.template_scaling import read_scaling

pytestmark = pytest.mark.e2e
MODELS = Path(__file__).resolve().parents[2] / "assets" / "model_repositories" / "catalog"


@pytest.fixture(scope="module", params=["nested models", "models of the parent"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthesize an app without the ``cdk`` command, whose endpoint is in a nested stack."""
    app = cdk.App(outdir=str(tmp_path_factory.mktemp("out")))
    environment = cdk.Environment(account="123456789012", region="us-east-1")
    shop = cdk.Stack(app, "Shop", env=environment)
    nested = cdk.NestedStack(cdk.NestedStack(shop, "Vision"), "Inner")
    models = TritonModelRepository(
        nested if request.param == "nested models" else shop,
        "Models",
        source=ModelSource.from_directory(MODELS),
    )
    endpoint = TritonMultiModelEndpoint(
        nested,
        "Catalog",
        model_repository=models,
        instance_type=InstanceType.of("ml.g5.xlarge"),
        endpoint_name="Catalog",
    )
    endpoint.auto_scale_instance_count(
        min_capacity=1, max_capacity=3
    ).scale_on_invocations_per_instance("Load", target_invocations_per_minute=60)
    return Path(app.synth().directory)


def test_a_cloud_assembly_has_its_nested_stacks(folder: Path) -> None:
    """Local runs, cost, graph and simulations find the endpoint of a nested stack, with its models,
    whichever stack of the app has the models.
    """
    (endpoint,) = read_endpoints(folder)
    assert endpoint.name == "Catalog"
    template = folder / "Shop.template.json"
    assert read_scaling(template).max_capacity == 3
    for path in (folder, template):
        graphs = [ServiceGraph.of(each) for each in read_stacks(path, None)]
        assert len(graphs) == 3
        assert "Catalog" in str(graphs)


def test_a_deployed_stack_has_its_nested_stacks(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands with ``--stack`` find the endpoint and the models of a nested stack."""
    with SimulatedAccount() as aws:
        aws.bootstrap()
        stack = aws.deploy(folder, "Shop")
        assert stack.status == "CREATE_COMPLETE", stack.reason
        for variable, value in aws.variables().items():
            monkeypatch.setenv(variable, value)
        session = boto3.Session(region_name="us-east-1")
        assert endpoints_of_stack(session, "Shop") == ["Catalog"]
        assert find_prefix(session, "Shop", None).url.endswith("/models/")


def test_an_adopted_endpoint_of_a_nested_stack_exists_before(tmp_path: Path) -> None:
    """A rehearsal creates the endpoints that nested stacks adopt, as it does for other stacks."""
    app = cdk.App(outdir=str(tmp_path))
    nested = cdk.NestedStack(cdk.Stack(app, "Shop"), "Vision")
    source = ModelSource.from_directory(MODELS)
    TritonMultiModelEndpoint(
        nested,
        "Catalog",
        model_repository=TritonModelRepository(nested, "Models", source=source),
        instance_type=InstanceType.of("ml.g5.xlarge"),
        endpoint_name="catalog",
        adopt_existing=True,
    )
    app.synth()
    assert not rehearse(None, str(tmp_path), failures="none", orders=1).errors


def test_the_cause_is_that_of_the_nested_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A diagnosis names the resource that failed, and not the nested stack that it is in."""
    app = cdk.App(outdir=str(tmp_path))
    nested = cdk.NestedStack(cdk.Stack(app, "Shop"), "Queues")
    for name in ("One", "Two"):
        cdk.CfnResource(nested, name, type="AWS::SQS::Queue", properties={"QueueName": "same/name"})
    app.synth()
    with SimulatedAccount() as aws:
        aws.bootstrap()
        stack = aws.deploy(tmp_path, "Shop")
        assert stack.status == "ROLLBACK_COMPLETE"
        for variable, value in aws.variables().items():
            monkeypatch.setenv(variable, value)
        found = diagnose_stack(boto3.Session(region_name="us-east-1"), stack.id)
    assert found.resource in ("One", "Two"), json.dumps(found.to_dict(), default=str)
