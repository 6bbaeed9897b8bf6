"""A prefix that other programs fill, grants by name, and the index."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from cdk_apps import (
    add_endpoint,
    add_many,
    add_repository,
    flat,
    make_stack,
    only,
    policies,
    resources,
    statements,
    synthesize,
    write_model,
)

from constructs_triton import ModelSource, TargetModelNaming, TritonModelRepository
from constructs_triton.cdk.repository.model_repository import contents_of
from constructs_triton_core.errors import InvalidValueError


def prefix_repository(stack: cdk.Stack, **properties: Any) -> TritonModelRepository:
    key = kms.Key.from_key_arn(stack, "Key", f"arn:aws:kms:eu-west-1:123456789012:key/{'0' * 36}")
    bucket = s3.Bucket.from_bucket_attributes(
        stack, "Trained", bucket_name="trained", encryption_key=key
    )
    source = ModelSource.from_archive_prefix(bucket, "team/models/")
    return TritonModelRepository(stack, "Models", source=source, **properties)


def make_role(stack: cdk.Stack, name: str = "Role") -> iam.Role:
    return iam.Role(stack, name, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))


def granted_to(template: dict[str, Any], role: str) -> str:
    """The policy of a role as one string."""
    (policy,) = [each for name, each in policies(template).items() if name.startswith(role)]
    return json.dumps(policy["Properties"]["PolicyDocument"]["Statement"])


def test_prefix_of_other_programs_is_served_without_a_function(stack: cdk.Stack) -> None:
    """The endpoint reads the prefix with its key, and nothing is copied at deployment."""
    repository = prefix_repository(stack)
    add_many(stack, repository)
    template = synthesize(stack)
    container = only(template, "AWS::SageMaker::Model")["PrimaryContainer"]
    assert (container["Mode"], container["ModelDataUrl"]) == (
        "MultiModel",
        "s3://trained/team/models/",
    )
    assert repository.target_models == {}
    assert repository.index_url == "s3://trained/team/models/index.json"
    assert not resources(template, "AWS::Lambda::Function")
    assert not resources(template, "AWS::S3::Bucket")
    assert flat(statements(template)["LoadModels"]["Resource"]).endswith("trained/team/models/*")
    assert statements(template)["DecryptModels"]["Action"] == "kms:Decrypt"


def test_grants_of_a_prefix_allow_names_archives_and_patterns() -> None:
    """A name stands for its archive with any digest or without one."""
    repository = prefix_repository(make_stack())
    assert contents_of(repository).prefix.grant_patterns(["scorer", "a.tar.gz", "b-*"]) == [
        "scorer.tar.gz",
        "scorer-????????.tar.gz",
        "a.tar.gz",
        "b-*",
    ]


def test_training_job_may_manage_the_models_and_a_client_read_the_index(stack: cdk.Stack) -> None:
    """The manager writes and lists the prefix, the client reads one object,
    and both may use the key.
    """
    repository = prefix_repository(stack)
    repository.grant_manage_models(make_role(stack, "Trainer"))
    repository.grant_read_index(make_role(stack, "Client"))
    template = synthesize(stack)
    manager, client = granted_to(template, "Trainer"), granted_to(template, "Client")
    for action in (
        "s3:PutObject",
        "s3:DeleteObject",
        "s3:ListBucket",
        "kms:GenerateDataKey",
        "kms:Decrypt",
    ):
        assert action in manager
    assert "trained/team/models/*" in manager
    assert "s3:GetObject" in client
    assert "trained/team/models/index.json" in client
    assert "kms:Decrypt" in client
    assert "PutObject" not in client


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"prefix": "other/"}, "^prefix: not supported with ModelSource.from_archive_prefix"),
        ({"versioned": True}, "^versioned: not supported"),
        ({"target_model_naming": TargetModelNaming.PLAIN}, "^target_model_naming: not supported"),
        ({"prune_after": cdk.Duration.days(2)}, "^prune_after: not supported"),
        ({"removal_policy": cdk.RemovalPolicy.DESTROY}, "^removal_policy: not supported"),
        ({"also_served": ["a"]}, "^calls, also_served: the models are not read at synth"),
    ],
)
def test_properties_of_a_filled_prefix_are_refused(
    properties: dict[str, Any], message: str
) -> None:
    """What only a deployment that fills the prefix can do raises an error."""
    with pytest.raises(InvalidValueError, match=message):
        prefix_repository(make_stack(), **properties)


def test_prefix_has_no_single_model(stack: cdk.Stack, tmp_path: Path) -> None:
    """A single-model endpoint and ``add_model`` raise errors that name another way."""
    repository = prefix_repository(stack)
    with pytest.raises(
        InvalidValueError, match=r"use TritonMultiModelEndpoint, or ModelSource\.from_bucket"
    ):
        add_endpoint(stack, repository, model="a")
    with pytest.raises(InvalidValueError, match=r"operations\.ModelLibrary"):
        repository.add_model("a", ModelSource.from_directory(tmp_path))


def test_archive_that_a_grant_for_another_model_allows_is_refused(tmp_path: Path) -> None:
    """With plain names, scorer-backbone.tar.gz would match the grant for "scorer"."""
    for name in ("scorer", "scorer-backbone"):
        write_model(tmp_path, name)
    for naming, is_refused in ((TargetModelNaming.PLAIN, True), (TargetModelNaming.CONTENT, False)):
        stack = make_stack()
        repository = add_repository(stack, tmp_path, target_model_naming=naming)
        message = r'"scorer-backbone.tar.gz" is also covered by grants'
        with pytest.raises(InvalidValueError, match=message) if is_refused else nullcontext():
            add_many(stack, repository)


def test_grant_does_not_change_with_the_content(path: Path) -> None:
    """The policy of a caller is the same before and after a change of the model."""
    found = []
    for change in ("", "# new\n"):
        with (path / "other/1/model.py").open("a") as file:
            file.write(change)
        stack = make_stack()
        endpoint = add_many(stack, path)
        endpoint.grant_invoke(make_role(stack), target_models=["other"])
        found.append(granted_to(synthesize(stack), "Role"))
    assert found[0] == found[1]
