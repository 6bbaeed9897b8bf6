"""What endpoints need later than at their creation: names, log groups and roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match
from cdk_apps import (
    add_endpoint,
    add_many,
    add_repository,
    make_app,
    make_stack,
    policies,
    resources,
    statements,
    synthesize,
    write_repository,
)
from policy_statements import listed

from cdk_rehearse.permissions.policy import Decision, decide
from cdk_rehearse.permissions.s3_needs import services_of_s3
from constructs_triton import (
    AsyncInferenceConfig,
    CompressionType,
    ModelSource,
    TritonImage,
    TritonModelRepository,
)
from constructs_triton.cdk.permissions.statements import allow
from constructs_triton_client.recorded_requests import RecordedRequest, RecordedRequests
from constructs_triton_core.errors import InvalidValueError


def test_names_are_compared_without_case(tmp_path: Path) -> None:
    """Two endpoints of an account and Region cannot have the same name in another case."""
    app = make_app()
    ireland = cdk.Environment(account="123456789012", region="eu-west-1")
    first = cdk.Stack(app, "First", env=ireland)
    second = cdk.Stack(app, "Second", env=ireland)
    add_endpoint(first, tmp_path, endpoint_name="digits")
    with pytest.raises(
        InvalidValueError, match=r'Second/Endpoint: .* got "Digits", and First/Endpoint has'
    ):
        add_endpoint(second, tmp_path, endpoint_name="Digits")

    virginia = cdk.Environment(account="123456789012", region="us-east-1")
    add_endpoint(cdk.Stack(app, "There", env=virginia), tmp_path, endpoint_name="Digits")
    add_endpoint(cdk.Stack(app, "Anywhere"), tmp_path, endpoint_name="Digits")

    first.node.try_remove_child("Endpoint")
    add_endpoint(second, tmp_path, "Renamed", endpoint_name="Digits")


def test_role_cannot_create_the_log_group_of_the_stack(stack: cdk.Stack, tmp_path: Path) -> None:
    """Late log events do not create a group again that the stack has deleted;
    other groups are created.
    """
    add_endpoint(stack, tmp_path, endpoint_name="digits", log_retention=logs.RetentionDays.ONE_WEEK)
    granted = statements(synthesize(stack))
    document = stack.resolve({"Statement": [granted["WriteLogs"], granted["KeepLogGroup"]]})
    for statement in document["Statement"]:
        statement["Resource"] = [
            arn if isinstance(arn, str) else _joined(arn, "eu-west-1")
            for arn in listed(statement["Resource"])
        ]
    prefix = "arn:aws:logs:eu-west-1:123456789012:log-group:/aws/sagemaker/Endpoints"
    expected = {
        "digits": Decision.DENIED,
        "digits:log-stream:": Decision.DENIED,
        "letters": Decision.ALLOWED,
    }
    for name, decision in expected.items():
        found = decide(
            [document], action="logs:CreateLogGroup", resource=f"{prefix}/{name}", context={}
        )
        assert found is decision, name


def _joined(value: dict[str, Any], region: str, url_suffix: str = "amazonaws.com") -> str:
    """The string that ``Fn::Join`` gives in a Region."""
    known = {
        "AWS::Partition": "aws",
        "AWS::Region": region,
        "AWS::AccountId": "123456789012",
        "AWS::URLSuffix": url_suffix,
    }
    parts = value["Fn::Join"][1]
    return "".join(part if isinstance(part, str) else known[part["Ref"]] for part in parts)


def test_grant_that_an_asynchronous_endpoint_refuses_is_an_error(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """An asynchronous endpoint answers InvokeEndpointAsync only,
    so the other grants name that one.
    """
    config = AsyncInferenceConfig(bucket=s3.Bucket(stack, "Bucket"))
    endpoint = add_endpoint(stack, tmp_path, async_inference=config)
    caller = iam.Role(stack, "Caller", assumed_by=iam.AccountRootPrincipal())
    for grant in (endpoint.grant_invoke, endpoint.grant_invoke_with_response_stream):
        with pytest.raises(InvalidValueError, match="use grant_invoke_async"):
            grant(caller)
    endpoint.grant_invoke_async(caller)


def test_role_that_takes_no_policies_is_reported(stack: cdk.Stack, tmp_path: Path) -> None:
    """A role that gets no permissions is a warning; a role that takes policies is none."""
    arn = "arn:aws:iam::123456789012:role/Shared"
    for name, mutable in (("Fixed", False), ("Open", True)):
        role = iam.Role.from_role_arn(stack, name, f"{arn}{name}", mutable=mutable)
        add_endpoint(stack, tmp_path, f"{name}Endpoint", role=role)
    found = Annotations.from_stack(stack).find_warning(
        "*", Match.string_like_regexp("role-without-policies")
    )
    assert [warning.id for warning in found] == ["/Test/FixedEndpoint"]


@pytest.mark.parametrize("deployed_to", ["eu-west-1", "cn-north-1"])
@pytest.mark.parametrize("is_agnostic", [False, True], ids=["known", "agnostic"])
def test_keys_may_be_used_through_every_name_of_s3(deployed_to: str, *, is_agnostic: bool) -> None:
    """Where no document says which suffix kms:ViaService has, both are allowed,
    also without a Region.
    """
    region = None if is_agnostic else deployed_to
    stack = make_stack(cdk.Environment(account="123456789012", region=region))
    key = kms.Key.from_key_arn(stack, "Key", f"arn:aws:kms:{deployed_to}:123456789012:key/1")
    bucket = s3.Bucket.from_bucket_attributes(
        stack, "Bucket", bucket_name="models", encryption_key=key
    )
    repository = TritonModelRepository(
        stack, "Models", source=ModelSource.from_bucket(bucket, "m.tar.gz")
    )
    add_endpoint(stack, repository, model="m", image=TritonImage.dlc("25.04"))

    condition = statements(synthesize(stack))["DecryptModel"]["Condition"]["StringEquals"]

    suffixes = ["amazonaws.com"]
    if deployed_to == "cn-north-1":
        suffixes.append("amazonaws.com.cn")
    needed = {f"s3.{deployed_to}.{suffix}" for suffix in suffixes}
    allowed = {
        _joined(service, deployed_to, suffixes[-1])
        for service in listed(condition["kms:ViaService"])
        if isinstance(service, dict)
    }
    assert needed <= allowed
    assert len(allowed) == (1 if region == "eu-west-1" else 2)
    # A rehearsal expects the same names.
    assert set(services_of_s3(deployed_to)) == needed


@pytest.mark.parametrize(
    ("bucket", "is_own"),
    [(None, True), ("shared-assets", False)],
    ids=["of the account", "of a team"],
)
@pytest.mark.parametrize("account", ["123456789012", None], ids=["known", "agnostic"])
def test_asset_bucket_belongs_to_the_account(
    tmp_path: Path, bucket: str | None, account: str | None, *, is_own: bool
) -> None:
    """Roles do not read a stranger's bucket of the same name;
    one named otherwise may be in any account.
    """
    synthesizer = cdk.DefaultStackSynthesizer(file_assets_bucket_name=bucket)
    env = cdk.Environment(account=account, region="eu-west-1")
    stack = cdk.Stack(make_app(), "Test", env=env, synthesizer=synthesizer)
    requests = tmp_path / "requests.json"
    RecordedRequests([RecordedRequest("one", {}, {})]).save(requests)
    write_repository(tmp_path / "models")
    repository = add_repository(stack, tmp_path / "models")
    add_endpoint(stack, repository, "One", model="other", verify_responses=requests)
    add_many(stack, repository, "Many")
    condition = {"StringEquals": {"aws:ResourceAccount": {"Ref": "AWS::AccountId"}}}
    found = statements(synthesize(stack))
    # The statements of the endpoint, of the function that copies, and of the verification.
    for name in ("LoadModel", "ReadArchives", "ReadRequests"):
        assert (found[name].get("Condition") == condition) is is_own, name


def test_kept_endpoint_keeps_its_security_group(stack: cdk.Stack, tmp_path: Path) -> None:
    """All that a kept endpoint needs is kept, also the security group of its network interfaces."""
    vpc = ec2.Vpc(stack, "Network", nat_gateways=1)
    add_endpoint(stack, tmp_path, vpc=vpc, removal_policy=cdk.RemovalPolicy.RETAIN)
    template = synthesize(stack)
    needed = ("EC2::SecurityGroup", "IAM::Role", "IAM::ManagedPolicy", "SageMaker::Model")
    for kind in (*needed, "SageMaker::EndpointConfig", "SageMaker::Endpoint"):
        found = resources(template, f"AWS::{kind}")
        (name,) = (name for name in found if "Endpoint" in name)
        assert found[name]["DeletionPolicy"] == "Retain", name
        if kind.startswith("SageMaker::"):
            # An update deletes what it has replaced, but no endpoint.
            replaced = "Retain" if kind == "SageMaker::Endpoint" else "Delete"
            assert found[name]["UpdateReplacePolicy"] == replaced, name


def test_kept_endpoint_keeps_the_policies_that_come_later(stack: cdk.Stack, tmp_path: Path) -> None:
    """Grants, rollback alarms and statements that need another policy are kept too."""
    endpoint = add_endpoint(stack, tmp_path, removal_policy=cdk.RemovalPolicy.RETAIN)
    s3.Bucket(stack, "Labels").grant_read(endpoint)
    names = [f"{number}-{'n' * 200}" for number in range(10)]
    alarm = "arn:aws:cloudwatch:eu-west-1:123456789012:alarm"
    alarms = [cloudwatch.Alarm.from_alarm_arn(stack, name[0], f"{alarm}:{name}") for name in names]
    endpoint.add_rollback_alarms(*alarms)
    for number in range(25):
        endpoint._execution.add(allow(None, ["s3:GetObject"], [f"{alarm}{number}{'r' * 150}"]))

    own = [
        policy
        for name, policy in policies(synthesize(stack)).items()
        if name.startswith("Endpoint") and "UpdateCheck" not in name
    ]

    assert len(own) > 2
    assert {policy["DeletionPolicy"] for policy in own} == {"Retain"}
    assert {policy["UpdateReplacePolicy"] for policy in own} == {"Delete"}


def test_kept_endpoint_refuses_models_that_are_deleted(stack: cdk.Stack, tmp_path: Path) -> None:
    """A repository that deletes its bucket is refused,
    unless the endpoint loads an archive elsewhere.
    """
    write_repository(tmp_path)
    repository = add_repository(stack, tmp_path, removal_policy=cdk.RemovalPolicy.DESTROY)
    kept: dict[str, Any] = {"removal_policy": cdk.RemovalPolicy.RETAIN}
    with pytest.raises(
        InvalidValueError, match=r"set removal_policy=RemovalPolicy.RETAIN on the TritonModel"
    ):
        add_many(stack, repository, "Many", **kept)
    files = CompressionType.NONE
    with pytest.raises(InvalidValueError, match=r"^removal_policy: RETAIN keeps the instances"):
        add_endpoint(stack, repository, "Files", model="other", compression_type=files, **kept)
    add_endpoint(stack, repository, "Archive", model="other", **kept)
    assert stack.node.try_find_child("Many") is None
