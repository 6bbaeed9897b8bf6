"""The apps of docs/guides/accounts.md: both sides of each access between accounts."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

import pytest
from cdk_apps import flat, only, statement_list
from guide_apps import programs_of, templates_of

SERVING = ":iam::222222222222:root"


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The stacks of the page."""
    folder = tmp_path_factory.mktemp("accounts")
    apps = [each for each in programs_of("accounts.md") if "cdk.App()" in each]
    return {str(n): templates_of(code, folder / str(n)) for n, code in enumerate(apps)}


def allowed(statements: list[Any], action: str) -> list[str]:
    """The resources of an action."""
    found = [each for each in statements if action in each["Action"] or action == each["Action"]]
    resources = [each["Resource"] for each in found]
    return [
        flat(each) for part in resources for each in (part if isinstance(part, list) else [part])
    ]


def test_both_sides_allow_the_same_archive(templates: dict[str, Any]) -> None:
    """The other account allows what the execution role may do with the archive and its key."""
    stacks = templates["0"]
    other = only(stacks["Training"], "AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]
    ours = [each for each in other if SERVING in flat(each["Principal"]["AWS"])]
    role = statement_list(stacks["Serving"])
    (archive,) = [each for each in allowed(role, "s3:GetObject") if "trained-models" in each]
    (pattern,) = allowed(ours, "s3:GetObject")
    assert archive.endswith("trained-models-111111111111/digits/v7.tar.gz")
    assert fnmatch("/digits/v7.tar.gz", "/" + pattern.partition("/")[2])
    (listed,) = [each for each in ours if each["Action"] == "s3:ListBucket"]
    assert listed["Condition"] == {"StringLike": {"s3:prefix": ["digits/*"]}}
    key = only(stacks["Training"], "AWS::KMS::Key")["KeyPolicy"]["Statement"]
    assert any(
        "kms:Decrypt" in each["Action"] and SERVING in flat(each["Principal"]["AWS"])
        for each in key
    )
    assert any("key/0a1b2c3d" in each for each in allowed(role, "kms:Decrypt"))


def test_caller_may_assume_a_role_that_may_only_call(templates: dict[str, Any]) -> None:
    """The role that the other account assumes may invoke this endpoint."""
    serving = templates["0"]["Serving"]
    (caller,) = [
        each["Properties"]
        for each in serving["Resources"].values()
        if each["Type"] == "AWS::IAM::Role"
        and each["Properties"].get("RoleName") == "digits-caller"
    ]
    (trust,) = caller["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"AWS": "arn:aws:iam::333333333333:role/web"}
    assert [
        each.rpartition(":")[2]
        for each in allowed(statement_list(serving), "sagemaker:InvokeEndpoint")
    ]


def test_registry_allows_what_a_deployment_needs(templates: dict[str, Any]) -> None:
    """The group lets the other account read versions and create models,
    and the role may read their data.
    """
    stacks = templates["1"]
    group = only(stacks["Registry"], "AWS::SageMaker::ModelPackageGroup")["ModelPackageGroupPolicy"]
    assert all(SERVING in flat(each["Principal"]["AWS"]) for each in group["Statement"])
    assert allowed(group["Statement"], "sagemaker:CreateModel") == [
        "arn:aws:sagemaker:eu-west-1:111111111111:model-package/digits/*"
    ]
    role = statement_list(stacks["Serving"])
    for action in ("s3:GetObject", "kms:Decrypt", "ecr:BatchGetImage", "ecr:GetAuthorizationToken"):
        assert allowed(role, action), action
