"""Cloud assemblies with parts of another form than ``cdk synth`` writes."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from constructs_triton.cli.recommender import check_template
from constructs_triton.errors import ConstructsTritonError
from constructs_triton.local.sources.assembly import read_endpoints
from constructs_triton.planning.template_scaling import read_scaling

__all__ = ["DOCUMENTS", "read_assembly", "seeds"]

_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, "", "x", "Model", [], [[]], ["x"], {}, {"x": 1}, [None], {"Ref": "Model"}),
    *({"Ref": "P"}, {"Ref": ["x"]}, {"Fn::GetAtt": "x"}, {"Fn::Join": 5}, {"Fn::If": ["C", 1, 2]}),
    *({"Fn::Select": []}, {"Fn::Sub": "${Model}${P}"}, {"Fn::FindInMap": [1, {}, []]}, {"Condition": "C"}),
)
_STEPS = {"StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}], "Cooldown": 60}
_CONTAINER = {"Image": "i", "ModelDataUrl": "s3://b/a.tar.gz", "Environment": {"A": "1"}}
_RESOURCES: dict[str, tuple[str, Any]] = {
    "Model": ("SageMaker::Model", {"PrimaryContainer": _CONTAINER}),
    "Many": (
        "SageMaker::Model",
        {"Containers": [{**_CONTAINER, "Mode": "MultiModel", "ModelDataUrl": "s3://m/models/"}]},
    ),
    "Config": (
        "SageMaker::EndpointConfig",
        {
            "ProductionVariants": [
                {"VariantName": "a", "ModelName": {"Ref": "Model"}, "InitialVariantWeight": 1},
                {"VariantName": "b", "ModelName": {"Ref": "Many"}, "InstanceType": "ml.g5.xlarge"},
            ],
            "AsyncInferenceConfig": {"OutputConfig": {"S3OutputPath": "s3://b/o"}},
        },
    ),
    "Endpoint": (
        "SageMaker::Endpoint",
        {"EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]}},
    ),
    "Sync": (
        "CloudFormation::CustomResource",
        {
            "SourceBucket": "b",
            "ManifestKey": "m.json",
            "ManifestDigest": "d",
            "DestinationBucket": "m",
            "DestinationPrefix": "models/",
        },
    ),
    "Target": (
        "ApplicationAutoScaling::ScalableTarget",
        {
            "ResourceId": "endpoint/Endpoint/variant/a",
            "MinCapacity": 1,
            "MaxCapacity": "4",
            "ScheduledActions": [{"Schedule": "rate(1 day)", "ScalableTargetAction": {"MinCapacity": 2}}],
        },
    ),
    "Policy": (
        "ApplicationAutoScaling::ScalingPolicy",
        {
            "ScalingTargetId": {"Ref": "Target"},
            "TargetTrackingScalingPolicyConfiguration": {
                "TargetValue": 10,
                "ScaleInCooldown": 60,
                "PredefinedMetricSpecification": {
                    "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
                },
            },
        },
    ),
    "Steps": (
        "ApplicationAutoScaling::ScalingPolicy",
        {"ScalingTargetId": {"Ref": "Target"}, "StepScalingPolicyConfiguration": _STEPS},
    ),
    "Alarm": (
        "CloudWatch::Alarm",
        {
            "AlarmActions": [{"Ref": "Steps"}],
            "MetricName": "Invocations",
            "Threshold": 5,
            "ComparisonOperator": "GreaterThanThreshold",
            "EvaluationPeriods": 1,
            "Period": 60,
        },
    ),
}
DOCUMENTS: dict[str, Any] = {
    "manifest.json": {
        "version": "1",
        "artifacts": {
            "Shop.assets": {"type": "cdk:asset-manifest", "properties": {"file": "Shop.assets.json"}},
            "Shop": {
                "type": "aws:cloudformation:stack",
                "environment": "aws://1/us-east-1",
                "properties": {"templateFile": "Shop.template.json", "stackName": "Shop"},
                "dependencies": ["Shop.assets"],
            },
        },
    },
    "Shop.template.json": {
        "Parameters": {"P": {"Type": "String", "Default": "x"}},
        "Mappings": {"M": {"a": {"b": "c"}}},
        "Conditions": {"C": {"Fn::Equals": [{"Ref": "P"}, "x"]}},
        "Resources": {
            name: {"Type": f"AWS::{kind}", "Properties": properties, "Condition": "C", "DependsOn": "Model"}
            for name, (kind, properties) in _RESOURCES.items()
        },
    },
    "Shop.assets.json": {
        "files": {
            name: {
                "displayName": name,
                "source": {"path": name, "packaging": "file"},
                "destinations": {"a": {"bucketName": "b", "objectKey": name}},
            }
            for name in ("a.tar.gz", "m.json")
        },
    },
    "m.json": {
        "version": 1,
        "archives": [{"Name": "a", "SourceKey": "a.tar.gz", "TargetModel": "a.tar.gz", "SizeBytes": 1}],
    },
}
DOCUMENTS["Shop.template.json"]["Resources"]["Sync"]["Type"] = "Custom::TritonModelSync"


def seeds() -> list[bytes]:
    """An empty seed changes nothing; any other decides what is changed."""
    return [b"", b"seed"]


def read_assembly(content: bytes, folder: Path) -> None:
    """Read an assembly, in which some values are replaced, with each command that reads one."""
    documents = copy.deepcopy(DOCUMENTS)
    rng = random.Random(content)
    for _ in range(rng.randint(1, 3) if content else 0):
        _replace_one(rng, documents[rng.choice(list(documents))])
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document), encoding="utf-8")
    (folder / "a.tar.gz").touch()
    template = folder / "Shop.template.json"
    for read in (read_endpoints, read_scaling, check_template):
        target = folder if read is read_endpoints else template
        if content:
            with suppress(ConstructsTritonError):
                read(target)
        else:
            read(target)


def _replace_one(rng: random.Random, document: Any) -> None:
    places = list(_places(document))
    if not places:  # a change before this one has removed all
        return
    container, key = rng.choice(places)
    if rng.random() < 0.2:
        del container[key]
    else:
        container[key] = copy.deepcopy(rng.choice(_VALUES))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each member of an object or a list, with its key."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
