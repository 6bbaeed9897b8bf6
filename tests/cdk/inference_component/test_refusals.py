"""Everything that SageMaker refuses for components is an error before anything
is added to the stack.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import Duration, Size
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs
from cdk_apps import add_endpoint as add_model_endpoint
from cdk_apps import write_model
from component_apps import CPU, add_component, add_endpoint

from constructs_triton import (
    ComponentDeployment,
    CopySize,
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonInferenceComponent,
    TritonModelRepository,
)
from constructs_triton_core.errors import InvalidValueError, RepositoryError

_ON_GPU = """name: "{name}"
backend: "python"
input {{ name: "x" data_type: TYPE_FP32 dims: 1 }}
output {{ name: "y" data_type: TYPE_FP32 dims: 1 }}
instance_group {{ kind: KIND_GPU gpus: [ {index} ] }}
"""

ENDPOINT_REFUSALS: list[tuple[dict[str, Any], str]] = [
    # What component endpoints do not have, with another way.
    (
        {"async_inference": object()},
        "async_inference: .*name a component; use TritonEndpoint with async",
    ),
    (
        {"serverless_config": object()},
        "serverless_config: .*need instances; use min_instance_count=0",
    ),
    ({"explainer_config": object()}, "explainer_config: .*; use TritonEndpoint"),
    ({"container_metrics": True}, "container_metrics: .*may share a network; use TritonEndpoint"),
    (
        {"data_capture": object()},
        "data_capture: .*; use TritonEndpoint for the models whose requests",
    ),
    ({"variants": []}, "variants: .*names one variant; add a TritonInferenceComponent"),
    ({"shadow_variant": object()}, "shadow_variant: .*names one variant"),
    (
        {"model": "m"},
        "model: SageMaker refuses|model: .*refuses components on an endpoint with a model",
    ),
    (
        {"model_repository": object()},
        "refuses components on an endpoint with a model; set it on the Triton",
    ),
    ({"deployment": object()}, "deployment: .*; set deployment=ComponentDeployment.rolling"),
    ({"initial_variant_weight": 1}, "initial_variant_weight: .*; remove it"),
    ({"environment": {}}, "environment: .*own container; set it on the TritonInferenceComponent"),
    ({"accelerator_partition_layouts": []}, "CloudFormation has no partitions of GPUs"),
    ({"routing_strategy": "KV_AWARE"}, 'routing_strategy: .*language models.*"KV_AWARE"'),
    (
        {"routing_strategy": "PREFIX_AWARE", "concurrency_threshold": 8},
        "prefix_length: is required",
    ),
    (
        {"routing_strategy": "PREFIX_AWARE", "prefix_length": 9, "concurrency_threshold": 8},
        "1024 to 65536",
    ),
    ({"prefix_length": 1024}, "prefix_length: only for .*PREFIX_AWARE"),
    ({"removal_policy": cdk.RemovalPolicy.SNAPSHOT}, "removal_policy: endpoints have no snapshots"),
    # Numbers of instances.
    ({"min_instance_count": None}, "min_instance_count: is required"),
    ({"max_instance_count": None}, "max_instance_count: is required"),
    (
        {"min_instance_count": 3},
        "min_instance_count: must not be above max_instance_count 2, got 3",
    ),
    ({"min_instance_count": -1}, "min_instance_count: must be at least 0"),
    ({"max_instance_count": 0, "min_instance_count": 0}, "max_instance_count: must be at least 1"),
    ({"max_instance_count": 1.5}, "max_instance_count: must be a whole number"),
    (
        {"initial_instance_count": 0, "min_instance_count": 0},
        "initial_instance_count: must be at least 1",
    ),
    (
        {"initial_instance_count": 3},
        "initial_instance_count: must be from 1 to max_instance_count 2",
    ),
    ({"max_instance_count": float("inf")}, "max_instance_count: must be a number, got inf"),
    ({"min_instance_count": []}, r"min_instance_count: must be a number, got \[\]"),
    ({"volume_size": Size.gibibytes(50)}, "volume_size: .*local NVMe"),
    (
        {"volume_size": Size.mebibytes(500)},
        r"volume_size: must be a whole number of GiB, got 0\.488\d*; write Size\.gibibytes\(1\)",
    ),
    ({"vpc_subnets": ec2.SubnetSelection()}, "vpc: is required"),
]


def short_id(value: dict[str, Any] | str) -> str:
    """Name a case by its options, which may be objects without a name, or by its message."""
    return value[:40] if isinstance(value, str) else "-".join(value)


@pytest.mark.parametrize(("options", "said"), ENDPOINT_REFUSALS, ids=short_id)
def test_endpoint_refuses(stack: cdk.Stack, options: dict[str, Any], said: str) -> None:
    """Each property that components exclude is an error, and leaves nothing in the stack."""
    with pytest.raises(InvalidValueError, match=said):
        add_endpoint(stack, **options)
    assert stack.node.children == []


COMPONENT_REFUSALS: list[tuple[dict[str, Any], str]] = [
    # Memory.
    ({"min_memory": None}, "min_memory: is required; write min_memory=Size.mebibytes"),
    ({"min_memory": Size.mebibytes(127)}, "min_memory: must be at least 128 MiB, got 127"),
    (
        {"min_memory": Size.gibibytes(193)},
        "min_memory: must fit on one ml.g5.12xlarge, which has 196608 MiB",
    ),
    (
        {"max_memory": Size.gibibytes(1)},
        "max_memory: must not be below min_memory 2048 MiB, got 1024 MiB",
    ),
    # GPUs and vCPUs.
    (
        {"number_of_accelerator_devices": None},
        "number_of_accelerator_devices: is required on ml.g5.12xlarge",
    ),
    (
        {"number_of_accelerator_devices": 0.5},
        "whole GPUs, at least 1, got 0.5; .*TritonMultiModelEndpoint",
    ),
    ({"number_of_accelerator_devices": 1.5}, "whole GPUs, at least 1, got 1.5"),
    (
        {"number_of_accelerator_devices": float("nan")},
        "must be at least 1 GPU, got nan; write a number",
    ),
    ({"number_of_accelerator_devices": float("inf")}, "must be a number, got inf; write a number"),
    (
        {"number_of_accelerator_devices": 5},
        "must fit on one ml.g5.12xlarge, which has 4 GPUs, got 5",
    ),
    ({"number_of_cpu_cores": 0.1}, "number_of_cpu_cores: must be at least 0.25"),
    (
        {"number_of_cpu_cores": 49},
        "number_of_cpu_cores: must fit on one ml.g5.12xlarge, which has 48 vCPUs",
    ),
    # Copies.
    (
        {"copy_count": 0},
        r"copy_count: .*at least 1 copy, got 0; .*auto_scale_copy_count\(min_capacity=0\)",
    ),
    ({"copy_count": 1.5}, "copy_count: must be a whole number"),
    ({"copy_count": -1}, "copy_count: must be at least 1 copy, got -1"),
    ({"copy_count": float("nan")}, "copy_count: must be at least 1 copy, got nan; write a number"),
    # Start.
    (
        {"container_startup_health_check_timeout": Duration.seconds(59)},
        "container_startup_health_check_timeout: must be from 60 to 3600 seconds",
    ),
    (
        {"model_data_download_timeout": Duration.seconds(3601)},
        "model_data_download_timeout: must be from 60 to 3600 seconds",
    ),
    (
        {"container_startup_health_check_timeout": Duration.millis(60_500)},
        r"must be a whole number of seconds, got 60\.5; write Duration\.seconds\(61\)",
    ),
    ({"max_zone_imbalance": 101}, "max_zone_imbalance: must be from 0 to 100"),
    ({"max_zone_imbalance": 1.5}, "max_zone_imbalance: must be a whole number of copies, got 1.5"),
    ({"placement_strategy": "SPRAED"}, 'placement_strategy: .*did you mean "SPREAD"'),
    # Names.
    ({"inference_component_name": "no_underscores"}, "inference_component_name: must match"),
    (
        {"inference_component_name": "x" * 64},
        "inference_component_name: must have 1 to 63 characters",
    ),
    (
        {"log_retention": logs.RetentionDays.ONE_DAY},
        "log_retention: needs an inference_component_name",
    ),
    (
        {"removal_policy": cdk.RemovalPolicy.SNAPSHOT},
        "removal_policy: components have no snapshots",
    ),
    # What components do not have, with another way.
    ({"model_cache_setting": "Enabled"}, "contains one model; use TritonMultiModelEndpoint"),
    ({"containers": []}, "contains one container; use an ensemble"),
    ({"accelerator_partition_type": "mig-1g.5gb"}, "CloudFormation has no partitions of GPUs"),
    ({"base_inference_component_name": "x"}, "adapters are for containers of language models"),
    ({"specifications": []}, "specifications: .*set instance_pools"),
    (
        {"container_metrics": True},
        "container_metrics: .* share a network.*; use the component's metrics",
    ),
    ({"container_metrics_config": object()}, "does not serve /metrics"),
    (
        {"role": object()},
        "must have the role of its endpoint; set it on the TritonComponentEndpoint",
    ),
    ({"vpc": object()}, "must have the VPC of its endpoint"),
    ({"enable_network_isolation": True}, "must have the isolation of its endpoint"),
    ({"inference_ami_version": "x"}, "all components of an instance have its AMI"),
    (
        {"model": "other", "ensemble": "pipeline"},
        'model: cannot be combined with ensemble, got "other"',
    ),
    (
        {"ensemble": 3},
        "ensemble: must be a string, got 3; write the name of a model of the repository",
    ),
    ({"ensemble": "other"}, 'ensemble: must be a model with platform "ensemble"'),
]


@pytest.mark.parametrize(("options", "said"), COMPONENT_REFUSALS, ids=short_id)
def test_component_refuses(
    stack: cdk.Stack, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    """Each value that SageMaker refuses is an error, and the id can be used again."""
    endpoint = add_endpoint(stack)
    with pytest.raises(InvalidValueError, match=said):
        add_component(endpoint, tmp_path, **options)
    assert stack.node.try_find_child("Pipeline") is None


def test_unknown_property_is_a_type_error(stack: cdk.Stack) -> None:
    """The model of a component, and of an endpoint, is suggested,
    although the repository is missing.
    """
    options: Any = {"model_repository": None, "modle": "digits"}
    with pytest.raises(TypeError, match="argument 'modle'; did you mean \"model\""):
        TritonInferenceComponent(stack, "C", endpoint=add_endpoint(stack, "Other"), **options)
    with pytest.raises(TypeError, match="argument 'modle'; did you mean \"model\""):
        TritonEndpoint(stack, "E", **options)


def test_gpus_are_refused_on_a_cpu_type(stack: cdk.Stack, tmp_path: Path) -> None:
    """An instance without GPUs takes no number of them, and the image for CPUs is used."""
    endpoint = add_endpoint(stack, instance_type=CPU)
    with pytest.raises(InvalidValueError, match=r"ml.c5.4xlarge has no GPU, got 1; remove it"):
        add_component(endpoint, tmp_path, number_of_accelerator_devices=1)


def test_gpus_of_an_unknown_type_are_taken(stack: cdk.Stack, tmp_path: Path) -> None:
    """Nothing is known of a newer instance type, so the number is not refused; it must be whole."""
    newer = InstanceType.of("ml.zz9.xlarge")
    endpoint = add_endpoint(stack, instance_type=newer)
    for value, said in (
        (1.5, "whole GPUs, at least 1, got 1.5"),
        (-1, "whole GPUs, at least 1, got -1"),
    ):
        with pytest.raises(InvalidValueError, match=said):
            add_component(endpoint, tmp_path, number_of_accelerator_devices=value)
    component = add_component(endpoint, tmp_path, number_of_accelerator_devices=1)
    assert component.uses_gpus
    assert not add_component(endpoint, tmp_path, "Cpu").uses_gpus


def test_model_on_the_gpu_needs_one(stack: cdk.Stack, tmp_path: Path) -> None:
    """Models whose configuration needs a GPU that the copy does not reserve are an error."""
    endpoint = add_endpoint(stack)
    for name, index in (("first", 0), ("second", 3)):
        write_model(tmp_path, name, config=_ON_GPU.format(name=name, index=index))
    add_component(endpoint, tmp_path, "Fits", model="first")
    add_component(endpoint, tmp_path, "Large", model="second", number_of_accelerator_devices=4)
    for model, gpus in (("first", 0), ("second", 1)):
        with pytest.raises(RepositoryError, match=r"GPU|gpu id"):
            add_component(
                endpoint, tmp_path, "None", model=model, number_of_accelerator_devices=gpus
            )


def test_endpoint_with_a_model_takes_no_components(stack: cdk.Stack, tmp_path: Path) -> None:
    """SageMaker's "Inference Components are not supported in this Endpoint"
    is an error at synth.
    """
    endpoint = add_model_endpoint(stack, tmp_path / "model", "Classic")
    options: Any = {"min_memory": Size.gibibytes(1), "number_of_accelerator_devices": 1}
    repository = TritonModelRepository(stack, "None")
    missing: Any = None
    with pytest.raises(
        InvalidValueError, match="model_repository: is required; write TritonModelReposi"
    ):
        TritonInferenceComponent(
            stack,
            "C",
            endpoint=add_endpoint(stack),
            model_repository=missing,
            ensemble="e",
            **options,
        )
    for other, got in (
        (endpoint, "Test/Classic, which serves a model"),
        ("shared", '"shared", which is not'),
    ):
        with pytest.raises(InvalidValueError, match=f"endpoint: .*without a model, got {got}"):
            TritonInferenceComponent(
                stack,
                "C",
                endpoint=other,  # type: ignore[arg-type]
                model_repository=repository,
                **options,
            )


def test_first_copies_that_do_not_fit_are_a_table(stack: cdk.Stack, tmp_path: Path) -> None:
    """The message sums up what all components of the endpoint need,
    beside what the instances have.
    """
    endpoint = add_endpoint(stack, min_instance_count=0, max_instance_count=1)
    add_component(
        endpoint, tmp_path, "First", number_of_accelerator_devices=3, number_of_cpu_cores=8
    )
    with pytest.raises(InvalidValueError) as raised:
        add_component(endpoint, tmp_path, "Second", copy_count=2)
    lines = str(raised.value).splitlines()
    assert (
        "need more GPUs than max_instance_count instances have; raise max_instance_count"
        in lines[0]
    )
    assert [re.split(r"  +", line.strip()) for line in lines[1:]] == [
        ["component", "copies", "GPUs", "vCPUs", "memory"],
        ["First", "1", "3", "8", "2 GiB"],
        ["Second", "2", "2", "-", "4 GiB"],
        ["all", "3", "5", "8", "6 GiB"],
        ["1 x ml.g5.12xlarge", "4", "48", "192 GiB"],
    ]
    add_component(endpoint, tmp_path, "Second")


def test_copies_are_not_divided_between_instances(stack: cdk.Stack, tmp_path: Path) -> None:
    """Four instances have 16 GPUs and 768 GiB, but no room for five copies
    of 3 GPUs or of 100 GiB.
    """
    endpoint = add_endpoint(stack, max_instance_count=4)
    for options in (
        {"number_of_accelerator_devices": 3, "copy_count": 5},
        {"min_memory": Size.gibibytes(100), "copy_count": 5},
    ):
        with pytest.raises(
            InvalidValueError, match="do not fit, because one instance has room for 1 copy of"
        ):
            add_component(endpoint, tmp_path, **options)
    add_component(endpoint, tmp_path, number_of_accelerator_devices=3, copy_count=4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"maximum_batch_size": CopySize.percent(4)}, "from 5 to 50 percent"),
        ({"maximum_batch_size": CopySize.percent(51)}, "from 5 to 50 percent"),
        ({"maximum_batch_size": CopySize.copies(0)}, "at least 1"),
        ({"rollback_maximum_batch_size": CopySize.percent(101)}, "from 1 to 100 percent"),
        ({"wait_interval": Duration.seconds(3601)}, "from 0 to 3600 seconds"),
        ({"maximum_execution_timeout": Duration.seconds(599)}, "from 600 to 28800 seconds"),
        ({"alarms": [None] * 11}, "10 alarms, got 11"),
        (
            {"maximum_batch_size": 2},
            r"must be of type CopySize, got 2; write CopySize\.copies\(2\)",
        ),
        (
            {"maximum_batch_size": CopySize.percent(12.5)},
            "must be a whole number, got 12.5; round it",
        ),
        ({"alarms": object()}, "alarms: must be of type list"),
    ],
)
def test_rolling_update_refuses(options: dict[str, Any], said: str) -> None:
    """Values outside SageMaker's limits of a rolling update are errors."""
    with pytest.raises(InvalidValueError, match=f"deployment.*{said}"):
        ComponentDeployment.rolling(**options)


def test_rollback_alarm_needs_a_name_and_a_rolling_update(stack: cdk.Stack, tmp_path: Path) -> None:
    """An alarm without a name could depend on the component,
    and only rolling updates have alarms.
    """
    endpoint = add_endpoint(stack)
    metric = cloudwatch.Metric(namespace="N", metric_name="M")
    alarm = metric.create_alarm(stack, "Alarm", threshold=1, evaluation_periods=1)
    with pytest.raises(InvalidValueError, match=r"Test/Alarm.*set alarm_name on the alarm"):
        add_component(endpoint, tmp_path, deployment=ComponentDeployment.rolling(alarms=[alarm]))
    no_alarm: Any = ["HighErrors"]
    with pytest.raises(InvalidValueError, match="alarms: must be an object with alarm_name"):
        add_component(endpoint, tmp_path, deployment=ComponentDeployment.rolling(alarms=no_alarm))
    rolling = add_component(endpoint, tmp_path, "Rolling")
    known = cloudwatch.Alarm.from_alarm_name(stack, "Known", "errors")
    rolling.add_rollback_alarms(known)
    rolling.add_rollback_alarms(known)
    assert (
        str(stack.resolve(rolling.cfn_inference_component.deployment_config)).count("errors") == 1
    )
    with pytest.raises(InvalidValueError, match="alarms: must have 1 to 10 alarms, got 0"):
        rolling.add_rollback_alarms()
    component = add_component(endpoint, tmp_path, deployment=ComponentDeployment.all_at_once())
    with pytest.raises(InvalidValueError, match="with a rolling update only"):
        component.add_rollback_alarms(alarm)


def test_archives_under_a_prefix_are_no_component(stack: cdk.Stack, tmp_path: Path) -> None:
    """A component contains one model, and not all archives of a prefix."""
    endpoint = add_endpoint(stack)
    bucket = cdk.aws_s3.Bucket.from_bucket_name(stack, "Bucket", "models")
    repository = TritonModelRepository(
        stack, "Many", source=ModelSource.from_archive_prefix(bucket, "triton/")
    )
    with pytest.raises(InvalidValueError, match=r'model: .*"any"'):
        add_component(endpoint, tmp_path, model_repository=repository, model="any")
