"""The form of what is read of a cloud assembly, so that a file of another form is an error with its place.

A form is an object with members, a list of one form, or one of the words below. Members that are not read
have any form. A name that ends in ``!`` is required, and ``*`` is every member.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from constructs_triton_core.errors import TemplateError

__all__ = ["ADOPTED_TYPE", "PROPERTIES", "TEMPLATE", "check_shape"]

ADOPTED_TYPE = "Custom::TritonAdoptedEndpoint"
"""An endpoint that existed before its stack, with the properties of ``AWS::SageMaker::Endpoint``."""


STRING, SCALAR, NUMBER = "a string", "a string or a number", "a number"

_STARTUP: Final = {"ContainerStartupHealthCheckTimeoutInSeconds": NUMBER}
_CONTAINER: Final = {
    "Image": SCALAR,
    "Mode": SCALAR,
    "Environment": {"*": SCALAR},
    "ModelDataUrl": SCALAR,
    "ArtifactUrl": SCALAR,
    "ModelDataSource": {"S3DataSource": {"CompressionType": SCALAR, "S3DataType": SCALAR, "S3Uri": SCALAR}},
    "MultiModelConfig": {"ModelCacheSetting": SCALAR},
}
_VARIANT: Final = {
    "VariantName!": SCALAR,
    "ModelName": SCALAR,
    "InstanceType": SCALAR,
    "InstancePools": [{"InstanceType!": SCALAR, "Priority!": NUMBER, "ModelNameOverride": SCALAR}],
    "InitialVariantWeight": NUMBER,
    **_STARTUP,
}
_SPECIFICATION: Final = {"ModelName": SCALAR, "Container": _CONTAINER, "StartupParameters": _STARTUP}
_CAPACITIES: Final = {"MinCapacity": NUMBER, "MaxCapacity": NUMBER}
_STEP: Final = {
    "MetricIntervalLowerBound": NUMBER,
    "MetricIntervalUpperBound": NUMBER,
    "ScalingAdjustment!": NUMBER,
}

_ENDPOINT: Final = {"EndpointName": SCALAR, "EndpointConfigName": SCALAR}

PROPERTIES: Final[Mapping[str, Any]] = {
    "AWS::SageMaker::Model": {"PrimaryContainer": _CONTAINER, "Containers": [_CONTAINER]},
    "AWS::SageMaker::EndpointConfig": {
        "ProductionVariants": [_VARIANT],
        "ShadowProductionVariants": [_VARIANT],
        "AsyncInferenceConfig": {
            "OutputConfig": {"S3OutputPath": SCALAR, "S3FailurePath": SCALAR},
            "ClientConfig": {"MaxConcurrentInvocationsPerInstance": NUMBER},
        },
    },
    "AWS::SageMaker::Endpoint": _ENDPOINT,
    ADOPTED_TYPE: _ENDPOINT,
    "AWS::SageMaker::InferenceComponent": {
        "EndpointName": SCALAR,
        "VariantName": SCALAR,
        "Specification": _SPECIFICATION,
        "Specifications": [_SPECIFICATION],
    },
    "AWS::ApplicationAutoScaling::ScalableTarget": {
        "ResourceId": SCALAR,
        **_CAPACITIES,
        "ScheduledActions": [{"Schedule!": SCALAR, "Timezone": SCALAR, "ScalableTargetAction": _CAPACITIES}],
    },
    "AWS::ApplicationAutoScaling::ScalingPolicy": {
        "ScalingTargetId": SCALAR,
        "TargetTrackingScalingPolicyConfiguration": {
            "TargetValue!": NUMBER,
            "ScaleInCooldown": NUMBER,
            "ScaleOutCooldown": NUMBER,
            "PredefinedMetricSpecification": {"PredefinedMetricType": SCALAR},
            "CustomizedMetricSpecification": {"MetricName": SCALAR},
        },
        "StepScalingPolicyConfiguration": {
            "AdjustmentType": SCALAR,
            "Cooldown": NUMBER,
            "MinAdjustmentMagnitude": NUMBER,
            "StepAdjustments!": [_STEP],
        },
    },
    "AWS::CloudWatch::Alarm": {"AlarmActions": [SCALAR], "Period": NUMBER, "EvaluationPeriods": NUMBER},
    "AWS::CloudFormation::Stack": {"Parameters": {}},
}
"""The properties that are read, by the type of their resource."""

TEMPLATE: Final[Mapping[str, Any]] = {
    "Parameters": {"*": {}},
    "Rules": {"*": {}},
    "Mappings": {"*": {"*": {}}},
    "Conditions": {"*": {}},
    "Outputs": {"*": {}},
    "Resources": {
        "*": {
            "Type": STRING,
            "Properties": {},
            "Condition": STRING,
            "DeletionPolicy": STRING,
            "UpdateReplacePolicy": STRING,
            "Metadata": {"aws:asset:path": STRING},
        }
    },
}

MANIFEST: Final[Mapping[str, Any]] = {
    "artifacts": {
        "*": {
            "type!": STRING,
            "environment": STRING,
            "displayName": STRING,
            "dependencies": [STRING],
            "properties": {
                "directoryName": STRING,
                "file": STRING,
                "stackName": STRING,
                "templateFile": STRING,
            },
            "additionalMetadataFile": STRING,
        }
    }
}

METADATA: Final[Mapping[str, Any]] = {"*": [{"type!": STRING}]}
"""What the CDK writes of each construct path."""

ASSETS: Final[Mapping[str, Any]] = {
    "files": {
        "*": {
            "displayName": STRING,
            "source": {"path": STRING, "packaging": STRING},
            "destinations": {"*": {"bucketName": STRING, "objectKey!": STRING}},
        }
    },
    "dockerImages": {"*": {"displayName": STRING, "destinations": {"*": {"imageTag!": STRING}}}},
}


def check_shape(value: Any, shape: Any, where: str, hint: str) -> None:
    """Check the form of a value. Members that are ``None`` are as absent ones.

    Raises:
        TemplateError: it has another form; the message has the place, the form and ``hint``.
    """
    for place, expected, got in _problems(value, shape, ""):
        where = f"{where}: {place.removeprefix('.')}" if place else where
        raise TemplateError(f"{where}: must be {expected}, got {got!r:.100}; {hint}")


def _problems(value: Any, shape: Any, place: str) -> Iterator[tuple[str, str, Any]]:
    if isinstance(shape, Mapping):
        if isinstance(value, Mapping):
            yield from _member_problems(value, shape, place)
        else:
            yield place, "an object", value
    elif isinstance(shape, list):
        if isinstance(value, list):
            for index, each in enumerate(value):
                yield from _problems(each, shape[0], f"{place}[{index}]")
        else:
            yield place, "a list", value
    elif not _is_scalar(value, shape):
        yield place, shape, value


def _member_problems(
    value: Mapping[str, Any], shape: Mapping[str, Any], place: str
) -> Iterator[tuple[str, str, Any]]:
    if "*" in shape:
        for name, each in value.items():
            yield from _problems(each, shape["*"], f"{place}.{name}")
        return
    for name, expected in shape.items():
        each = value.get(name.removesuffix("!"))
        if each is not None:
            yield from _problems(each, expected, f"{place}.{name.removesuffix('!')}")
        elif name.endswith("!"):
            yield f"{place}.{name[:-1]}", "given", each


def _is_scalar(value: Any, shape: str) -> bool:
    if isinstance(value, str):
        return shape != NUMBER or _is_number(value)
    if isinstance(value, Mapping):  # an intrinsic function whose value only a deployment decides
        return shape != STRING and len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::"))
    if isinstance(value, bool):
        return shape == SCALAR
    return isinstance(value, int | float) and shape != STRING


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False
