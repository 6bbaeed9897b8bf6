"""Changes to the examples' apps, each as a next deployment would bring it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest import mock

from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton import (
    CompressionType,
    ModelSource,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonImage,
    TritonInferenceComponent,
    TritonModelRepository,
    TritonMultiModelEndpoint,
    TritonVariant,
)

ENDPOINTS = (TritonEndpoint, TritonEnsembleEndpoint, TritonMultiModelEndpoint)
FEATURES = ("data_capture", "core_dump", "async_inference")
OLDER_VERSION = "25.09"

Properties = dict[str, Any]
Edit = Callable[[Construct, Properties], None]
"""Changes the properties of a construct that is about to be created in a scope."""


def no_edit(scope: Construct, properties: Properties) -> None:
    """Leave the construct as it is."""


def own_ecr_image(scope: Construct, name: str) -> TritonImage:
    found = scope.node.try_find_child(f"Ecr{name}")
    repository = found or ecr.Repository.from_repository_name(scope, f"Ecr{name}", name.lower())
    return TritonImage.from_ecr_repository(
        cast(ecr.IRepository, repository), "1", triton_version="26.05"
    )


def other_version(scope: Construct, properties: Properties) -> None:
    properties.setdefault("image", TritonImage.dlc(OLDER_VERSION))


def ecr_image(scope: Construct, properties: Properties) -> None:
    properties["image"] = own_ecr_image(scope, "Serving")


def other_ecr_image(scope: Construct, properties: Properties) -> None:
    properties["image"] = own_ecr_image(scope, "Replacing")


def repository_bucket(scope: Construct, properties: Properties) -> None:
    for name in ("encryption_key", "versioned", "removal_policy"):
        properties.pop(name, None)
    found = scope.node.try_find_child("OtherModels")
    bucket = found or s3.Bucket.from_bucket_name(scope, "OtherModels", "other-models")
    properties["bucket"] = bucket


def feature_bucket(scope: Construct, properties: Properties) -> None:
    for name in FEATURES:
        if properties.get(name) is not None:
            bucket = s3.Bucket.from_bucket_name(
                scope, f"Other{name}", f"other-{name.replace('_', '-')}"
            )
            properties[name] = replace(properties[name], bucket=bucket)


def repository_prefix(scope: Construct, properties: Properties) -> None:
    properties["prefix"] = "another/"


def feature_prefix(scope: Construct, properties: Properties) -> None:
    for name in FEATURES:
        if properties.get(name) is not None:
            prefix = "output_prefix" if name == "async_inference" else "prefix"
            properties[name] = replace(properties[name], **{prefix: "another"})


def repository_key(scope: Construct, properties: Properties) -> None:
    if "bucket" not in properties:
        properties["encryption_key"] = other_key(scope, "OtherModelsKey")


def files_under_key(scope: Construct, properties: Properties) -> None:
    """Place the models in the bucket of the repository, which has the key, as files."""
    properties["compression_type"] = CompressionType.NONE


def endpoint_key(scope: Construct, properties: Properties) -> None:
    # The example of instance pools has local NVMe storage on all of its types.
    if "instance_type" in properties and properties["instance_type"].name.startswith(
        ("ml.c6i", "ml.m5")
    ):
        properties["encryption_key"] = other_key(scope, "OtherVolumeKey")
    for name in FEATURES:
        if properties.get(name) is not None:
            key = other_key(scope, f"Other{name}Key")
            properties[name] = replace(properties[name], encryption_key=key)


def other_key(scope: Construct, id: str) -> kms.IKey:
    found = scope.node.try_find_child(id)
    return found if isinstance(found, kms.Key) else kms.Key(scope, id)


def one_more_variant(scope: Construct, properties: Properties) -> None:
    if "shadow_variant" in properties or "model" not in properties:
        return
    present = list(properties.get("variants") or ()) or [TritonVariant(variant_name="AllTraffic")]
    added = TritonVariant(variant_name="Added", image=own_ecr_image(scope, "Added"))
    properties["variants"] = [*present, added]


def other_content(directory: Path) -> Callable[..., ModelSource]:
    """``ModelSource.from_directory`` for copies in which each version has one file more."""
    read = ModelSource.from_directory

    def from_directory(path: Any, **options: Any) -> ModelSource:
        copy = directory / Path(path).name
        if not copy.exists():
            shutil.copytree(path, copy)
            for version in copy.glob("*/1"):
                (version / "release.txt").write_text("a newer release")
        return read(copy, **options)

    return from_directory


CHANGES: Mapping[str, tuple[Edit, Edit]] = {
    "model content": (no_edit, no_edit),
    "image version": (no_edit, other_version),
    "image in ECR": (no_edit, ecr_image),
    "image in another ECR repository": (no_edit, other_ecr_image),
    "bucket": (repository_bucket, feature_bucket),
    "prefix": (repository_prefix, feature_prefix),
    "key": (repository_key, endpoint_key),
    "variant": (no_edit, one_more_variant),
}
"""For each change, the edits of repositories and of endpoints."""


@contextmanager
def changed(change: str | None, directory: Path) -> Iterator[None]:
    """Let the constructs of an app be created with a change; ``None`` leaves the app as it is."""
    if change is None:
        yield
        return
    repository, endpoint = CHANGES[change]
    with ExitStack() as patches:
        patches.enter_context(_edited(TritonModelRepository, repository))
        for each in ENDPOINTS:
            patches.enter_context(_edited(each, endpoint))
        if "image" in change:
            patches.enter_context(_edited(TritonInferenceComponent, endpoint))
        if change == "key":
            for placing in (TritonEndpoint, TritonEnsembleEndpoint, TritonInferenceComponent):
                patches.enter_context(_edited(placing, files_under_key))
        if change == "model content":
            source = other_content(directory / "models")
            patches.enter_context(mock.patch.object(ModelSource, "from_directory", source))
        yield


def _edited(construct: Any, edit: Edit) -> Any:
    create = construct.__init__

    def create_edited(self: Any, scope: Construct, id: str, **properties: Any) -> None:
        edit(scope, properties)
        create(self, scope, id, **properties)

    return mock.patch.object(construct, "__init__", create_edited)
