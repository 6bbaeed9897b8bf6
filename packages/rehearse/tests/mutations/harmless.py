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
    for declared in body["Resources"].values():
        if declared["Type"] in types:
            yield declared.setdefault("Properties", {})


def _describe(body: Body) -> bool:
    body["Description"] = f"{body.get('Description', '')} Reviewed."
    return True


def _annotate(body: Body) -> bool:
    """Metadata of the template and of each resource."""
    for annotated in (body, *body["Resources"].values()):
        annotated["Metadata"] = {**annotated.get("Metadata", {}), "Owner": "vision"}
    return True


def _tag(body: Body) -> bool:
    """A tag on every resource whose type has a list of tags."""
    found = False
    for declared in body["Resources"].values():
        schema = resource_schema(declared["Type"]).body.get("properties", {})
        has_list_of_tags = "Tags" in schema and schema["Tags"].get("type", "array") == "array"
        if not has_list_of_tags or "Fn::If" in declared.get("Properties", {}):
            continue
        properties = declared.setdefault("Properties", {})
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
            for member in value.values():
                yield from inside(member)
        elif isinstance(value, list):
            for element in value:
                yield from inside(element)

    yield from inside(body["Resources"])


def _reverse_statements(body: Body) -> bool:
    found = False
    for policy in _policies(body):
        if len(policy["Statement"]) > 1:
            policy["Statement"].reverse()
            found = True
    return found


def _list_actions(body: Body) -> bool:
    """``Action`` as a list of one."""
    found = False
    for policy in _policies(body):
        for statement in policy["Statement"]:
            if isinstance(statement.get("Action"), str):
                statement["Action"] = [statement["Action"]]
                found = True
    return found


def _split_statements(body: Body) -> bool:
    """Two statements in place of one with several actions."""
    found = False
    for policy in _policies(body):
        statements = []
        for whole in policy["Statement"]:
            actions = whole.get("Action")
            # Two statements of a policy cannot have the same Sid.
            if not isinstance(actions, list) or len(actions) < 2 or "Sid" in whole:
                statements.append(whole)
                continue
            statements.append({**whole, "Action": actions[:1]})
            statements.append({**whole, "Action": actions[1:]})
            found = True
        policy["Statement"] = statements
    return found


def _allow_more(body: Body) -> bool:
    """One more policy for each role of the template."""
    resources = body["Resources"].items()
    roles = [name for name, declared in resources if declared["Type"] == "AWS::IAM::Role"]
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
    found = False
    for properties in _of_type(body, *types):
        if adds or name in properties:
            properties[name] = change(properties.get(name))
            found = True
    return found


def _retain(body: Body) -> bool:
    """Resources that AWS deletes are retained."""
    types = ("AWS::Logs::LogGroup", "AWS::S3::Bucket", "AWS::SNS::Topic", "AWS::DynamoDB::Table")
    found = False
    for declared in body["Resources"].values():
        is_deleted = declared.get("DeletionPolicy", "Delete") == "Delete"
        if declared["Type"] in types and is_deleted:
            declared["DeletionPolicy"] = "Retain"
            declared["UpdateReplacePolicy"] = "Retain"
            found = True
    return found


def _second_endpoint(body: Body) -> bool:
    """Another endpoint with the configuration of the first."""
    for name, first in list(body["Resources"].items()):
        if first["Type"] == "AWS::SageMaker::Endpoint":
            config = first["Properties"]["EndpointConfigName"]
            body["Resources"][f"{name}Second"] = {
                **resource("AWS::SageMaker::Endpoint", EndpointConfigName=config),
                "DependsOn": first.get("DependsOn", []),
            }
            return True
    return False


def _variable(body: Body) -> bool:
    """One more environment variable for each container."""
    containers: list[dict[str, Any]] = []
    for model in _of_type(body, "AWS::SageMaker::Model"):
        containers += model.get("Containers", ())
        if model.get("PrimaryContainer"):
            containers.append(model["PrimaryContainer"])

    for container in containers:
        container["Environment"] = {**container.get("Environment", {}), "OWNER": "vision"}
    return bool(containers)


def _image(body: Body) -> bool:
    """Another version of the Triton image."""
    text = json.dumps(body)

    def other_version(found: re.Match[str]) -> str:
        image, version = found.group(1, 2)
        return f"{image}25.09" if version == "25.04" else f"{image}25.04"

    changed = _IMAGE.sub(other_version, text)
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
    renamed = {}
    found = False
    for name, output in outputs.items():
        if "Export" in output:
            renamed[name] = output
        else:
            renamed[f"{name}Two"] = output
            found = True
    body["Outputs"] = renamed
    return found


def _cooldown(body: Body) -> bool:
    """A longer cooldown of target tracking."""
    found = False
    for policy in _of_type(body, "AWS::ApplicationAutoScaling::ScalingPolicy"):
        tracking = policy.get("TargetTrackingScalingPolicyConfiguration")
        if tracking is not None:
            tracking["ScaleInCooldown"] = int(tracking.get("ScaleInCooldown", 300)) + 60
            found = True
    return found


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
    found = False
    for bucket in _of_type(body, "AWS::S3::Bucket"):
        if "LifecycleConfiguration" not in bucket:
            bucket["LifecycleConfiguration"] = {"Rules": [rule]}
            found = True
    return found


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
        **{f"{name} added": partial(add_resources, name=name) for name in ADDED},
        **{f"{name} added": partial(add_section, name=name) for name in SECTIONS},
    },
    _CHANGED,
    _REPLACED,
)
"""The edits by name; those of a group can be combined."""
EDITS: Mapping[str, Edit] = {name: edit for group in GROUPS for name, edit in group.items()}
