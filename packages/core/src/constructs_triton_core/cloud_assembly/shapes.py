"""The form of what is read of a cloud assembly, so that a file of another form is an error with its
place.

A form is an object with members, a list of one form, or one of the words below. Members that are
not read have any form. A name that ends in ``!`` is required, and ``*`` is every member.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["ADOPTED_TYPE", "PROPERTIES", "TEMPLATE"]

ADOPTED_TYPE = "Custom::TritonAdoptedEndpoint"
"""An endpoint that existed before its stack, a custom resource with the properties of an endpoint.

``constructs_triton_functions`` declares the same type, because its modules import nothing of this
package.
"""

STRING, SCALAR, NUMBER = "a string", "a string or a number", "a number"

_STARTUP: Final = {"ContainerStartupHealthCheckTimeoutInSeconds": NUMBER}
_CONTAINER: Final = {
    "Image": SCALAR,
    "Mode": SCALAR,
    "Environment": {"*": SCALAR},
    "ModelDataUrl": SCALAR,
    "ArtifactUrl": SCALAR,
    "ModelDataSource": {
        "S3DataSource": {"CompressionType": SCALAR, "S3DataType": SCALAR, "S3Uri": SCALAR}
    },
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
_SPECIFICATION: Final = {
    "ModelName": SCALAR,
    "Container": _CONTAINER,
    "StartupParameters": _STARTUP,
}
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
        "ScheduledActions": [
            {"Schedule!": SCALAR, "Timezone": SCALAR, "ScalableTargetAction": _CAPACITIES},
        ],
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
    "AWS::CloudWatch::Alarm": {
        "AlarmActions": [SCALAR],
        "Period": NUMBER,
        "EvaluationPeriods": NUMBER,
    },
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
    },
    "missing": [{"key!": STRING}],
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
