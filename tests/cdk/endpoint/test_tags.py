"""Tags of the CDK reach each resource that can have them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from cdk_apps import GPU, add_endpoint, add_repository, synthesize, write_repository

from constructs_triton import (
    AsyncInferenceConfig,
    TritonComponentEndpoint,
    TritonInferenceComponent,
    TritonMultiModelEndpoint,
)

TAG = {"Key": "team", "Value": "vision"}
# The CDK itself adds these functions to the stack, once for all its constructs.
OF_THE_CDK = ("CustomCDKBucketDeployment", "LogRetention", "CustomS3AutoDeleteObjects")


@cache
def tag_property(resource_type: str) -> str | None:
    """Return the property with the tags of a resource type, from CloudFormation's schema."""
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("eu-west-1", resource_type).schema
    tagging = schema.get("tagging") or {}
    if tagging.get("taggable", schema.get("taggable")) is False:
        return None
    name = str(tagging.get("tagProperty", "/properties/Tags")).rpartition("/")[2]
    return name if name in schema["properties"] else None


def untagged(template: dict[str, Any]) -> list[str]:
    """Return the resources that could have the tag and do not."""
    found = []
    for name, resource in template["Resources"].items():
        kind = resource["Type"]
        if kind.startswith("Custom::") or name.startswith(OF_THE_CDK):
            continue
        property_name = tag_property(kind)
        if property_name is None:
            continue
        tags = resource.get("Properties", {}).get(property_name, [])
        if TAG not in tags and tags != {"team": "vision"}:
            found.append(f"{name} ({kind})")
    return found


def test_tags_reach_every_resource_of_endpoints(stack: cdk.Stack, tmp_path: Path) -> None:
    """Each type of endpoint, with what its options add, has the tag of its stack."""
    bucket = s3.Bucket(stack, "Requests")
    queued = add_endpoint(
        stack,
        tmp_path / "queued",
        id="Queued",
        endpoint_name="queued",
        async_inference=AsyncInferenceConfig(bucket=bucket),
        log_retention=logs.RetentionDays.ONE_MONTH,
    )
    queued.on_state_change("State")
    queued.auto_scale_instance_count(min_capacity=0, max_capacity=2).scale_on_backlog(
        "Backlog", target_backlog_per_instance=4
    )
    queued.add_alarms()
    queued.add_dashboard()
    path = write_repository(tmp_path / "models")
    many = TritonMultiModelEndpoint(
        stack,
        "Many",
        model_repository=add_repository(stack, path),
        instance_type=GPU,
        scaling_guard=True,
    )
    many.add_alarms()
    host = TritonComponentEndpoint(
        stack, "Host", instance_type=GPU, min_instance_count=1, max_instance_count=2
    )
    TritonInferenceComponent(
        stack,
        "Component",
        endpoint=host,
        model_repository=add_repository(stack, path, "Component models"),
        model="other",
        number_of_accelerator_devices=1,
        min_memory=cdk.Size.gibibytes(2),
    )
    cdk.Tags.of(stack).add("team", "vision")

    assert untagged(synthesize(stack)) == []
