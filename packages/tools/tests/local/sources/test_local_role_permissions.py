"""What a role may do with S3, according to the templates of an app."""

from __future__ import annotations

from typing import Any

import pytest

from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_tools.local.sources.role_permissions import RolePermissions, role_permissions

READ = "s3:GetObject"


def _document(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Statement": [{"Effect": "Allow", "Action": READ, **each} for each in statements]}


def _below(bucket: str, prefix: str) -> dict[str, Any]:
    arn = {"Fn::GetAtt": [bucket, "Arn"]}
    return {"Resource": {"Fn::Join": ["", [arn, f"/{prefix}*"]]}}


def _stack(**resources: tuple[str, dict[str, Any]]) -> SynthesizedStack:
    declared = {
        name: {"Type": kind, "Properties": each} for name, (kind, each) in resources.items()
    }
    return SynthesizedStack("Demo", Template({"Resources": declared}))


def _app(**role: Any) -> list[SynthesizedStack]:
    """An app whose role has a policy of each kind, in two stacks."""
    inline, managed = (_document(_below("Bucket", f"{name}/")) for name in ("inline", "managed"))
    added = _document({"Resource": "arn:aws:s3:::data/added/?"})
    principal = {"Principal": {"AWS": {"Fn::GetAtt": ["Role", "Arn"]}}}
    platform = _stack(
        Bucket=("AWS::S3::Bucket", {"BucketName": "data"}),
        Role=("AWS::IAM::Role", {"Policies": [{"PolicyDocument": inline}], **role}),
        Managed=(
            "AWS::IAM::ManagedPolicy",
            {"Roles": [{"Ref": "Role"}], "PolicyDocument": managed},
        ),
        Access=(
            "AWS::S3::BucketPolicy",
            {
                "Bucket": {"Ref": "Bucket"},
                "PolicyDocument": _document(
                    {**principal, **_below("Bucket", "bucket/")},
                    {"Principal": {"AWS": "arn:aws:iam::1:root"}, **_below("Bucket", "stranger/")},
                    {
                        "Effect": "Deny",
                        "Principal": "*",
                        "Resource": "*",
                        "Condition": {"Bool": {}},
                    },
                    {
                        "Effect": "Deny",
                        "Principal": {"AWS": "*"},
                        **_below("Bucket", "inline/secret/"),
                    },
                ),
            },
        ),
    )
    serving = _stack(
        Policy=("AWS::IAM::Policy", {"Roles": ["Role"], "PolicyDocument": added}),
        Other=(
            "AWS::IAM::Policy",
            {"Roles": ["Other"], "PolicyDocument": _document({"Resource": "*"})},
        ),
    )
    return [platform, serving]


@pytest.fixture
def permissions() -> RolePermissions:
    """Return the permissions of the app's role."""
    found = role_permissions(_app(ManagedPolicyArns=[{"Ref": "Managed"}]), "Role.Arn")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("key", "is_allowed"),
    [
        ("inline/a/b", True),
        ("inline/secret/a", False),
        ("managed/a", True),
        ("bucket/a", True),
        ("stranger/a", False),
        ("added/1", True),
        ("added/12", False),
    ],
)
def test_policies_of_all_stacks_count(
    permissions: RolePermissions, key: str, is_allowed: bool
) -> None:
    """Those of the role, of other stacks and of the bucket; an explicit Deny wins."""
    assert permissions.allows(READ, f"s3://data/{key}") == is_allowed
    assert not permissions.allows("s3:PutObject", f"s3://data/{key}")


def test_prefixes_are_locations(permissions: RolePermissions) -> None:
    """Messages name them; a single object is not a location of requests."""
    prefixes = ["s3://data/inline/", "s3://data/managed/", "s3://data/bucket/"]
    assert permissions.allowed_prefixes(READ) == prefixes


@pytest.mark.parametrize(
    ("statement", "is_allowed"),
    [
        ({"Action": ["s3:get*"], "Resource": "arn:aws-cn:s3:::*"}, True),
        ({"Action": "*", "Resource": {"Fn::GetAtt": ["Unknown", "Arn"]}}, True),
        ({"NotAction": "s3:Put*", "Resource": "*"}, True),
        ({"NotResource": "arn:aws:s3:::b/*"}, False),
        ({"Resource": "arn:aws:s3:::b"}, False),
        ({"Resource": "arn:aws:s3:::*********************************x"}, False),
    ],
)
def test_wildcards_and_opposites(statement: dict[str, Any], is_allowed: bool) -> None:
    """As IAM reads them; a resource that only a deployment knows may be any."""
    given = {"Effect": "Allow", **statement}
    given |= {} if "NotAction" in given or "Action" in given else {"Action": READ}
    assert RolePermissions("Role", [given]).allows(READ, f"s3://b/{'k' * 1000}") == is_allowed


@pytest.mark.parametrize("arn", ["Absent.Arn", "arn:aws:iam::1:role/Imported"])
def test_an_unknown_role_has_no_known_permissions(arn: str) -> None:
    """Nor has a role with a managed policy of AWS, whose statements are not in the app."""
    assert role_permissions(_app(), arn) is None
    policy = "arn:aws:iam::aws:policy/AmazonSageMakerFullAccess"
    assert role_permissions(_app(ManagedPolicyArns=[policy]), "Role.Arn") is None
