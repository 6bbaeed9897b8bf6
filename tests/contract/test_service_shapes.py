"""The check against service models finds errors that botocore does not find."""

from __future__ import annotations

import re
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator
from service_shapes import check_call, python_pattern

TARGET: dict[str, Any] = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/bert/variant/blue",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    "MinCapacity": 1,
    "MaxCapacity": "4",
}
VARIANT: dict[str, Any] = {
    "VariantName": "blue",
    "InstanceType": "ml.g5.xlarge",
    "InitialInstanceCount": 1,
}


def config(**variant: Any) -> dict[str, Any]:
    return {"EndpointConfigName": "bert", "ProductionVariants": [{**VARIANT, **variant}]}


def test_valid_requests_pass() -> None:
    """Complete requests pass, with a number written as a string as CloudFormation allows."""
    assert check_call("application-autoscaling", "RegisterScalableTarget", TARGET) == []
    assert check_call("sagemaker", "CreateEndpointConfig", config()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"ScalableDimension": "sagemaker:variant:InstanceCount"},
            "must be one of 24 allowed values",
        ),
        ({"ResourceId": "x" * 1601}, "must be at most 1600 characters, got 1601"),
        ({"ResourceId": ""}, "must be at least 1 characters, got 0"),
        ({"MinCapacity": 1.5}, "must be a whole number, got 1.5"),
        ({"MinCapacity": "many"}, "must be a whole number, got 'many'"),
        ({"SuspendedState": {"ScheduledScalingSuspended": 1.0}}, "must be true or false"),
        ({"SuspendedState": []}, "must be a structure"),
        ({"Size": 1}, "has no member Size"),
    ],
)
def test_wrong_values_of_a_target(change: dict[str, Any], message: str) -> None:
    """Each wrong value has its own message."""
    (found,) = check_call("application-autoscaling", "RegisterScalableTarget", {**TARGET, **change})
    assert message in found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"VariantName": "blue green"}, "must match"),
        ({"InstanceType": "ml.g5.xxlarge"}, "InstanceType: must be one of"),
        ({"ContainerStartupHealthCheckTimeoutInSeconds": 3601}, "must be at most 3600"),
        ({"VolumeSizeInGB": 513}, "must be at most 512"),
    ],
)
def test_check_is_stricter_than_botocore(change: dict[str, Any], message: str) -> None:
    """Enumerations, maxima and patterns are checked, which botocore does not do."""
    request = config(**change)
    model = botocore.session.get_session().get_service_model("sagemaker")
    shape = model.operation_model("CreateEndpointConfig").input_shape
    assert shape is not None
    report = ParamValidator().validate(request, shape)
    assert not report.has_errors()
    (found,) = check_call("sagemaker", "CreateEndpointConfig", request)
    assert message in found


def test_missing_members_are_named() -> None:
    """Each missing required member has its own line."""
    found = check_call("application-autoscaling", "RegisterScalableTarget", {"MinCapacity": 1})
    assert [each.rsplit(" ", 3)[1] for each in found] == [
        "ServiceNamespace",
        "ResourceId",
        "ScalableDimension",
    ]


def test_every_pattern_of_the_services_can_be_converted() -> None:
    """Every pattern of the service models can be converted from Java, except invalid ones."""
    session = botocore.session.get_session()
    patterns = {
        shape.metadata["pattern"]
        for service in ("sagemaker", "sagemaker-runtime", "application-autoscaling", "cloudwatch")
        for model in [session.get_service_model(service)]
        for shape in map(model.shape_for, model.shape_names)
        if "pattern" in shape.metadata
    }
    assert len(patterns) > 100
    for pattern in patterns:
        if "${1," not in pattern:
            re.compile(python_pattern(pattern))


@pytest.mark.parametrize(
    ("pattern", "text", "is_match"),
    [
        (r"\p{Print}+", "a b", True),
        (r"\p{Print}+", "a\n", False),
        (r"[\p{L}_]+", "ab_", True),
        (r"[\p{L}_]+", "1", False),
    ],
)
def test_unicode_properties(pattern: str, text: str, is_match: bool) -> None:
    """A Unicode property means its characters, alone and within a set."""
    assert (re.fullmatch(python_pattern(pattern), text) is not None) is is_match
