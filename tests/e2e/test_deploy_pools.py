"""An endpoint with several instance types on a loopback AWS: created, updated,
rolled back and deleted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest
from pools_app import A10G, L4, SHARED, STACK, T4, synthesize_states
from stack_view import Deploy, StackView, deploy, fresh

from cdk_rehearse import SimulatedAccount
from constructs_triton.cli import main
from constructs_triton_tools.local.sources.deployed import read_deployed_endpoints
from constructs_triton_tools.operations.status import read_status

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("deploy_pools")]

__all__ = ["STACK", "deploy", "fresh"]  # fixtures, and what they read
FIRST = "first"


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stack in each of its states."""
    return synthesize_states(tmp_path_factory.mktemp("pools"))


def types(view: StackView) -> list[str]:
    """The types of the running configuration, in order of priority."""
    (variant,) = view.endpoint_config("Name")["ProductionVariants"]
    pools = variant.get("InstancePools", [variant])
    return [
        each["InstanceType"] for each in sorted(pools, key=lambda each: each.get("Priority", 1))
    ]


def scaling(view: StackView) -> list[dict[str, Any]]:
    client = view.aws.client("application-autoscaling")
    resource = f"endpoint/{view.output('Name')}/variant/AllTraffic"
    policies = client.describe_scaling_policies(ServiceNamespace="sagemaker", ResourceId=resource)
    return [
        each["TargetTrackingScalingPolicyConfiguration"] for each in policies["ScalingPolicies"]
    ]


def test_each_type_runs_its_own_plan(fresh: StackView, aws: SimulatedAccount) -> None:
    """Each type has a model of its own, and the endpoint reports the instances of each type."""
    (variant,) = fresh.endpoint_config("Name")["ProductionVariants"]
    names = [variant["ModelName"], variant["InstancePools"][1]["ModelNameOverride"]]
    sagemaker = aws.client("sagemaker")
    models = [sagemaker.describe_model(ModelName=each)["PrimaryContainer"] for each in names]
    archives = {each["ModelDataUrl"] for each in models}
    assert len(archives) == 2
    (running,) = fresh.endpoint("Name")["ProductionVariants"]
    counts = {
        each["InstanceType"]: each["CurrentInstanceCount"] for each in running["InstancePools"]
    }
    assert counts == {L4: 1, A10G: 0}


@pytest.mark.parametrize(
    ("state", "wanted"), [("reordered", [A10G, L4]), ("three", [L4, A10G, T4]), ("one", [A10G])]
)
def test_change_of_the_pools_keeps_the_scaling(
    state: str, wanted: list[str], fresh: StackView, deploy: Deploy
) -> None:
    """The guard deregisters the variant for any change of the list, and registers it again."""
    stack = deploy(state, fresh.name)
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    assert types(fresh) == wanted
    (policy,) = scaling(fresh)
    if len(wanted) > 1:
        metrics = policy["CustomizedMetricSpecification"]["Metrics"]
        dimensions = [each["MetricStat"]["Metric"]["Dimensions"] for each in metrics[:-1]]
        assert [each[-1]["Value"] for each in map(_by_name, dimensions)] == sorted(
            wanted, key=wanted.index
        )


def _by_name(dimensions: list[dict[str, str]]) -> list[dict[str, str]]:
    return sorted(dimensions, key=lambda each: each["Name"] == "InstanceType")


def test_change_without_the_guard_is_refused(aws: SimulatedAccount, deploy: Deploy) -> None:
    """SageMaker refuses another instance type of a scaled variant;
    another order is taken for the same.
    """
    assert deploy("unguarded", "Unguarded").status == "CREATE_COMPLETE"
    stack = deploy("unguarded_reordered", "Unguarded")
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert any(
        "must be deregistered as scalable targets" in str(each.reason) for each in stack.events
    )
    assert types(StackView(aws, "Unguarded")) == [L4, A10G]


def test_failed_update_returns_to_the_pools(fresh: StackView, deploy: Deploy) -> None:
    """Pools, models and scaling are as before, and their resources can be deleted."""
    before = (types(fresh), scaling(fresh), fresh.endpoint("Name")["EndpointConfigName"])
    stack = deploy("broken", fresh.name)
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE", stack.reason
    assert (types(fresh), scaling(fresh), fresh.endpoint("Name")["EndpointConfigName"]) == before
    deleted = fresh.aws.destroy(fresh.name)
    assert deleted.status == "DELETE_COMPLETE", deleted.reason
    left = fresh.aws.client("sagemaker").list_models()["Models"]
    assert [each for each in left if each["ModelName"].startswith(f"{fresh.name}-")] == []


def test_model_of_a_pool_is_not_deleted_while_it_runs(
    fresh: StackView, aws: SimulatedAccount
) -> None:
    """An override is in use as the variant's own model is."""
    (variant,) = fresh.endpoint_config("Name")["ProductionVariants"]
    sagemaker = aws.client("sagemaker")
    with pytest.raises(sagemaker.exceptions.ClientError, match="is in use by endpoint"):
        sagemaker.delete_model(ModelName=variant["InstancePools"][1]["ModelNameOverride"])


def test_commands_show_the_instances_of_each_type(
    fresh: StackView,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``status`` and ``local up`` on the deployed endpoint read its pools."""
    for name, value in fresh.aws.variables().items():
        monkeypatch.setenv(name, value)
    name = fresh.output("Name")
    assert main(["status", name]) == 0
    assert f"1 of 1 instances of {L4} (1), {A10G} (0)" in capsys.readouterr().out
    (spec,) = read_deployed_endpoints(fresh.aws.endpoint_url, tmp_path, endpoint=name)
    assert list(spec.variants[0].instance_types) == [L4, A10G]


def test_component_runs_its_own_plan_on_each_type(
    aws: SimulatedAccount, assemblies: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The component has a specification for each type, and is created, described,
    read and deleted.
    """
    stack = aws.deploy(assemblies / "components", SHARED)
    assert stack.status == "CREATE_COMPLETE", stack.reason
    sagemaker, name = aws.client("sagemaker"), stack.output_values["Name"]
    (listed,) = sagemaker.list_inference_components(EndpointNameEquals=name)["InferenceComponents"]
    component = sagemaker.describe_inference_component(
        InferenceComponentName=listed["InferenceComponentName"]
    )
    specifications = component["Specifications"]
    assert [each["InstanceType"] for each in specifications] == [L4, A10G]
    assert len({each["ModelName"] for each in specifications}) == 2
    for key, value in aws.variables().items():
        monkeypatch.setenv(key, value)
    (state,) = read_status(boto3.Session(), name).components
    assert state.model == ", ".join(each["ModelName"] for each in specifications)
    (spec,) = read_deployed_endpoints(aws.endpoint_url, tmp_path, endpoint=name)
    assert [list(each.instance_types) for each in spec.components] == [[L4, A10G]]
    assert aws.destroy(SHARED).status == "DELETE_COMPLETE"
