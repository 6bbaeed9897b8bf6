"""Cloud assemblies with one endpoint and without functions, and rehearsals of their updates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shared_endpoint import TRUST

from cdk_rehearse.updates.problems import CODES
from cdk_rehearse.updates.report import Rehearsal
from cdk_rehearse.updates.simulation import simulate
from cdk_rehearse.updates.versions import Failures, Request, read_version

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:26.05-py3"
BUCKET = "cdk-hnb659fds-assets-123456789012-us-east-1"
Resources = dict[str, Any]


def endpoint(
    *,
    archive: str = "one.tar.gz",
    readable: str = "*",
    name: str = "digits",
    scaled_to: int = 0,
    instance_type: str = "ml.g5.xlarge",
) -> Resources:
    """The resources of an endpoint whose role may read the objects that ``readable`` matches."""
    statements = [
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{BUCKET}/{readable}"},
        {"Effect": "Allow", "Action": "ecr:*", "Resource": "*"},
    ]
    policy = {"PolicyName": "read", "PolicyDocument": {"Version": "2012-10-17", "Statement": statements}}
    container = {"Image": IMAGE, "ModelDataUrl": f"s3://{BUCKET}/{archive}"}
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
        "InitialInstanceCount": 1,
        "InitialVariantWeight": 1,
        "InstanceType": instance_type,
    }
    resources = {
        "Role": _resource("IAM::Role", AssumeRolePolicyDocument=TRUST),
        "Policy": _resource("IAM::Policy", **policy, Roles=[{"Ref": "Role"}]),
        "Model": _resource(
            "SageMaker::Model",
            ExecutionRoleArn={"Fn::GetAtt": ["Role", "Arn"]},
            PrimaryContainer=container,
        )
        | {"DependsOn": ["Policy"]},
        "Config": _resource("SageMaker::EndpointConfig", ProductionVariants=[variant]),
        "Endpoint": _resource(
            "SageMaker::Endpoint",
            EndpointName=name,
            EndpointConfigName={"Fn::GetAtt": ["Config", "EndpointConfigName"]},
            **({"RetainAllVariantProperties": True} if scaled_to else {}),
        ),
    }
    return resources | (_scaling(name, scaled_to) if scaled_to else {})


def _scaling(name: str, highest: int) -> Resources:
    target = _resource(
        "ApplicationAutoScaling::ScalableTarget",
        MinCapacity=1,
        MaxCapacity=highest,
        ResourceId=f"endpoint/{name}/variant/AllTraffic",
        ScalableDimension="sagemaker:variant:DesiredInstanceCount",
        ServiceNamespace="sagemaker",
        RoleARN="arn:aws:iam::123456789012:role/scaling",
    )
    return {"Target": target | {"DependsOn": ["Endpoint"]}}


def _resource(type: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{type}", "Properties": properties}


def write_assembly(folder: Path, resources: Resources) -> Path:
    """Write a cloud assembly with the stack ``S``, and the archives one.tar.gz and two.tar.gz as assets."""
    folder.mkdir()
    files = {}
    for name in ("one.tar.gz", "two.tar.gz"):
        (folder / name).write_bytes(name.encode())
        destination = {"current": {"bucketName": BUCKET, "objectKey": name}}
        files[name] = {"source": {"path": name, "packaging": "file"}, "destinations": destination}
    (folder / "S.assets.json").write_text(json.dumps({"version": "1", "files": files}))
    (folder / "S.template.json").write_text(json.dumps({"Resources": resources}))
    stack = {
        "type": "aws:cloudformation:stack",
        "environment": "aws://unknown-account/unknown-region",
        "properties": {"templateFile": "S.template.json"},
    }
    assets = {"type": "cdk:asset-manifest", "properties": {"file": "S.assets.json"}}
    manifest = {"version": "36.0.0", "artifacts": {"S.assets": assets, "S": stack}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def rehearsal(
    folder: Path,
    old: Resources | None,
    new: Resources | None,
    *,
    failures: Failures = "none",
    orders: int = 1,
    **fleets: int,
) -> Rehearsal:
    versions = [
        read_version(None if resources is None else write_assembly(folder / name, resources))
        for name, resources in (("old", old), ("new", new))
    ]
    return simulate(Request(versions[0], versions[1], fleets, failures, orders))


def codes(found: Rehearsal) -> set[str]:
    assert {each.code for each in found.problems} <= CODES.keys()
    return {each.code for each in found.problems}
