"""Edits of any template that AWS carries out and that the callers of the endpoints do not notice.

Each edit changes a template in place and returns whether it found what it edits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from cdk_rehearse.services.resource_schemas import resource_schema

from .additions import ADDED, SECTIONS, add_resources, add_section
from .bases import allow, document, ref, resource
from .mutant import Body

Edit = Callable[[Body], bool]
_IMAGE = re.compile(r"(sagemaker-tritonserver:)(\d+\.\d+)")


def _of_type(body: Body, *types: str) -> Iterator[dict[str, Any]]:
    """The properties of the resources of these types."""
    for each in body["Resources"].values():
        if each["Type"] in types:
            yield each.setdefault("Properties", {})


def _describe(body: Body) -> bool:
    body["Description"] = f"{body.get('Description', '')} Reviewed."
    return True


def _annotate(body: Body) -> bool:
    body["Metadata"] = {**body.get("Metadata", {}), "Owner": "vision"}
    for each in body["Resources"].values():
        each["Metadata"] = {**each.get("Metadata", {}), "Owner": "vision"}
    return True


def _tag(body: Body) -> bool:
    """A tag on every resource whose type has a list of tags."""
    found = False
    for each in body["Resources"].values():
        schema = resource_schema(each["Type"]).body.get("properties", {})
        if (
            "Tags" in schema
            and schema["Tags"].get("type", "array") == "array"
            and "Fn::If" not in each.get("Properties", {})
        ):
            properties = each.setdefault("Properties", {})
            properties["Tags"] = [*properties.get("Tags", []), {"Key": "owner", "Value": "vision"}]
            found = True
    return found


def _reverse_resources(body: Body) -> bool:
    body["Resources"] = dict(reversed(body["Resources"].items()))
    return True


def _policies(body: Body) -> Iterator[dict[str, Any]]:
    """Every policy document of the template."""

    def inside(value: Any) -> Iterator[dict[str, Any]]:
        if isinstance(value, dict):
            if isinstance(value.get("Statement"), list) and "Version" in value:
                yield value
            for each in value.values():
                yield from inside(each)
        elif isinstance(value, list):
            for each in value:
                yield from inside(each)

    yield from inside(body["Resources"])


def _reverse_statements(body: Body) -> bool:
    documents = [each for each in _policies(body) if len(each["Statement"]) > 1]
    for each in documents:
        each["Statement"].reverse()
    return bool(documents)


def _list_actions(body: Body) -> bool:
    """``Action`` as a list of one."""
    statements = [
        one
        for each in _policies(body)
        for one in each["Statement"]
        if isinstance(one.get("Action"), str)
    ]
    for each in statements:
        each["Action"] = [each["Action"]]
    return bool(statements)


def _split_statements(body: Body) -> bool:
    """Two statements in place of one with several actions."""
    found = False
    for each in _policies(body):
        statements = []
        for one in each["Statement"]:
            actions = one.get("Action")
            if isinstance(actions, list) and len(actions) > 1 and "Sid" not in one:
                statements += [{**one, "Action": actions[:1]}, {**one, "Action": actions[1:]}]
                found = True
            else:
                statements.append(one)
        each["Statement"] = statements
    return found


def _allow_more(body: Body) -> bool:
    """One more policy for each role of the template."""
    roles = [name for name, each in body["Resources"].items() if each["Type"] == "AWS::IAM::Role"]
    for number, name in enumerate(roles):
        body["Resources"][f"AddedPolicy{number}"] = resource(
            "AWS::IAM::Policy",
            PolicyName="added",
            Roles=[ref(name)],
            PolicyDocument=document(allow("s3:ListAllMyBuckets", "*")),
        )
    return bool(roles)


def _set(
    types: tuple[str, ...],
    name: str,
    change: Callable[[Any], Any],
    body: Body,
    *,
    adds: bool = False,
) -> bool:
    """Change one property of each resource of some types."""
    found = [each for each in _of_type(body, *types) if adds or name in each]
    for each in found:
        each[name] = change(each.get(name))
    return bool(found)


def _retain(body: Body) -> bool:
    kinds = ("AWS::Logs::LogGroup", "AWS::S3::Bucket", "AWS::SNS::Topic", "AWS::DynamoDB::Table")
    found = [
        each
        for each in body["Resources"].values()
        if each["Type"] in kinds and each.get("DeletionPolicy", "Delete") == "Delete"
    ]
    for each in found:
        each["DeletionPolicy"] = each["UpdateReplacePolicy"] = "Retain"
    return bool(found)


def _second_endpoint(body: Body) -> bool:
    """Another endpoint with the configuration of the first."""
    for name, each in list(body["Resources"].items()):
        if each["Type"] == "AWS::SageMaker::Endpoint":
            config = each["Properties"]["EndpointConfigName"]
            body["Resources"][f"{name}Second"] = {
                **resource("AWS::SageMaker::Endpoint", EndpointConfigName=config),
                "DependsOn": each.get("DependsOn", []),
            }
            return True
    return False


def _variable(body: Body) -> bool:
    """One more environment variable for each container."""
    containers = [
        container
        for model in _of_type(body, "AWS::SageMaker::Model")
        for container in [
            *model.get("Containers", ()),
            *filter(None, [model.get("PrimaryContainer")]),
        ]
    ]
    for each in containers:
        each["Environment"] = {**each.get("Environment", {}), "OWNER": "vision"}
    return bool(containers)


def _image(body: Body) -> bool:
    """Another version of the Triton image."""
    text = json.dumps(body)
    changed = _IMAGE.sub(
        lambda found: f"{found[1]}{'25.04' if found[2] != '25.04' else '25.09'}", text
    )
    body.update(json.loads(changed))
    return changed != text


def _reword(body: Body) -> bool:
    """Pseudo parameters in ``Fn::Sub`` in place of ``Ref``: the same values."""
    text = json.dumps(body["Resources"])
    changed = text.replace('{"Ref": "AWS::Region"}', '{"Fn::Sub": "${AWS::Region}"}')
    body["Resources"] = json.loads(changed)
    return changed != text


def _rename_outputs(body: Body) -> bool:
    """Outputs without an export get another logical ID."""
    outputs = body.get("Outputs", {})
    body["Outputs"] = {
        name if "Export" in each else f"{name}Two": each for name, each in outputs.items()
    }
    return any("Export" not in each for each in outputs.values())


def _cooldown(body: Body) -> bool:
    name = "TargetTrackingScalingPolicyConfiguration"
    found = [
        each[name]
        for each in _of_type(body, "AWS::ApplicationAutoScaling::ScalingPolicy")
        if name in each
    ]
    for each in found:
        each["ScaleInCooldown"] = int(each.get("ScaleInCooldown", 300)) + 60
    return bool(found)


def _raise_maximum(body: Body) -> bool:
    target = ("AWS::ApplicationAutoScaling::ScalableTarget", "Custom::TritonScalableTarget")
    return _set(target, "MaxCapacity", lambda given: int(given) + 2, body)


def _lifecycle(body: Body) -> bool:
    """Uploads that were not completed are removed, in buckets without other rules."""
    rule = {
        "Id": "added",
        "Status": "Enabled",
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
    }
    found = [
        each for each in _of_type(body, "AWS::S3::Bucket") if "LifecycleConfiguration" not in each
    ]
    for each in found:
        each["LifecycleConfiguration"] = {"Rules": [rule]}
    return bool(found)


_CHANGED: Mapping[str, Edit] = {
    "description": _describe,
    "metadata": _annotate,
    "tag on everything": _tag,
    "resources reversed": _reverse_resources,
    "statements reversed": _reverse_statements,
    "action as a list": _list_actions,
    "statement split": _split_statements,
    "policies that allow more": _allow_more,
    "threshold of alarms": partial(
        _set, ("AWS::CloudWatch::Alarm",), "Threshold", lambda given: float(given) + 1
    ),
    "description of alarms": partial(
        _set, ("AWS::CloudWatch::Alarm",), "AlarmDescription", lambda _: "it", adds=True
    ),
    "text of dashboards": partial(
        _set, ("AWS::CloudWatch::Dashboard",), "DashboardBody", lambda _: '{"widgets": []}'
    ),
    "display name of topics": partial(
        _set, ("AWS::SNS::Topic",), "DisplayName", lambda _: "it", adds=True
    ),
    "retention of logs": partial(_set, ("AWS::Logs::LogGroup",), "RetentionInDays", lambda _: 3653),
    "memory of functions": partial(
        _set, ("AWS::Lambda::Function",), "MemorySize", lambda given: int(given) + 64
    ),
    "retained": _retain,
    "outputs renamed": _rename_outputs,
    "cooldown": _cooldown,
    "maximum of scaling raised": _raise_maximum,
    "lifecycle of buckets": _lifecycle,
    "the same in other words": _reword,
}
_REPLACED: Mapping[str, Edit] = {
    "variable of containers": _variable,
    "version of the image": _image,
    "second endpoint": _second_endpoint,
}
GROUPS: tuple[Mapping[str, Edit], ...] = (
    {
        **{f"{each} added": partial(add_resources, name=each) for each in ADDED},
        **{f"{each} added": partial(add_section, name=each) for each in SECTIONS},
    },
    _CHANGED,
    _REPLACED,
)
"""The edits by name; those of a group can be combined."""
EDITS: Mapping[str, Edit] = {name: edit for group in GROUPS for name, edit in group.items()}
