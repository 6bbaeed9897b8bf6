"""Values that the CDK looks up: the first synthesis has a stand-in, and must not fail on it.

The command line of the CDK looks values up after the first synthesis, and only if it succeeds.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, get_type_hints

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from cdk_apps import add_endpoint, add_ensemble, add_many, add_repository, write_repository

from constructs_triton import (
    EndpointOptions,
    InstanceType,
    ModelSource,
    OffSwitch,
    TritonEndpoint,
    TritonImage,
    TritonInferenceComponent,
    TritonModel,
    TritonModelRepository,
)
from constructs_triton.cdk.endpoint.properties import UpdateOptions
from constructs_triton_core.declared_values import declared_values

# Another account and Region than the stand-ins of the CDK have.
PLACE = cdk.Environment(account="210987654321", region="eu-west-1")
TEXTS = [
    name
    for name, value in declared_values(EndpointOptions).items()
    if any(each is str for each in value.alternatives)
]
"""The properties of endpoints that are strings, found in their declaration."""


@pytest.fixture
def stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(), "Test", env=PLACE)


def looked_up(stack: cdk.Stack, name: str = "/digits/value") -> str:
    value: str = ssm.StringParameter.value_from_lookup(stack, name)
    assert value.startswith("dummy-value-for-")
    return value


def asks(stack: cdk.Stack) -> None:
    """The synthesis succeeds, and the assembly asks the command line for the value."""
    app = stack.node.root
    assert isinstance(app, cdk.App)
    manifest = Path(app.synth().directory, "manifest.json")
    assert json.loads(manifest.read_text(encoding="utf-8"))["missing"]


@pytest.mark.parametrize("name", TEXTS)
def test_every_string_may_be_looked_up(stack: cdk.Stack, tmp_path: Path, name: str) -> None:
    """Each property that is a string takes the stand-in."""
    path = write_repository(tmp_path / "models")
    given: dict[str, Any] = {name: looked_up(stack)}
    if name in get_type_hints(UpdateOptions):
        given["endpoint_name"] = "digits"
    add_endpoint(stack, path, model="other", **given)
    asks(stack)


def test_types_images_and_names_may_be_looked_up(stack: cdk.Stack, tmp_path: Path) -> None:
    """The instance type, the version of the image, the endpoint's name, and models."""
    path = write_repository(tmp_path / "models")
    value = looked_up(stack)
    kind = InstanceType.of(value)
    endpoint = add_ensemble(
        stack,
        path,
        "Ensemble",
        ensemble=value,
        instance_type=kind,
        image=TritonImage.dlc(value),
        endpoint_name=value,
        off_switch=OffSwitch(stack, value),
    )
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    count.scale_on_gpu_utilization("Gpu")
    endpoint.add_alarms()
    add_many(stack, path, "Many", image=TritonImage.from_registry(value, triton_version=value))
    models = add_repository(stack, path)
    TritonModel(stack, "Model", model_repository=models, model=value, instance_type=kind)
    asks(stack)


def test_arguments_of_methods_may_be_looked_up(stack: cdk.Stack, tmp_path: Path) -> None:
    """Names of variants, models, dashboards, exports, policies and metrics take the stand-in, also
    as a part.
    """
    path = write_repository(tmp_path / "models")
    value = looked_up(stack)
    endpoint = add_endpoint(
        stack, path, model="other", container_metrics=True, endpoint_name="digits"
    )
    endpoint.add_dashboard(dashboard_name=f"digits-{value}")
    endpoint.export_outputs(export_name_prefix=f"digits-{value}")
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    time = cdk.Duration.millis(5)
    count.scale_out_on_queue_time("Queue", target_queue_time=time, model=value, policy_name=value)
    count.scale_on_model_latency("Latency", target_latency=time, statistic=value)
    variant = endpoint.variant(value)
    metrics: list[Any] = [
        endpoint.metric(value, statistic=value, label=f"of {value}"),
        variant.container_metrics.queue_time(value),
        variant.container_metrics.metric("Requests", value),
    ]
    board = cloudwatch.Dashboard(stack, "Board")
    board.add_widgets(cloudwatch.GraphWidget(left=metrics))
    assert add_repository(stack, path, "Called").called_models(value) == ()
    asks(stack)


def test_constructs_of_lookups_may_be_used(stack: cdk.Stack, tmp_path: Path) -> None:
    """Roles and repositories have a stand-in account at first, VPCs and keys stand-in ids."""
    repository = ecr.Repository.from_lookup(stack, "Ecr", repository_name="triton")
    add_endpoint(
        stack,
        write_repository(tmp_path / "models"),
        model="other",
        image=TritonImage.from_ecr_repository(repository, "1", triton_version="25.09"),
        role=iam.Role.from_lookup(stack, "Role", role_name="serving"),
        vpc=ec2.Vpc.from_lookup(stack, "Vpc", vpc_id="vpc-0123456789"),
        encryption_key=kms.Key.from_lookup(stack, "Key", alias_name="alias/models"),
    )
    asks(stack)


def test_places_may_be_looked_up(stack: cdk.Stack) -> None:
    """The folder of an archive, the model in it, and the model package may be looked up."""
    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "models")
    models = TritonModelRepository(
        stack, "Models", source=ModelSource.from_s3_prefix(bucket, f"{looked_up(stack)}/")
    )
    TritonEndpoint(
        stack,
        "Endpoint",
        model_repository=models,
        model=looked_up(stack),
        instance_type=InstanceType.of("ml.g5.xlarge"),
    )
    package = TritonModelRepository(
        stack, "Package", source=ModelSource.from_model_package(looked_up(stack))
    )
    TritonEndpoint(
        stack,
        "OfPackage",
        model_repository=package,
        model="m",
        instance_type=InstanceType.of("ml.g5.xlarge"),
    )
    asks(stack)


@pytest.mark.parametrize("kind", ["name", "arn"])
def test_imports_may_be_looked_up(stack: cdk.Stack, kind: str) -> None:
    """Each import of an endpoint or a component takes a looked-up name or ARN."""
    import constructs_triton as library

    host = library.TritonComponentEndpoint.from_endpoint_name(stack, "Host", "host")
    for number, owner in enumerate(getattr(library, each) for each in library.__all__):
        for what in ("endpoint", "inference_component"):
            function = getattr(owner, f"from_{what}_{kind}", None)
            if function is None:
                continue
            takes_host = "endpoint" in inspect.signature(function).parameters
            more = {"endpoint": host} if takes_host else {}
            found = function(stack, f"Import{number}{what}", looked_up(stack), **more)
            found.grant(iam.User(stack, f"Caller{number}"), "sagemaker:InvokeEndpoint")
    asks(stack)


def test_component_on_a_looked_up_type(stack: cdk.Stack, tmp_path: Path) -> None:
    """A component that reserves GPUs does not need the type of the first synthesis."""
    import constructs_triton as library

    host = library.TritonComponentEndpoint(
        stack,
        "Host",
        instance_type=InstanceType.of(looked_up(stack)),
        min_instance_count=1,
        max_instance_count=2,
    )
    TritonInferenceComponent(
        stack,
        "Component",
        endpoint=host,
        model_repository=add_repository(stack, write_repository(tmp_path / "models")),
        ensemble="pipeline",
        min_memory=cdk.Size.gibibytes(1),
        number_of_accelerator_devices=1,
    )
    asks(stack)
