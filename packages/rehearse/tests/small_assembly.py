"""Cloud assemblies with one endpoint and without functions, and rehearsals of their updates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from shared_endpoint import Resources, served

from cdk_rehearse.updates.codes import CODES
from cdk_rehearse.updates.report import Problem, Rehearsal
from cdk_rehearse.updates.simulation import simulate
from cdk_rehearse.updates.versions import Failures, Request, read_version

BUCKET = "cdk-hnb659fds-assets-123456789012-us-east-1"


def endpoint(
    *,
    archive: str = "one.tar.gz",
    readable: str = "*",
    name: str = "digits",
    scaled_to: int = 0,
    instance_type: str = "ml.g5.xlarge",
) -> Resources:
    """The resources of an endpoint whose role may read the objects that ``readable`` matches."""
    reads = (("s3:GetObject", f"arn:aws:s3:::{BUCKET}/{readable}"), ("ecr:*", "*"))
    scales = bool(scaled_to)
    resources = served(archive, *reads, retains=scales, instance_type=instance_type, bucket=BUCKET)
    resources["Endpoint"]["Properties"]["EndpointName"] = name
    return resources | (_scaling(name, scaled_to) if scales else {})


def _scaling(name: str, highest: int) -> Resources:
    target = {
        "MinCapacity": 1,
        "MaxCapacity": highest,
        "ResourceId": f"endpoint/{name}/variant/AllTraffic",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        "ServiceNamespace": "sagemaker",
        "RoleARN": "arn:aws:iam::123456789012:role/scaling",
    }
    kind = "AWS::ApplicationAutoScaling::ScalableTarget"
    return {"Target": {"Type": kind, "Properties": target, "DependsOn": ["Endpoint"]}}


_ARCHIVES: Mapping[str, bytes] = {name: name.encode() for name in ("one.tar.gz", "two.tar.gz")}


def write_assembly(
    folder: Path, resources: Resources, archives: Mapping[str, bytes] = _ARCHIVES
) -> Path:
    """Write a cloud assembly with the stack ``S``,
    by default with the archives one.tar.gz and two.tar.gz.
    """
    folder.mkdir(parents=True)
    files = {}
    for name, content in archives.items():
        (folder / name).write_bytes(content)
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
    meanwhile: tuple[str, ...] = (),
    files: Mapping[str, bytes] = _ARCHIVES,
    **fleets: int,
) -> Rehearsal:
    folder /= str(len(list(folder.iterdir())))
    versions = [
        read_version(None if resources is None else write_assembly(folder / name, resources, files))
        for name, resources in (("old", old), ("new", new))
    ]
    return simulate(Request(versions[0], versions[1], fleets, failures, orders, meanwhile))


def codes(found: Rehearsal) -> set[str]:
    """The codes of the problems, each of which has an entry in the table of codes."""
    found_codes = {problem.code for problem in found.problems}
    assert found_codes <= CODES.keys()
    return found_codes


def of_code(problems: Iterable[Problem], code: str) -> list[Problem]:
    """The problems with a code."""
    return [problem for problem in problems if problem.code == code]
