"""Cloud assemblies with parts of another form than ``cdk synth`` writes,
and with references that share.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from constructs_triton_core.cloud_assembly.assembly import read_stacks
from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_tools.assembly.fleets import fleets_of
from constructs_triton_tools.assembly.service_graph import ServiceGraph
from constructs_triton_tools.cli.recommender import check_template
from constructs_triton_tools.local.sources.assembly import read_endpoints
from constructs_triton_tools.planning.template_scaling import read_scaling

_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        1.5,
        "",
        "x",
        "Model",
        [],
        [[]],
        ["x"],
        {},
        {"x": 1},
        [None],
        {"Ref": "Model"},
    ),
    *({"Ref": "P"}, {"Ref": ["x"]}, {"Fn::GetAtt": "x"}, {"Fn::Join": 5}, {"Fn::If": ["C", 1, 2]}),
    *(
        {"Fn::Select": []},
        {"Fn::Sub": "${Model}${P}"},
        {"Fn::FindInMap": [1, {}, []]},
        {"Condition": "C"},
    ),
)
_Kind = Callable[[list[str]], Any]
_TRUE = {"Fn::Equals": ["a", "a"]}
_CONDITIONS: tuple[_Kind, ...] = (
    lambda used: {"Fn::And": [{"Condition": name} for name in used]},
    lambda used: {"Fn::Or": [{"Fn::Not": [{"Condition": name}]} for name in used]},
    lambda used: {
        "Fn::Equals": [{"Fn::If": [used[0], {"Ref": used[-1]}, 1]}, {"Fn::If": [used[-1], 1, 2]}]
    },
)
_FUNCTIONS: tuple[_Kind, ...] = (
    lambda used: {"Fn::Join": ["-", [{"Ref": name} for name in used]]},
    lambda used: {"Fn::Join": [",", {"Fn::Split": ["a", {"Ref": used[0]}]}]},
    lambda used: {"Fn::Sub": "".join(f"${{{name}}}" for name in used)},
    lambda used: {"Fn::Sub": ["${V}${V}", {"V": {"Fn::GetAtt": [used[0], "ModelName"]}}]},
    lambda used: {"Fn::Select": [0, [{"Ref": name} for name in used]]},
    lambda used: {
        "Fn::If": [used[0], [{"Fn::ImportValue": name} for name in used], {"Ref": used[-1]}]
    },
    lambda used: {
        "Fn::FindInMap": [{"Fn::FindInMap": [used[0], "a", "b"]}, "a", {"Ref": used[-1]}]
    },
    lambda used: {"Fn::GetStackOutput": {"StackName": "Shop", "OutputName": used[0]}},
    lambda used: {"Fn::Base64": {"Fn::Join": [{"Ref": used[0]}, [{"Ref": name} for name in used]]}},
    lambda used: {"a": [{"Fn::ImportValue": name} for name in used]},
)
_STEPS = {
    "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
    "Cooldown": 60,
}
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
            "ScheduledActions": [
                {"Schedule": "rate(1 day)", "ScalableTargetAction": {"MinCapacity": 2}}
            ],
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
            "Shop.assets": {
                "type": "cdk:asset-manifest",
                "properties": {"file": "Shop.assets.json"},
            },
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
            name: {
                "Type": f"AWS::{kind}",
                "Properties": properties,
                "Condition": "C",
                "DependsOn": "Model",
            }
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
        "archives": [
            {"Name": "a", "SourceKey": "a.tar.gz", "TargetModel": "a.tar.gz", "SizeBytes": 1}
        ],
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
    if content and rng.random() < 0.5:
        _add_graph(rng, documents["Shop.template.json"])
    for _ in range(rng.randint(0, 3) if content else 0):
        replace_one(rng, documents[rng.choice(list(documents))])
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document), encoding="utf-8")
    (folder / "a.tar.gz").touch()
    template = folder / "Shop.template.json"
    for read in (read_endpoints, _read_graphs, read_scaling, check_template):
        target = folder if read in (read_endpoints, _read_graphs) else template
        if content:
            with suppress(ConstructsTritonError):
                read(target)
        else:
            read(target)


def _read_graphs(folder: Path) -> None:
    """Read an assembly as ``graph`` and ``cost`` do."""
    for stack in read_stacks(folder, None):
        ServiceGraph.of(stack)
        list(fleets_of(stack))


def _add_graph(rng: random.Random, template: dict[str, Any]) -> None:
    """Add names, conditions, mappings and outputs that each use others, often several times.

    A few kilobytes stand for any amount of work or text. Some references go in a circle.
    """
    size = rng.choice((5, 30, 60, 200))
    names = [f"N{number}" for number in range(size)]
    template["Conditions"].update(
        {name: _shared(rng, names, place, _CONDITIONS) for place, name in enumerate(names)}
    )
    template["Mappings"].update(
        {name: {"a": {"b": rng.choice((name, "a", ["x"]))}} for name in names}
    )
    values = [_shared(rng, names, place, _FUNCTIONS) for place in range(size)]
    for name, value in zip(names, values, strict=True):
        model = {
            "ModelName": value,
            "PrimaryContainer": {**_CONTAINER, "Environment": {"A": value}},
        }
        template["Resources"][name] = {
            "Type": "AWS::SageMaker::Model",
            "Properties": model,
            "Condition": rng.choice(names),
        }
    template["Outputs"] = {
        name: {"Value": value, "Export": {"Name": name}}
        for name, value in zip(names, values, strict=True)
    }
    last = {"Ref": names[-1]}
    template["Resources"]["Model"]["Properties"]["ModelName"] = last
    template["Resources"]["Endpoint"]["Properties"]["EndpointName"] = {
        "Fn::Join": ["-", [last] * 3]
    }


def _shared(rng: random.Random, names: list[str], place: int, kinds: Sequence[_Kind]) -> Any:
    """Return a function of the name before this one, or rarely of any name,
    which may make a circle.
    """
    if place == 0:
        return rng.choice(("a" * 50, {"Fn::Equals": ["a", "a"]})) if kinds is _FUNCTIONS else _TRUE
    used = [
        names[place - 1] if rng.random() < 0.95 else rng.choice(names)
        for _ in range(rng.choice((1, 2, 2, 4)))
    ]
    return rng.choice(kinds)(used)


def replace_one(rng: random.Random, document: Any, values: Sequence[Any] = _VALUES) -> None:
    """Replace or remove one value of a document."""
    places = list(_places(document))
    if not places:  # a change before this one has removed all
        return
    container, key = rng.choice(places)
    if rng.random() < 0.2:
        del container[key]
    else:
        container[key] = copy.deepcopy(rng.choice(values))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each member of an object or a list, with its key."""
    keys = (
        list(value)
        if isinstance(value, dict)
        else range(len(value))
        if isinstance(value, list)
        else ()
    )
    for key in keys:
        yield value, key
        yield from _places(value[key])
