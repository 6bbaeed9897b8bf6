"""Policies of KMS keys, of buckets and of boundaries decide beside those of a role."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from shared_endpoint import TRUST
from small_assembly import codes, endpoint, rehearsal

from cdk_rehearse import SimulatedAccount
from constructs_triton_core.findings import Severity

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

ROOT = {"AWS": "arn:aws:iam::123456789012:root"}
USER = {"AWS": "arn:aws:iam::123456789012:role/user"}
ADMINISTRATION = {"Effect": "Allow", "Action": ["kms:Put*", "kms:Describe*"], "Principal": ROOT}
ACCOUNT = {"Effect": "Allow", "Action": "kms:*", "Principal": ROOT}
BY_NUMBER = {**ACCOUNT, "Principal": {"AWS": "123456789012"}}
ROLE = {"Effect": "Allow", "Action": "kms:Decrypt", "Principal": USER}
EVERYBODY = {"Effect": "Deny", "Action": "kms:Decrypt", "Principal": "*"}
OTHERS = {**EVERYBODY, "Condition": {"StringNotEquals": {"kms:CallerAccount": "123456789012"}}}
IN_S3 = {**ROLE, "Condition": {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}}}
DECRYPTS, DENIED = (
    {"Effect": "Allow", "Action": "kms:Decrypt"},
    {"Effect": "Deny", "Action": "kms:*"},
)


@pytest.mark.parametrize(
    ("of_key", "of_role", "is_allowed"),
    [
        ([ACCOUNT], [DECRYPTS], True),
        ([BY_NUMBER], [DECRYPTS], True),
        ([ACCOUNT], [], False),
        ([ADMINISTRATION], [DECRYPTS], False),
        ([ROLE], [], True),
        ([IN_S3], [], True),
        ([ROLE], [DENIED], False),
        ([ACCOUNT, EVERYBODY], [DECRYPTS], False),
        ([ACCOUNT, {**EVERYBODY, "Principal": ROOT}], [DECRYPTS], False),
        ([ACCOUNT, {**EVERYBODY, "Principal": USER}], [DECRYPTS], False),
        ([ACCOUNT, OTHERS], [DECRYPTS], True),
    ],
)
def test_key_policy_decides_first(
    aws: SimulatedAccount, of_key: list[Any], of_role: list[Any], is_allowed: bool
) -> None:
    """A Deny wins, and the role's policies count only if the key's policy allows the account."""
    key = create_key(aws, of_key)
    iam = aws.client("iam")
    iam.create_role(RoleName="user", AssumeRolePolicyDocument=json.dumps(TRUST))
    try:
        if of_role:
            iam.put_role_policy(RoleName="user", PolicyName="p", PolicyDocument=document(of_role))
        context = {"kms:ViaService": "s3.us-east-1.amazonaws.com"}
        assert aws.access.allows(USER["AWS"], "kms:Decrypt", key, context) is is_allowed
        aws.client("kms").schedule_key_deletion(KeyId=key.rpartition("/")[2], PendingWindowInDays=7)
        assert not aws.access.allows(USER["AWS"], "kms:Decrypt", key, context)
    finally:
        for name in iam.list_role_policies(RoleName="user")["PolicyNames"]:
            iam.delete_role_policy(RoleName="user", PolicyName=name)
        iam.delete_role(RoleName="user")


def create_key(aws: SimulatedAccount, statements: list[Any]) -> str:
    arn: str = aws.client("kms").create_key(Policy=document(statements))["KeyMetadata"]["Arn"]
    return arn


def document(statements: list[Any]) -> str:
    every = [{"Resource": "*", **statement} for statement in statements]
    return json.dumps({"Version": "2012-10-17", "Statement": every})


def keyed(*statements: Any, role_may: tuple[str, ...] = ("kms:CreateGrant",)) -> dict[str, Any]:
    """An endpoint whose volumes have a key with this policy."""
    resources = endpoint()
    key = {"KeyPolicy": json.loads(document(list(statements)))}
    resources["Key"] = {"Type": "AWS::KMS::Key", "Properties": key}
    arn = {"Fn::GetAtt": ["Key", "Arn"]}
    resources["Config"]["Properties"]["KmsKeyId"] = arn
    allowed = resources["Policy"]["Properties"]["PolicyDocument"]["Statement"]
    allowed.append({"Effect": "Allow", "Action": [*role_may], "Resource": arn})
    return resources


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ("logs.us-east-1", set()),
        ("logs", set()),
        ("logs.eu-west-1", {"rehearse-data-loses-access"}),
        ("sns", {"rehearse-data-loses-access"}),
    ],
)
def test_key_of_a_log_group_allows_the_service(
    tmp_path: Any, service: str, expected: set[str]
) -> None:
    """CloudWatch Logs has a name with its Region and one without."""
    principal = {"Service": f"{service}.amazonaws.com"}
    used = {"Effect": "Allow", "Action": "kms:GenerateDataKey*", "Principal": principal}
    resources = keyed(ACCOUNT, used)
    logs = {"LogGroupName": "/mine", "KmsKeyId": {"Fn::GetAtt": ["Key", "Arn"]}}
    resources["Logs"] = {"Type": "AWS::Logs::LogGroup", "Properties": logs}
    assert codes(rehearsal(tmp_path, None, resources)) == expected


NO_GRANTS = {"Effect": "Deny", "Action": "kms:CreateGrant", "Principal": "*"}


def test_narrowed_policy_of_a_volume_key_is_found(tmp_path: Any) -> None:
    """New instances could not encrypt their volumes;
    the hint is about policies and not about another key.
    """
    found = rehearsal(tmp_path, keyed(ACCOUNT), keyed(ACCOUNT, NO_GRANTS))
    (problem,) = found.problems
    assert (problem.code, problem.severity) == ("rehearse-data-loses-access", Severity.ERROR)
    assert (
        "role Role may not encrypt storage volumes, under key Key: kms:CreateGrant"
        in problem.message
    )
    assert problem.hint.startswith("allow the action in a policy of the role")


def test_narrowed_policy_beside_another_change_is_found(tmp_path: Any) -> None:
    """Rotation, a description and a property that is not simulated do not hide the new policy."""
    for change in ({"EnableKeyRotation": True, "Description": "d"}, {"MultiRegion": True}):
        new = keyed(ACCOUNT, NO_GRANTS)
        new["Key"]["Properties"].update(change)
        assert "rehearse-data-loses-access" in codes(rehearsal(tmp_path, keyed(ACCOUNT), new))


def test_first_deployment_without_the_permission_is_found(tmp_path: Any) -> None:
    """Neither a key that allows only its administration nor a role without
    the action is accepted.
    """
    for new in (keyed(ADMINISTRATION), keyed(ACCOUNT, role_may=("kms:List*",))):
        assert codes(rehearsal(tmp_path, None, new)) == {"rehearse-data-loses-access"}


def statement(effect: str, action: str, **more: Any) -> dict[str, Any]:
    return {"Effect": effect, "Action": action, **more}


@pytest.mark.parametrize(
    ("boundary", "of_bucket", "is_allowed"),
    [
        ([], [], True),
        ([statement("Allow", "*")], [], True),
        ([statement("Allow", "s3:Get*")], [], False),
        ([statement("Allow", "*"), statement("Deny", "s3:Put*")], [], False),
        ([], [statement("Deny", "s3:PutObject", Principal=USER)], False),
        ([], [statement("Deny", "s3:PutObject", Principal=ROOT)], False),
        ([statement("Allow", "s3:Get*")], [statement("Allow", "s3:*", Principal=USER)], False),
    ],
)
def test_requests_of_a_role_need_its_boundary_and_the_bucket(
    aws: SimulatedAccount, boundary: list[Any], of_bucket: list[Any], is_allowed: bool
) -> None:
    """The boundary also limits what the bucket grants,
    and a Deny for the role or the account wins.
    """
    iam, s3 = aws.client("iam"), aws.client("s3")
    limit: dict[str, str] = {}
    if boundary:
        found = iam.create_policy(PolicyName="limit", PolicyDocument=document(boundary))["Policy"][
            "Arn"
        ]
        limit = {"PermissionsBoundary": found}
    iam.create_role(RoleName="user", AssumeRolePolicyDocument=json.dumps(TRUST), **limit)
    everything = document([statement("Allow", "s3:*")])
    iam.put_role_policy(RoleName="user", PolicyName="p", PolicyDocument=everything)
    s3.create_bucket(Bucket="written")
    try:
        if of_bucket:
            s3.put_bucket_policy(Bucket="written", Policy=document(of_bucket))
        session = aws.access.assume(USER["AWS"], service="sagemaker.amazonaws.com", context={})
        request = {"Bucket": "written", "Key": "a", "Body": b"x"}
        if is_allowed:
            aws.client("s3", session).put_object(**request)
        else:
            with pytest.raises(ClientError, match="AccessDenied"):
                aws.client("s3", session).put_object(**request)
    finally:
        s3.delete_bucket_policy(Bucket="written")
        s3.delete_object(Bucket="written", Key="a")
        s3.delete_bucket(Bucket="written")
        iam.delete_role_policy(RoleName="user", PolicyName="p")
        iam.delete_role(RoleName="user")
        if limit:
            iam.delete_policy(PolicyArn=limit["PermissionsBoundary"])
