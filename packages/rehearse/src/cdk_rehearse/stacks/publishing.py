"""Publishes the assets of a cloud assembly without the CDK's command line."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

from constructs_triton_core.cloud_assembly.assembly import Assembly

from ..services.service_api import ServiceApi


def publish(assembly: Assembly, api: ServiceApi) -> bool:
    """Upload the file assets to the bucket that the templates use, as ``cdk deploy`` does.

    Returns whether all are uploaded: a stack that is deployed later may create the bucket, as the
    staging stack of ``AppStagingSynthesizer`` does.
    """
    created = _created_buckets(assembly, api)
    is_complete = True
    for manifest in assembly.asset_manifests:
        for name, _ in manifest.images():
            api.note_not_simulated("image asset", "", name)
        for asset in manifest.files():
            if asset.path is None:  # a program writes it
                api.note_not_simulated("file asset", "", asset.display_name)
                continue
            body = asset.path.read_bytes() if asset.packaging == "file" else _zipped(asset.path)
            for place in asset.destinations.values():
                bucket = _bucket(place["bucketName"], api)
                if bucket in created and bucket not in api.backend("s3").buckets:
                    is_complete = False
                    continue
                _expect_bucket(bucket, api)
                api.call("s3", "PutObject", Bucket=bucket, Key=place["objectKey"], Body=body)
    return is_complete


def _created_buckets(assembly: Assembly, api: ServiceApi) -> set[str]:
    """The names of the buckets that stacks of the assembly create."""
    buckets = set()
    for artifact in assembly.stacks():
        for resource in assembly.template(artifact).resources.values():
            name = resource.properties.get("BucketName")
            if resource.type == "AWS::S3::Bucket" and name:
                buckets.add(_bucket(_as_text(name), api))
    return buckets


def _as_text(name: Any) -> str:
    """A name as the manifests of assets have it, with ``${AWS::Region}`` for a reference."""
    if isinstance(name, dict) and set(name) == {"Fn::Join"}:
        separator, parts = name["Fn::Join"]
        return str(separator).join(map(_as_text, parts))
    if isinstance(name, dict) and isinstance(name.get("Fn::Sub"), str):
        return str(name["Fn::Sub"])
    if isinstance(name, dict):
        return f"${{{name.get('Ref', '')}}}"
    return str(name)


def _expect_bucket(name: str, api: ServiceApi) -> None:
    """Create the bucket of an environment that was bootstrapped with another qualifier."""
    if api.assumes_existing and name not in api.backend("s3").buckets:
        api.create_bucket(name)


def _zipped(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    return buffer.getvalue()


def _bucket(name: str, api: ServiceApi) -> str:
    known = {"AWS::AccountId": api.account, "AWS::Region": api.region, "AWS::Partition": "aws"}
    for pseudo, value in known.items():
        name = name.replace("${" + pseudo + "}", value)
    return name
