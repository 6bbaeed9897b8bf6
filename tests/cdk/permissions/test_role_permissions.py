"""The size of policies, at the fullest moment of an update,
and what makes an update replace them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from cdk_apps import (
    add_endpoint,
    add_many,
    add_repository,
    make_app,
    make_stack,
    resources,
    statement_list,
    statements,
    synthesize,
    write_model,
)
from policy_statements import listed
from stack_update import before_cleanup, lost_grants

from constructs_triton import AsyncInferenceConfig, CoreDump, DataCapture
from constructs_triton.cdk.permissions.role_permissions import RolePermissions
from constructs_triton.cdk.permissions.statement_size import statement_length
from constructs_triton.cdk.permissions.statements import Statement, allow
from constructs_triton_core.errors import InvalidValueError

# IAM user guide, "IAM and AWS STS quotas".
INLINE_CHARACTERS = 10_240
MANAGED_CHARACTERS = 6_144
MANAGED_POLICIES = 10
STACK = "S" * 100
REGION = "ap-southeast-10"
ACCOUNT = "1" * 12
LONGEST = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws-us-gov",
    "AWS::Region": REGION,
    "AWS::StackId": f"arn:aws-us-gov:cloudformation:{REGION}:{ACCOUNT}:stack/{STACK}/{'u' * 36}",
    "AWS::StackName": STACK,
}


def filled(value: Any) -> Any:  # noqa: PLR0911 - one for each form of a value
    """A value with a long value in place of each intrinsic."""
    match value:
        case {"Ref": str(name)}:
            return LONGEST.get(name, "x" * 63)
        case {"Fn::GetAtt": _} | {"Fn::FindInMap": _} | {"Fn::Select": _}:
            return "x" * 63
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(filled(part) for part in parts)
        case {"Fn::Sub": str(text)}:
            return re.sub(r"\$\{(.*?)\}", lambda match: LONGEST[match[1]], text)
        case dict():
            return {key: filled(member) for key, member in value.items()}
        case list():
            return [filled(item) for item in value]
    return value


def length(policy: Mapping[str, Any]) -> int:
    """The characters of a policy that count for the quotas, which ignore white space."""
    document = filled(policy["Properties"]["PolicyDocument"])
    return len(json.dumps(document, separators=(",", ":")))


def check_quotas(before: Mapping[str, Any], after: Mapping[str, Any]) -> Counter[str]:
    """Check all roles at the fullest moment of an update; return the characters of each role."""
    inline = Counter[str]()
    managed = Counter[str]()
    total = Counter[str]()
    for resource in before_cleanup(before, after).values():
        if resource["Type"] not in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
            continue
        for role in resource["Properties"]["Roles"]:
            name = role["Ref"]
            total[name] += length(resource)
            if resource["Type"] == "AWS::IAM::Policy":
                inline[name] += length(resource)
            else:
                assert length(resource) <= MANAGED_CHARACTERS
                managed[name] += 1
    assert max(inline.values(), default=0) <= INLINE_CHARACTERS
    assert max(managed.values(), default=0) <= MANAGED_POLICIES
    return total


def write_models(directory: Path, count: int, content: str) -> Path:
    """Write models ``model_0``, ``model_1`` and so on, which differ by ``content`` between runs."""
    for index in range(count):
        write_model(directory, f"model_{index}")
        (directory / f"model_{index}" / "1" / "release.txt").write_text(content)
    return directory


def long_keys() -> cdk.DefaultStackSynthesizer:
    """Keys of assets that are long enough for few models to fill policies as
    ten times as many would.
    """
    return cdk.DefaultStackSynthesizer(bucket_prefix="p" * 800)


def large_template(path: Path) -> dict[str, Any]:
    """The template of twelve guarded endpoints, each with a repository of its own."""
    stack = cdk.Stack(make_app(), STACK, synthesizer=long_keys())
    for index in range(12):
        endpoint = add_many(stack, path, f"Endpoint{index}", scaling_guard=True)
        scaling = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
        scaling.scale_on_gpu_utilization("Gpu")
    return synthesize(stack)


def test_twelve_endpoints_and_repositories_stay_below_the_quotas(tmp_path: Path) -> None:
    """Twelve guarded endpoints and twelve repositories of five models,
    all changed in one update.
    """
    before = large_template(write_models(tmp_path / "one", 5, "one"))
    after = large_template(write_models(tmp_path / "two", 5, "two"))

    total = check_quotas(before, after)

    assert len(before["Resources"]) <= 500
    assert max(total.values()) > INLINE_CHARACTERS  # inline policies would not hold them


def repository_template(path: Path) -> dict[str, Any]:
    """The template of one endpoint of all models of a folder."""
    stack = cdk.Stack(make_app(), "Test", synthesizer=long_keys())
    add_many(stack, path)
    return synthesize(stack)


def managed_statements(template: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The statements of all managed policies."""
    found: list[dict[str, Any]] = []
    for policy in resources(template, "AWS::IAM::ManagedPolicy").values():
        found += policy["Properties"]["PolicyDocument"]["Statement"]
    return found


def read_resources(template: Mapping[str, Any]) -> list[str]:
    """The ARNs of the archives that the function may read."""
    found: list[str] = []
    for statement in managed_statements(template):
        if statement["Sid"].startswith("ReadArchives"):
            found += [json.dumps(resource) for resource in statement["Resource"]]
    return found


@pytest.mark.parametrize(("count", "exact"), [(20, True), (40, False)])
def test_archives_are_named_one_by_one_while_they_fit(
    tmp_path: Path, count: int, exact: bool
) -> None:
    """A large repository's function may read each archive by its key,
    a very large one's by a pattern.
    """
    before = repository_template(write_models(tmp_path / "a", count, "a"))
    after = repository_template(write_models(tmp_path / "b", count, "b"))

    check_quotas(before, after)

    arns = read_resources(before)
    has_pattern = any("*.tar.gz" in arn for arn in arns)
    assert len(arns) == (count + 1 if exact else 2)
    assert has_pattern != exact


def test_more_than_ten_managed_policies_are_refused(stack: cdk.Stack) -> None:
    """The error gives the number of policies and the ways out."""
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    for index in range(5):
        RolePermissions(stack, f"Own{index}", role=role, statements=[read(f"bucket-{index}")])
    with pytest.raises(
        InvalidValueError, match=r"more than 5 policies of 6144 .* use a separate role"
    ):
        RolePermissions(stack, "Own5", role=role, statements=[read("bucket-5")])
    assert stack.node.try_find_child("Own5") is None


def test_endpoint_whose_permissions_do_not_fit_leaves_nothing_behind(tmp_path: Path) -> None:
    """After the error another endpoint can have the same id."""
    stack = make_stack()
    repository = add_repository(stack, write_models(tmp_path, 1, "a"))
    shared = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    for index in range(5):
        add_endpoint(stack, repository, f"Endpoint{index}", model="model_0", role=shared)
    with pytest.raises(InvalidValueError, match="Endpoint5/ExecutionPolicy: a role can have 10"):
        add_endpoint(stack, repository, "Endpoint5", model="model_0", role=shared)
    add_endpoint(stack, repository, "Endpoint5", model="model_0")
    assert len(resources(synthesize(stack), "AWS::SageMaker::Endpoint")) == 6


def test_first_policy_is_the_default_child(stack: cdk.Stack) -> None:
    """``node.default_child`` reaches the policy, as in CDK's own constructs;
    its logical id has no number.
    """
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    permissions = RolePermissions(stack, "Own", role=role, statements=[read("bucket")])
    assert isinstance(permissions.node.default_child, iam.ManagedPolicy)


def read(bucket: str) -> Statement:
    return allow("Read", ["s3:GetObject"], [f"arn:aws:s3:::{bucket}/*"])


def test_estimated_length_is_not_below_the_real_one(tmp_path: Path) -> None:
    """The estimate takes the longest name of each reference,
    so the policy in the account is not longer.
    """
    template = repository_template(write_models(tmp_path / "models", 3, "a"))
    for statement in managed_statements(template):
        real = len(json.dumps(filled(statement), separators=(",", ":")))
        assert real <= statement_length(statement)


# What makes an update replace a policy.


def captured_template(path: Path, bucket_name: str, prefix: str = "captured") -> dict[str, Any]:
    """The template of an endpoint that captures its requests in this bucket."""
    stack = make_stack()
    bucket = s3.Bucket(stack, "Captured", bucket_name=bucket_name)
    capture = DataCapture(bucket=bucket, prefix=prefix)
    add_endpoint(stack, path, model="model_0", data_capture=capture)
    return synthesize(stack)


def policy_of(template: Mapping[str, Any]) -> tuple[str, str]:
    """The logical ID and the description of the only managed policy.

    CloudFormation replaces the policy if its description changes.
    """
    ((name, policy),) = resources(template, "AWS::IAM::ManagedPolicy").items()
    return name, json.dumps(policy["Properties"]["Description"])


def test_unchanged_endpoint_keeps_its_policy(tmp_path: Path) -> None:
    """The same app has the same logical id and description again; a change keeps the id alone."""
    path = write_models(tmp_path, 1, "a")
    name, description = policy_of(captured_template(path, "captured-1"))

    again = policy_of(captured_template(path, "captured-1"))
    assert again == (name, description)

    changed_name, changed_description = policy_of(
        captured_template(path, "captured-1", "elsewhere")
    )
    assert changed_name == name
    assert changed_description != description


def test_replaced_bucket_replaces_the_policy(tmp_path: Path) -> None:
    """A bucket with a new name keeps its logical id;
    the old fleet may still write to the old bucket.
    """
    path = write_models(tmp_path, 1, "a")
    before = captured_template(path, "captured-1")
    after = captured_template(path, "captured-2")
    assert lost_grants(before, after) == set()


# Permissions that some requests need besides the obvious one.


def test_uploads_in_parts_may_use_the_key(stack: cdk.Stack, tmp_path: Path) -> None:
    """Amazon S3 needs kms:Decrypt for an upload in parts, in addition to kms:GenerateDataKey."""
    bucket = s3.Bucket(stack, "Bucket", encryption=s3.BucketEncryption.KMS)
    endpoint = add_endpoint(
        stack,
        tmp_path,
        async_inference=AsyncInferenceConfig(bucket=bucket),
        core_dump=CoreDump(bucket=bucket),
    )
    endpoint.grant_invoke_async(iam.User(stack, "Caller"))

    allowed = [listed(statement["Action"]) for statement in statement_list(synthesize(stack))]

    encrypting = [actions for actions in allowed if "kms:GenerateDataKey" in actions]
    assert len(encrypting) == 3  # core dumps, responses and the caller's requests
    assert all("kms:Decrypt" in actions for actions in encrypting)
    writing = [actions for actions in allowed if "s3:PutObject" in actions]
    assert all("s3:AbortMultipartUpload" in actions for actions in writing)


def test_tagged_archives_can_be_copied(tmp_path: Path) -> None:
    """CopyObject copies tags, so S3 asks for the permissions to read and write them."""
    template = repository_template(write_models(tmp_path, 1, "a"))
    allowed = statements(template)
    assert "s3:GetObjectTagging" in listed(allowed["ReadArchives"]["Action"])
    assert "s3:PutObjectTagging" in listed(allowed["PlaceArchives"]["Action"])
