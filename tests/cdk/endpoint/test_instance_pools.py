"""Endpoints with several instance types, in order of priority."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cdk_apps import (
    ENVIRONMENT,
    add_endpoint,
    add_ensemble,
    add_many,
    add_repository,
    make_stack,
    only,
    only_variant,
    resources,
    statements,
    synthesize,
    warnings,
    write_model,
)

from constructs_triton import (
    AsyncInferenceConfig,
    CapacityReservationConfig,
    InstancePool,
    InstanceType,
    TritonImage,
    TritonVariant,
)
from constructs_triton.testing import assert_endpoint
from constructs_triton_core.errors import InvalidValueError
from triton_model_check.facts.images import image_version as facts

L4 = InstanceType.of("ml.g6.2xlarge")
A10G = InstanceType.of("ml.g5.2xlarge")
T4 = InstanceType.of("ml.g4dn.xlarge")
AMI = "al2023-ami-sagemaker-inference-gpu-4-1"
POOLS = [InstancePool(L4), InstancePool(A10G)]
_PLAN_CONFIG = """name: "scale"
platform: "tensorrt_plan"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
"""


def write_plan(directory: Path) -> Path:
    """Write a TensorRT model; the build number of TensorRT is that of the default image."""
    folder = directory / "scale"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(_PLAN_CONFIG)
    version = TritonImage.dlc().triton_version
    assert version is not None
    (folder / "1" / "model.plan").write_bytes(b"ftrt" + bytes(20) + _tensorrt(version))
    return directory


def _tensorrt(image_version: str) -> bytes:
    """The TensorRT version of an image, as a plan has it."""
    needed = [int(part) for part in (facts(image_version).tensorrt or "10").split(".")]
    return bytes([*needed, 0, 0, 0, 0][:4])


make_endpoint = partial(add_endpoint, model="scale", instance_type=None, instance_pools=POOLS)


def variant_of(stack: cdk.Stack) -> dict[str, Any]:
    return only_variant(synthesize(stack))


def test_pools_replace_the_instance_type(stack: cdk.Stack, path: Path) -> None:
    """The list has priorities from 1, one AMI for all types, and no instance type beside it."""
    endpoint = make_endpoint(stack, path)
    variant = variant_of(stack)
    assert variant["InstancePools"] == [
        {"InstanceType": "ml.g6.2xlarge", "Priority": 1},
        {"InstanceType": "ml.g5.2xlarge", "Priority": 2},
    ]
    assert "InstanceType" not in variant
    assert variant["InferenceAmiVersion"] == AMI
    assert variant["RoutingConfig"] == {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    assert endpoint.variants[0].instance_types == (L4, A10G)
    assert warnings(stack) == []


def test_one_pool_is_an_instance_type(path: Path) -> None:
    """Whether SageMaker accepts a list of one is not known, so the template has the type itself."""
    pooled = make_stack()
    make_endpoint(pooled, path, instance_pools=[InstancePool(A10G)])
    plain = make_stack()
    make_endpoint(plain, path, instance_pools=None, instance_type=A10G)
    assert synthesize(pooled) == synthesize(plain)


def test_pools_of_an_ensemble_and_of_an_asynchronous_endpoint(stack: cdk.Stack, path: Path) -> None:
    """Ensembles and asynchronous endpoints have pools too."""
    queue = AsyncInferenceConfig(bucket=s3.Bucket(stack, "Results"))
    add_ensemble(stack, path, instance_type=None, instance_pools=POOLS, async_inference=queue)
    assert [pool["Priority"] for pool in variant_of(stack)["InstancePools"]] == [1, 2]


def test_plan_for_each_type_is_a_model_of_its_own(stack: cdk.Stack, tmp_path: Path) -> None:
    """A pool with its own repository overrides the model, which the role can read."""
    plans = add_repository(stack, write_plan(tmp_path / "a10g"), "A10G")
    plan = write_plan(tmp_path / "l4") / "scale" / "1" / "model.plan"
    plan.write_bytes(plan.read_bytes() + b"another engine")
    pools = [InstancePool(L4), InstancePool(A10G, model_repository=plans)]
    make_endpoint(stack, tmp_path / "l4", instance_pools=pools, verify_update=True)

    template = synthesize(stack)

    variant = only_variant(template)
    first, second = variant["InstancePools"]
    assert "ModelNameOverride" not in first
    model = variant["ModelName"]["Fn::GetAtt"][0]
    override = second["ModelNameOverride"]["Fn::GetAtt"][0]
    models = resources(template, "AWS::SageMaker::Model")
    assert models.keys() == {model, override}
    assert all("DependsOn" in resource for resource in models.values())

    containers = [resource["Properties"]["PrimaryContainer"] for resource in models.values()]
    urls = [container["ModelDataUrl"] for container in containers]
    assert urls[0] != urls[1]
    granted = statements(template).values()
    read = str([statement for statement in granted if "s3:GetObject" in str(statement["Action"])])
    for url in urls:
        assert url.rpartition("/")[2] in read


def test_one_plan_for_two_gpus_is_an_error(stack: cdk.Stack, tmp_path: Path) -> None:
    """A plan is built for one type of GPU; naming its repository on a pool accepts it."""
    plans = write_plan(tmp_path / "plans")
    with pytest.raises(InvalidValueError, match='loaded by different GPUs: "L4" and "A10G"'):
        make_endpoint(stack, plans)
    assert stack.node.try_find_child("Endpoint") is None

    accepted = make_stack()
    repository = add_repository(accepted, plans, "Compatible")
    pools = [InstancePool(L4), InstancePool(A10G, model_repository=repository)]
    make_endpoint(accepted, plans, instance_pools=pools)
    assert len(resources(synthesize(accepted), "AWS::SageMaker::Model")) == 2


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({"instance_pools": None}, "^instance_type: is required; write instance_type="),
        (
            {"instance_type": L4},
            "^instance_type: not supported together with instance_pools, got ml.g6",
        ),
        ({"instance_pools": []}, "^instance_pools: must have 1 to 5 pools, got 0"),
        (
            {"instance_pools": [*POOLS, *POOLS, InstancePool(T4), InstancePool(T4)]},
            "got 6; remove 1",
        ),
        ({"instance_pools": [L4]}, r"^instance_pools: must be of type InstancePool, got .* write"),
        ({"instance_pools": [*POOLS, POOLS[0]]}, 'must be unique, got "ml.g6.2xlarge" twice'),
        (
            {"instance_pools": [*POOLS, InstancePool(InstanceType.of("ml.c7i.xlarge"))]},
            'all types must have GPUs or none, .* got "ml.g6.2xlarge" and "ml.c7i.xlarge"',
        ),
        (
            {"instance_pools": [InstancePool(L4, model="other")]},
            "no pool uses the model_repository",
        ),
        (
            {"variants": [TritonVariant(variant_name="A")]},
            "^variants: not supported together with instance_",
        ),
        (
            {"shadow_variant": TritonVariant(variant_name="A")},
            "^shadow_variant: not supported together",
        ),
        (
            {
                "capacity_reservation": CapacityReservationConfig(
                    ml_reservation_arn="arn:aws:sagemaker:eu-west-1:123456789012:training-plan/p"
                )
            },
            "^capacity_reservation: not supported together with instance_pools",
        ),
    ],
)
def test_pools_that_do_not_go_together(props: dict[str, Any], message: str, path: Path) -> None:
    """What AWS refuses or does not document beside pools is an error,
    and adds nothing to the stack.
    """
    stack = make_stack()
    with pytest.raises(InvalidValueError, match=message):
        make_endpoint(stack, path, **props)
    assert stack.node.try_find_child("Endpoint") is None


def test_pools_are_refused_on_multi_model_endpoints(stack: cdk.Stack, path: Path) -> None:
    """AWS's page does not name them."""
    with pytest.raises(InvalidValueError, match=r"^instance_pools: not supported on multi-model"):
        add_many(stack, path, instance_type=None, instance_pools=POOLS)


@pytest.mark.parametrize(
    ("first", "second", "props", "code"),
    [
        ("ml.g6.2xlarge", "ml.p3.2xlarge", {}, "gpu-older-than-image"),
        ("ml.c7i.xlarge", "ml.c7g.xlarge", {}, "instance-type-arm"),
        (
            "ml.c7i.xlarge",
            "ml.c5d.xlarge",
            {"volume_size": cdk.Size.gibibytes(9)},
            "volume-size-on-nvme",
        ),
    ],
)
def test_error_of_a_type_names_the_type(
    first: str, second: str, props: dict[str, Any], code: str, path: Path
) -> None:
    """Every type is checked: the GPU, the processor and the disk of the second are wrong."""
    pools = [InstancePool(InstanceType.of(name)) for name in (first, second)]
    with pytest.raises(
        InvalidValueError, match=rf"^instance_pools, {re.escape(second)}: .*\[{code}\]"
    ):
        make_endpoint(make_stack(), path, instance_pools=pools, **props)


def test_partitions_and_serverless_have_no_pools(path: Path) -> None:
    """CloudFormation has no property for partitions of a GPU,
    and serverless endpoints have no instances.
    """
    with pytest.raises(
        TypeError, match="unexpected keyword argument 'accelerator_partition_layouts'"
    ):
        make_endpoint(make_stack(), path, accelerator_partition_layouts=[])
    with pytest.raises(InvalidValueError, match=r"^serverless_config: not supported"):
        make_endpoint(make_stack(), path, serverless_config={"max_concurrency": 5})


def test_errors_of_the_models_are_those_of_every_type(tmp_path: Path) -> None:
    """Models that need more GPUs than one of the types has are refused,
    with all types that have too few.
    """
    write_model(tmp_path, "scale", group="kind: KIND_GPU gpus: [0, 1, 2, 3]")
    pools = [InstancePool(InstanceType.of("ml.g6.12xlarge")), *POOLS]
    with pytest.raises(
        InvalidValueError, match=r"^instance_pools, ml\.g6\.2xlarge, ml\.g5\.2xlarge: "
    ):
        make_endpoint(make_stack(), tmp_path, instance_pools=pools)


def test_warning_of_some_types_names_them(stack: cdk.Stack, tmp_path: Path) -> None:
    """Shared memory that is short on the smaller types only is one warning with each of them."""
    write_model(tmp_path, "scale", group="kind: KIND_CPU count: 900")
    types = ("ml.m7i.4xlarge", "ml.m7i.2xlarge", "ml.m7i.xlarge")
    pools = [InstancePool(InstanceType.of(name)) for name in types]
    make_endpoint(stack, tmp_path, instance_pools=pools)
    synthesize(stack)
    (text,) = (text for text in warnings(stack) if "target-shared-memory" in text)
    assert "on ml.m7i.2xlarge" not in text
    needed = "on ml.m7i.xlarge: the models need at least 14.1 GiB of /dev/shm, which has 8.0 GiB"
    assert needed in text


def test_different_default_amis_need_one_ami(path: Path) -> None:
    """All types run one AMI, so it must be chosen if the defaults differ;
    SageMaker's own is a warning.
    """
    props: dict[str, Any] = {"image": TritonImage.dlc("25.04")}
    with pytest.raises(
        InvalidValueError, match=r"ml\.g6\.2xlarge: not known, ml\.g5\.2xlarge: al2-ami-"
    ):
        make_endpoint(make_stack(), path, **props)

    chosen = make_stack()
    make_endpoint(chosen, path, inference_ami_version=AMI, **props)
    assert variant_of(chosen)["InferenceAmiVersion"] == AMI

    default = make_stack()
    make_endpoint(default, path, inference_ami_version=None, **props)
    assert "InferenceAmiVersion" not in variant_of(default)
    assert any("instance-pools-default-ami" in text for text in warnings(default))


def test_region_that_aws_did_not_name_is_a_warning(path: Path) -> None:
    """Other Regions may have been added, so the Region is not refused."""
    paris = cdk.Environment(account=ENVIRONMENT.account, region="eu-west-3")
    stack = cdk.Stack(cdk.App(), "Stack", env=paris)
    make_endpoint(stack, path)
    synthesize(stack)
    assert any("instance-pools-region" in text for text in warnings(stack))


def test_type_that_is_a_token_has_a_pool(stack: cdk.Stack, path: Path) -> None:
    """A type that is known only at deployment passes the checks;
    its own models are below its position.
    """
    token = InstanceType.of(cdk.Token.as_string({"Ref": "AWS::NoValue"}))
    repository = add_repository(stack, path, "Other")
    pools = [InstancePool(A10G), InstancePool(token, model_repository=repository)]
    endpoint = make_endpoint(stack, path, instance_pools=pools, inference_ami_version=AMI)
    assert endpoint.node.try_find_child("1Pool") is not None


def test_pool_needs_a_type() -> None:
    """The error shows how a pool is written."""
    missing: Any = None
    with pytest.raises(
        InvalidValueError, match=r"^instance_type: is required; write InstancePool\("
    ):
        InstancePool(missing)


def test_pools_without_gpus(stack: cdk.Stack, path: Path) -> None:
    """Types without GPUs need no inference AMI and run the image for CPUs."""
    pools = [InstancePool(InstanceType.of(name)) for name in ("ml.c7i.xlarge", "ml.m7i.xlarge")]
    make_endpoint(stack, path, instance_pools=pools)
    assert "InferenceAmiVersion" not in variant_of(stack)
    container = only(synthesize(stack), "AWS::SageMaker::Model")["PrimaryContainer"]
    assert "-cpu" in str(container["Image"])


def test_assertion_of_an_endpoint_knows_all_types(stack: cdk.Stack, path: Path) -> None:
    """``assert_endpoint`` compares the types of all pools."""
    make_endpoint(stack, path)
    assert_endpoint(stack, instance_types={"ml.g6.2xlarge", "ml.g5.2xlarge"})
