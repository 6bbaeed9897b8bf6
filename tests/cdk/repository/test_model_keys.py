"""The KMS keys of a repository's models, and endpoints in other stacks than their repository."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from cdk_apps import (
    add_endpoint,
    add_many,
    add_repository,
    flat,
    make_app,
    resources,
    statements,
    synthesize,
    warnings,
)
from cdk_apps import write_repository as write

from constructs_triton import CompressionType
from constructs_triton_core.errors import InvalidValueError

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


@pytest.mark.parametrize("compression_type", [CompressionType.GZIP, CompressionType.NONE])
def test_key_of_a_bucket_that_nothing_uses_is_a_warning(
    tmp_path: Path, compression_type: CompressionType
) -> None:
    """An archive stays in the CDK's asset bucket; files, as the hint advises,
    are copied to the bucket.
    """
    stack = cdk.Stack(make_app(tmp_path / "cdk.out"), "Vision")
    repository = add_repository(
        stack, write(tmp_path / "models"), encryption_key=kms.Key(stack, "Key")
    )
    add_endpoint(stack, repository, model="other", compression_type=compression_type)
    synthesize(stack)
    found = [each for each in warnings(stack) if "constructs-triton:repository-key-unused" in each]
    assert len(found) == (compression_type is CompressionType.GZIP)
    assert all("encryption_key: nothing in this app uses the bucket" in each for each in found)
