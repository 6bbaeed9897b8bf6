"""The KMS keys of a repository's models, and endpoints in other stacks than their repository."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from cdk_apps import (
    add_endpoint,
    add_many,
    add_repository,
    flat,
    make_app,
    only,
    resources,
    statements,
    synthesize,
)
from cdk_apps import write_repository as write

from constructs_triton import CompressionType, ModelSource, TritonModelRepository
from constructs_triton_core.errors import InvalidValueError
from triton_model_check.model_repository import ModelRepository, pack

KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/"
NEW = f"{KEY_ARN}11111111-1111-1111-1111-111111111111"
OLD = f"{KEY_ARN}22222222-2222-2222-2222-222222222222"


def test_roles_may_decrypt_with_previous_keys(tmp_path: Path) -> None:
    """The sync names both keys, and encrypts again only after the endpoint's
    role may read the result.
    """
    stack = cdk.Stack(make_app(tmp_path / "cdk.out"), "Vision")
    new, old = kms.Key.from_key_arn(stack, "New", NEW), kms.Key.from_key_arn(stack, "Old", OLD)
    repository = add_repository(
        stack, write(tmp_path / "models"), encryption_key=new, previous_encryption_keys=[old]
    )
    add_many(stack, repository)
    template = synthesize(stack)
    ((_, sync),) = resources(template, "Custom::TritonModelSync").items()
    assert sync["Properties"]["EncryptionKey"] == NEW
    assert sync["Properties"]["PreviousEncryptionKeys"] == [OLD]
    assert [each for each in sync["DependsOn"] if each.startswith("EndpointExecutionPolicy")]
    assert statements(template)["DecryptModels"]["Resource"] == [NEW, OLD]
    assert flat(statements(template)["DecryptPrevious"]["Resource"]) == OLD


def test_repository_with_pruning_refuses_endpoints_of_other_stacks(tmp_path: Path) -> None:
    """Its deployments would delete models that the endpoint still serves."""
    app = make_app(tmp_path / "cdk.out")
    repository = add_repository(
        cdk.Stack(app, "Vision"), write(tmp_path / "models"), prune_after=cdk.Duration.days(30)
    )
    with pytest.raises(InvalidValueError, match=r"prune_after of .* deletes models when the stack"):
        add_many(cdk.Stack(app, "Other"), repository)


def keyed(stack: cdk.Stack, source: ModelSource) -> TritonModelRepository:
    """A repository whose bucket has a key."""
    return TritonModelRepository(stack, "Models", source=source, encryption_key=kms.Key(stack, "K"))


def packed(models: Path) -> Path:
    """An archive of the model ``other``."""
    repository = ModelRepository.from_directory(models)
    return pack(repository, ["other"], models.parent / "archives").path


def test_key_encrypts_the_files_of_an_endpoint_of_one_model(tmp_path: Path) -> None:
    """With CompressionType.NONE, the model is in the bucket that has the key."""
    stack = cdk.Stack(make_app(tmp_path / "cdk.out"), "Vision")
    repository = keyed(stack, ModelSource.from_directory(write(tmp_path / "models")))
    add_endpoint(stack, repository, model="other", compression_type=CompressionType.NONE)
    template = synthesize(stack)
    assert only(template, "Custom::TritonModelFiles")["EncryptionKey"]
    assert "DecryptModels" in statements(template)


def test_key_that_would_not_encrypt_a_model_is_refused(tmp_path: Path, stack: cdk.Stack) -> None:
    """The error says where the model stays; what it says to set, or to remove, works."""
    repository = keyed(stack, ModelSource.from_directory(write(tmp_path / "models")))
    serve = partial(add_endpoint, stack, repository, model="other")
    with pytest.raises(
        InvalidValueError,
        match=r"^model_repository: encryption_key of Test/Models .* the CDK's asset bucket; "
        r"set compression_type=CompressionType\.NONE",
    ):
        serve("Archive")
    with pytest.raises(
        InvalidValueError, match=r"; remove encryption_key, .* or remove container_metrics and set"
    ):
        serve("Metrics", container_metrics=True)
    assert stack.node.try_find_child("Archive") is None

    serve("Files", compression_type=CompressionType.NONE)
    add_many(stack, repository, "Many")


@pytest.mark.parametrize(
    ("source", "stays"),
    [
        (
            lambda folder, _: ModelSource.from_archive(packed(folder)),
            r"the CDK's asset bucket; use ModelSource\.from_directory and set",
        ),
        (
            lambda _, bucket: ModelSource.from_bucket(bucket, "a.tar.gz"),
            r"a bucket of their own; remove encryption_key",
        ),
        (
            lambda _, bucket: ModelSource.from_s3_prefix(bucket, "models/"),
            r"a bucket of their own; remove encryption_key",
        ),
        (
            lambda _, __: ModelSource.from_model_package("ranking/3"),
            r"a model package; remove encryption_key",
        ),
    ],
    ids=["archive", "archive in a bucket", "files in a bucket", "model package"],
)
def test_key_is_refused_where_no_endpoint_of_one_model_uses_the_bucket(
    tmp_path: Path,
    stack: cdk.Stack,
    source: Callable[[Path, s3.IBucket], ModelSource],
    stays: str,
) -> None:
    """The models of these sources cannot be placed as files, so the error names another way."""
    folder = write(tmp_path / "models")
    bucket = s3.Bucket.from_bucket_name(stack, "Own", "own")
    repository = keyed(stack, source(folder, bucket))
    with pytest.raises(InvalidValueError, match=f"the models of this endpoint stay in {stays}"):
        add_endpoint(stack, repository, model="other")
