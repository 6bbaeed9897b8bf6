"""What AWS says about an endpoint before its load test."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from null_server import run_null_server

from constructs_triton_client import SageMakerTransport
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.load_test.target import describe_target, find_stand_ins

TIME = "2026-01-05T00:00:00"


@pytest.fixture
def stubs() -> tuple[SageMakerTransport, Stubber, Stubber]:
    """A transport, and what SageMaker and Application Auto Scaling answer it."""
    transport = SageMakerTransport("pets", session=boto3.Session("a", "b", region_name="eu-west-1"))
    sagemaker = Stubber(transport.client("sagemaker"))
    scaling = Stubber(transport.client("application-autoscaling"))
    return transport, sagemaker, scaling


def endpoint(status: str = "InService", **variants: int) -> dict[str, Any]:
    """The answer of DescribeEndpoint, with the instances of each variant."""
    counts = variants or {"A": 2}
    return {
        "EndpointName": "pets",
        "EndpointArn": "arn:aws:sagemaker:eu-west-1:111122223333:endpoint/pets",
        "EndpointConfigName": "config",
        "EndpointStatus": status,
        "CreationTime": TIME,
        "LastModifiedTime": TIME,
        "ProductionVariants": [
            {"VariantName": name, "CurrentInstanceCount": count} for name, count in counts.items()
        ],
    }


def config(**types: str) -> dict[str, Any]:
    """The answer of DescribeEndpointConfig, with the instance type of each variant."""
    variants = [
        {"VariantName": name, "ModelName": "m", "InstanceType": instance_type}
        for name, instance_type in (types or {"A": "ml.g5.xlarge"}).items()
    ]
    return {
        "EndpointConfigName": "config",
        "EndpointConfigArn": "arn:aws:sagemaker:eu-west-1:111122223333:endpoint-config/config",
        "ProductionVariants": variants,
        "CreationTime": TIME,
    }


def scalable(**suspended: bool) -> dict[str, Any]:
    """The answer of DescribeScalableTargets, with what is suspended."""
    target = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": "endpoint/pets/variant/A",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        "MinCapacity": 1,
        "MaxCapacity": 4,
        "RoleARN": "arn:aws:iam::111122223333:role/scaling",
        "CreationTime": TIME,
        "SuspendedState": suspended,
    }
    return {"ScalableTargets": [target]}


def test_instances_and_scaling_are_described(stubs: Any) -> None:
    """The type, the count, and a scalable target that is not suspended."""
    transport, sagemaker, scaling = stubs
    sagemaker.add_response("describe_endpoint", endpoint(), {"EndpointName": "pets"})
    sagemaker.add_response("describe_endpoint_config", config(), {"EndpointConfigName": "config"})
    expected = {"ServiceNamespace": "sagemaker", "ResourceIds": ["endpoint/pets/variant/A"]}
    scaling.add_response("describe_scalable_targets", scalable(), expected)
    with sagemaker, scaling:
        target = describe_target(transport)
    assert target.instance_type == "ml.g5.xlarge"
    assert target.instance_count == 2
    assert target.is_scaled
    assert target.notes == ()


def test_suspended_scaling_is_safe_and_mixed_types_are_unknown(stubs: Any) -> None:
    """Scaling that is suspended both ways does not change the count;
    two types have no single name.
    """
    transport, sagemaker, scaling = stubs
    sagemaker.add_response("describe_endpoint", endpoint(A=1, B=3))
    sagemaker.add_response("describe_endpoint_config", config(A="ml.g5.xlarge", B="ml.g5.2xlarge"))
    suspended = scalable(DynamicScalingInSuspended=True, DynamicScalingOutSuspended=True)
    scaling.add_response("describe_scalable_targets", suspended)
    with sagemaker, scaling:
        target = describe_target(transport)
    assert target.instance_type is None
    assert target.instance_count == 4
    assert not target.is_scaled


def test_one_variant_is_described_alone(stubs: Any) -> None:
    """Its instances share the load, and only its scaling matters;
    another name gets a suggestion.
    """
    transport, sagemaker, scaling = stubs
    for _ in range(2):
        sagemaker.add_response("describe_endpoint", endpoint(Blue=1, Green=3))
        sagemaker.add_response(
            "describe_endpoint_config", config(Blue="ml.g5.xlarge", Green="ml.c7i.xlarge")
        )
    expected = {"ServiceNamespace": "sagemaker", "ResourceIds": ["endpoint/pets/variant/Green"]}
    scaling.add_response("describe_scalable_targets", {"ScalableTargets": []}, expected)
    with sagemaker, scaling:
        target = describe_target(transport, variant="Green")
        with pytest.raises(
            InvalidValueError, match=r"--target-variant: .* no variant 'Gren'; did you mean"
        ):
            describe_target(transport, variant="Gren")
    assert (target.instance_type, target.instance_count) == ("ml.c7i.xlarge", 3)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [({"ml.g6.xlarge": 0, "ml.g5.xlarge": 2}, "ml.g5.xlarge"), ({"a": 1, "b": 1}, None)],
)
def test_type_of_an_endpoint_with_pools_is_the_one_that_runs(
    counts: dict[str, int], expected: str | None, stubs: Any
) -> None:
    """A mixed fleet has no single type, so what was measured is not attributed to one."""
    transport, sagemaker, scaling = stubs
    described = endpoint()
    described["ProductionVariants"][0]["InstancePools"] = [
        {"InstanceType": name, "CurrentInstanceCount": count} for name, count in counts.items()
    ]
    configured = config()
    del configured["ProductionVariants"][0]["InstanceType"]
    sagemaker.add_response("describe_endpoint", described)
    sagemaker.add_response("describe_endpoint_config", configured)
    scaling.add_response("describe_scalable_targets", {"ScalableTargets": []})
    with sagemaker, scaling:
        assert describe_target(transport).instance_type == expected


@pytest.mark.parametrize(
    "answer", [b"no JSON", b"[]", b'{"pets": 3}', b'{"pets": {"A": 3}}', b"{}"]
)
def test_another_program_has_no_stand_ins(answer: bytes) -> None:
    """A container, or a proxy of your own, is tested as it is."""
    with run_null_server() as server:
        server.answer = answer
        assert find_stand_ins(server.url, "pets") == {}
    assert find_stand_ins(server.url, "pets") == {}


def test_denied_calls_become_notes(stubs: Any) -> None:
    """A caller that may only invoke the endpoint can still test it;
    a note asks to check the scaling.
    """
    transport, sagemaker, scaling = stubs
    sagemaker.add_client_error("describe_endpoint", "AccessDeniedException", "no")
    sagemaker.add_response("describe_endpoint", endpoint())
    sagemaker.add_response("describe_endpoint_config", config())
    scaling.add_client_error("describe_scalable_targets", "AccessDeniedException", "no")
    with sagemaker, scaling:
        unknown = describe_target(transport)
        unscaled = describe_target(transport)
    assert unknown.instance_type is None
    assert not unknown.is_scaled
    assert "The instances of pets are unknown" in unknown.notes[0]
    assert unscaled.instance_count == 2
    assert "Make sure that pets does not scale during the test" in unscaled.notes[0]


def test_endpoint_must_be_in_service(stubs: Any) -> None:
    """A failed endpoint is not tested."""
    transport, sagemaker, scaling = stubs
    sagemaker.add_response("describe_endpoint", endpoint("Failed"))
    with (
        sagemaker,
        scaling,
        pytest.raises(InvalidValueError, match=r"pets: must be in service, got Failed"),
    ):
        describe_target(transport)
