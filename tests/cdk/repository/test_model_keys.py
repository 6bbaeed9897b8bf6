"""The KMS keys of a repository's models, and endpoints in other stacks than their repository."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from cdk_apps import add_repository, flat, make_app, resources, statements, synthesize
from cdk_apps import write_repository as write

from constructs_triton import InstanceType, TritonMultiModelEndpoint
from constructs_triton.errors import InvalidValueError

KEY_ARN = "arn:aws:kms:us-east-1:123456789012:key/"


def test_roles_may_decrypt_with_previous_keys(tmp_path: Path) -> None:
    """The sync names both keys, and encrypts again only after the endpoint's role may read the result."""
    stack = cdk.Stack(make_app(tmp_path / "cdk.out"), "Vision")
    new, old = (kms.Key.from_key_arn(stack, name, f"{KEY_ARN}{name}") for name in ("new", "old"))
    repository = add_repository(
        stack, write(tmp_path / "models"), encryption_key=new, previous_encryption_keys=[old]
    )
    TritonMultiModelEndpoint(
        stack, "Endpoint", model_repository=repository, instance_type=InstanceType.of("ml.g5.xlarge")
    )
    template = synthesize(stack)
    ((_, sync),) = resources(template, "Custom::TritonModelSync").items()
    assert sync["Properties"]["EncryptionKey"] == f"{KEY_ARN}new"
    assert sync["Properties"]["PreviousEncryptionKeys"] == [f"{KEY_ARN}old"]
    assert [each for each in sync["DependsOn"] if each.startswith("EndpointExecutionPolicy")]
    assert statements(template)["DecryptModels"]["Resource"] == [f"{KEY_ARN}new", f"{KEY_ARN}old"]
    assert flat(statements(template)["DecryptPrevious"]["Resource"]) == f"{KEY_ARN}old"


def test_repository_with_pruning_refuses_endpoints_of_other_stacks(tmp_path: Path) -> None:
    """Its deployments would delete models that the endpoint still serves."""
    app = make_app(tmp_path / "cdk.out")
    repository = add_repository(
        cdk.Stack(app, "Vision"), write(tmp_path / "models"), prune_after=cdk.Duration.days(30)
    )
    with pytest.raises(InvalidValueError, match="prune_after of .* deletes models when the stack"):
        TritonMultiModelEndpoint(
            cdk.Stack(app, "Other"),
            "Endpoint",
            model_repository=repository,
            instance_type=InstanceType.of("ml.g5.xlarge"),
        )
