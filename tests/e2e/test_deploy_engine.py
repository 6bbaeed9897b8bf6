"""A stack on a loopback AWS, from creation to deletion;
each step is compared with what was declared.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from deploy_app import synthesize
from deploy_synth import (
    GPU_TARGET,
    INSTANCE_TYPE,
    INVOCATIONS_TARGET,
    MAX_CAPACITY,
    STACK,
    VARIANTS,
    Declared,
)
from stack_view import Deploy, StackView, deploy, fresh

from cdk_rehearse import SimulatedAccount

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("deploy_engine")]

__all__ = ["STACK", "deploy", "fresh"]  # fixtures, and what they read
FIRST = "first"


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every variant of the stack, synthesized."""
    return synthesize(tmp_path_factory.mktemp("assemblies"), *VARIANTS)


@pytest.fixture(scope="module")
def untouched(aws: SimulatedAccount, deploy: Deploy) -> StackView:
    """The first variant, for tests that only read."""
    assert deploy("first", "Untouched").status == "CREATE_COMPLETE"
    return StackView(aws, "Untouched")


def test_every_resource_is_created_in_order(untouched: StackView) -> None:
    """Each resource is reported in progress and complete once,
    after the resources that it depends on.
    """
    template = untouched.stack.template
    events = [(event.logical_id, event.status) for event in untouched.stack.events]
    for name, resource in template.resources.items():
        assert events.count((name, "CREATE_COMPLETE")) == 1
        begun = events.index((name, "CREATE_IN_PROGRESS"))
        for other in resource.references & template.resources.keys():
            assert events.index((other, "CREATE_COMPLETE")) < begun


def test_endpoints_serve_the_declared_models(untouched: StackView, assemblies: Path) -> None:
    """Endpoint, configuration and model match the app, from instance type to model data."""
    for output, mode in (("SingleName", "SingleModel"), ("ManyName", "MultiModel")):
        endpoint = untouched.endpoint(output)
        assert endpoint["EndpointStatus"] == "InService"
        (variant,) = untouched.endpoint_config(output)["ProductionVariants"]
        assert variant["VariantName"] == "AllTraffic"
        assert variant["InstanceType"] == INSTANCE_TYPE
        assert variant["InitialInstanceCount"] == 1
        assert variant["InferenceAmiVersion"]
        container = untouched.model(output)["PrimaryContainer"]
        assert container["Mode"] == mode
        assert container["Image"].startswith(
            "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-triton"
        )
    assert untouched.model("ManyName")["PrimaryContainer"]["ModelDataUrl"] == untouched.output(
        "ModelsUrl"
    )
    single = untouched.model("SingleName")["PrimaryContainer"]
    assert untouched.object(single["ModelDataUrl"]) == Declared(assemblies / "first").archive(
        "alpha"
    )


def test_placed_archives_equal_the_packed_ones(untouched: StackView, assemblies: Path) -> None:
    """The prefix contains each model's archive, byte for byte, and nothing else."""
    first = Declared(assemblies / "first")
    placed = untouched.archives()
    assert placed == {first.target_model(name): first.archive(name) for name in ("alpha", "beta")}


def test_scaling_is_registered(untouched: StackView) -> None:
    """The scalable target has the declared bounds,
    and each policy its target value and cooldowns.
    """
    (target,) = untouched.scalable_targets("ManyName")
    assert (target["MinCapacity"], target["MaxCapacity"]) == (1, MAX_CAPACITY)
    policies = [
        policy["TargetTrackingScalingPolicyConfiguration"]
        for policy in untouched.scaling_policies("ManyName")
    ]
    gpu, invocations = sorted(policies, key=lambda policy: policy["TargetValue"])
    assert gpu["TargetValue"] == GPU_TARGET
    assert (gpu["ScaleInCooldown"], gpu["ScaleOutCooldown"]) == (600, 200)
    metric = gpu["CustomizedMetricSpecification"]
    dimensions = {each["Name"]: each["Value"] for each in metric["Dimensions"]}
    assert dimensions == {"EndpointName": untouched.output("ManyName"), "VariantName": "AllTraffic"}
    assert invocations["TargetValue"] == INVOCATIONS_TARGET
    predefined = invocations["PredefinedMetricSpecification"]["PredefinedMetricType"]
    assert predefined == "SageMakerVariantInvocationsPerInstance"


def test_model_bucket_is_private(untouched: StackView) -> None:
    """The bucket is encrypted, blocks public access, enforces bucket ownership and requires TLS."""
    bucket = untouched.bucket()
    assert all(bucket["public_access_block"].values())
    assert bucket["encryption"] == "AES256"
    assert bucket["ownership"] == "BucketOwnerEnforced"
    (statement,) = bucket["policy"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_deploying_again_changes_nothing(fresh: StackView, deploy: Deploy) -> None:
    """Deploying the same template again calls only the parameter store,
    and every physical id stays.
    """
    before, calls = fresh.physical_ids(), len(fresh.aws.api.calls)
    assert deploy("first", fresh.name).status == "UPDATE_COMPLETE"
    assert fresh.physical_ids() == before
    later = [(service, operation) for service, operation, _ in fresh.aws.api.calls[calls:]]
    assert {call for call in later if call != ("s3", "PutObject")} == {("ssm", "GetParameter")}


def test_changed_model_updates_the_endpoint(
    fresh: StackView, assemblies: Path, deploy: Deploy
) -> None:
    """A single-model endpoint is updated; its model and configuration are replaced."""
    before = fresh.physical_ids()
    assert deploy("changed_model", fresh.name).status == "UPDATE_COMPLETE"
    after = fresh.physical_ids()
    assert before["endpoint:Single"] == after["endpoint:Single"]
    name = after["endpoint:Single"].rpartition("/")[2]
    described = fresh.aws.client("sagemaker").describe_endpoint(EndpointName=name)
    assert described["LastModifiedTime"] > described["CreationTime"]
    assert before["config:Single"] != after["config:Single"]
    assert before["model:Single"] != after["model:Single"]
    assert before["endpoint:Many"] == after["endpoint:Many"]
    container = fresh.model("SingleName")["PrimaryContainer"]
    changed = Declared(assemblies / "changed_model").archive("alpha")
    assert fresh.object(container["ModelDataUrl"]) == changed
    target_model = Declared(assemblies / "changed_model").target_model("alpha")
    assert fresh.archives()[target_model] == changed
    assert not fresh.exists("model", before["model:Single"])
    assert not fresh.exists("endpoint-config", before["config:Single"])


def test_added_model_is_placed_without_touching_the_endpoint(
    fresh: StackView, assemblies: Path, deploy: Deploy
) -> None:
    """Adding a model to a multi-model endpoint adds one object and does not change the endpoint."""
    before = fresh.physical_ids()
    assert deploy("added_model", fresh.name).status == "UPDATE_COMPLETE"
    assert fresh.physical_ids() == before
    added = Declared(assemblies / "added_model")
    assert fresh.archives() == {
        added.target_model(name): added.archive(name) for name in ("alpha", "beta", "gamma")
    }


def test_deployment_keeps_the_count_that_scaling_reached(fresh: StackView, deploy: Deploy) -> None:
    """After scaling out to three instances, a deployment that updates the endpoint
    keeps three instances.
    """
    before = fresh.physical_ids()
    fresh.set_desired_instance_count("ManyName", 3)
    assert deploy("changed_timeout", fresh.name).status == "UPDATE_COMPLETE"
    assert fresh.physical_ids()["config:Many"] != before["config:Many"]
    (declared,) = fresh.endpoint_config("ManyName")["ProductionVariants"]
    assert declared["ContainerStartupHealthCheckTimeoutInSeconds"] == 900
    assert declared["InitialInstanceCount"] == 1
    (variant,) = fresh.endpoint("ManyName")["ProductionVariants"]
    assert variant["DesiredInstanceCount"] == 3
    (target,) = fresh.scalable_targets("ManyName")
    assert target["MaxCapacity"] == 7


def test_changed_instance_type_under_scaling_is_refused(fresh: StackView, deploy: Deploy) -> None:
    """SageMaker refuses to change the instances of a scaled variant,
    and the stack is rolled back.
    """
    before, declared = fresh.physical_ids(), fresh.declared()
    stack = deploy("changed_instance_type", fresh.name)
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "must be deregistered as scalable targets" in stack.reason
    assert fresh.physical_ids() == before
    assert fresh.declared() == declared
    for output in ("SingleName", "ManyName"):
        (variant,) = fresh.endpoint_config(output)["ProductionVariants"]
        assert variant["InstanceType"] == INSTANCE_TYPE
    assert fresh.count_models() == 2


def test_variant_is_removed_once_it_no_longer_scales(fresh: StackView, deploy: Deploy) -> None:
    """A variant registered for scaling cannot be removed in one update, but in two."""
    assert deploy("two_fleets", fresh.name).status == "UPDATE_COMPLETE"
    refused = deploy("one_fleet", fresh.name)
    assert refused.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "must be deregistered as scalable targets" in refused.reason
    assert fresh.variant_names("FleetsName") == ["blue", "green"]
    assert deploy("one_unscaled", fresh.name).status == "UPDATE_COMPLETE"
    assert deploy("one_fleet", fresh.name).status == "UPDATE_COMPLETE"
    assert fresh.variant_names("FleetsName") == ["blue"]


def test_failed_update_restores_everything(
    fresh: StackView, assemblies: Path, deploy: Deploy
) -> None:
    """When the last resource fails, capacity, model and archives are rolled back."""
    before = fresh.physical_ids()
    stack = deploy("broken", fresh.name)
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "Broken" in stack.reason
    assert fresh.physical_ids() == before
    (target,) = fresh.scalable_targets("ManyName")
    assert target["MaxCapacity"] == MAX_CAPACITY
    assert fresh.count_models() == 2
    first = Declared(assemblies / "first").archive("alpha")
    assert fresh.object(fresh.model("SingleName")["PrimaryContainer"]["ModelDataUrl"]) == first
    target_model = Declared(assemblies / "first").target_model("alpha")
    assert fresh.archives()[target_model] == first
    assert deploy("changed_model", fresh.name).status == "UPDATE_COMPLETE"


def test_failed_create_is_rolled_back(aws: SimulatedAccount, deploy: Deploy) -> None:
    """A stack that could not be created leaves only the resources that are always retained."""
    stack = deploy("broken", "NeverThere")
    assert stack.status == "ROLLBACK_COMPLETE"
    assert "DashboardBody must be a valid JSON object" in stack.reason
    view = StackView(aws, "NeverThere")
    assert view.leftovers() == {"bucket", "log-group"}
    skipped = {event.type for event in stack.events if event.status == "DELETE_SKIPPED"}
    assert skipped == {"AWS::S3::Bucket", "AWS::Logs::LogGroup"}


def test_destroy_leaves_only_what_is_retained(fresh: StackView, assemblies: Path) -> None:
    """Deleting the stack retains the archive bucket and the function's log,
    and deletes everything else.
    """
    archives = fresh.archives()
    bucket = fresh.output("ModelsUrl").removeprefix("s3://").partition("/")[0]
    assert fresh.aws.destroy(fresh.name).status == "DELETE_COMPLETE"
    assert fresh.leftovers() == {"bucket", "log-group"}
    first = Declared(assemblies / "first")
    kept = fresh.object(f"s3://{bucket}/models/{first.target_model('beta')}")
    assert kept == first.archive("beta") == archives[first.target_model("beta")]
