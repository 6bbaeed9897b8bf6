"""Rehearsals ask whether the role of an endpoint may write, and attach to a network,
after each step.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from shared_endpoint import ROLE, Resources
from small_assembly import codes, endpoint, rehearsal

from constructs_triton_core.facts.execution_role import NETWORK_ACTIONS
from constructs_triton_core.findings import Severity

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

KEY = {"Fn::GetAtt": ["Key", "Arn"]}
OBJECTS = {"Fn::Join": ["", [{"Fn::GetAtt": ["Out", "Arn"]}, "/*"]]}
ROOT = {"AWS": {"Fn::Join": ["", ["arn:aws:iam::", {"Ref": "AWS::AccountId"}, ":root"]]}}
READS = ["s3:GetObject", "ecr:*"]
WRITES = [
    "s3:PutObject",
    "sns:Publish",
    "kms:Decrypt",
    "kms:GenerateDataKey",
    "kms:CreateGrant",
    "ec2:*",
]
IN_S3 = {"asynchronous responses", "captured data", "core dumps"}
DATA = {
    "s3:PutObject": IN_S3,
    "sns:Publish": {"notifications"},
    "kms:Decrypt": {*IN_S3, "notifications"},
    "kms:GenerateDataKey": {*IN_S3, "notifications"},
    "kms:CreateGrant": {"storage volumes"},
}
"""What an endpoint writes with each action."""
RESOURCE_POLICIES = {"s3": "BucketPolicy", "sns": "TopicPolicy", "kms": "Key"}


def statement(*actions: str, effect: str = "Allow", **more: Any) -> dict[str, Any]:
    return {"Effect": effect, "Action": [*actions], "Resource": "*", **more}


def document(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [*statements]}


def folder(name: str) -> dict[str, Any]:
    return {"Fn::Join": ["", ["s3://", {"Ref": "Out"}, f"/{name}"]]}


def writing() -> Resources:
    """An endpoint that writes everything it can, under one key, with a policy of each kind."""
    resources = endpoint()
    resources["Role"]["Properties"]["PermissionsBoundary"] = {"Ref": "Boundary"}
    config = resources["Config"]["Properties"]
    config["KmsKeyId"] = KEY
    config["ProductionVariants"][0]["CoreDumpConfig"] = {"DestinationS3Uri": folder("dumps")}
    config["DataCaptureConfig"] = {
        "InitialSamplingPercentage": 1,
        "DestinationS3Uri": folder("captured"),
        "CaptureOptions": [{"CaptureMode": "Input"}],
    }
    notified = {"SuccessTopic": {"Ref": "Topic"}}
    output = {"S3OutputPath": folder("answers"), "NotificationConfig": notified}
    config["AsyncInferenceConfig"] = {"OutputConfig": output}
    by_default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}
    encryption = {
        "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": by_default}]
    }
    everything = statement("kms:*", Principal=ROOT)
    more: dict[str, tuple[str, dict[str, Any]]] = {
        "Key": ("AWS::KMS::Key", {"KeyPolicy": document(everything)}),
        "Out": ("AWS::S3::Bucket", {"BucketEncryption": encryption}),
        "Topic": ("AWS::SNS::Topic", {"KmsMasterKeyId": KEY}),
        "Boundary": ("AWS::IAM::ManagedPolicy", {"PolicyDocument": document(statement("*"))}),
        "BucketPolicy": (
            "AWS::S3::BucketPolicy",
            {"Bucket": {"Ref": "Out"}, "PolicyDocument": nothing()},
        ),
        "TopicPolicy": (
            "AWS::SNS::TopicPolicy",
            {"Topics": [{"Ref": "Topic"}], "PolicyDocument": nothing()},
        ),
    }
    resources |= {
        name: {"Type": kind, "Properties": properties} for name, (kind, properties) in more.items()
    }
    statements_of(resources, "Policy")[:] = [statement(*READS), statement(*WRITES)]
    return resources


def nothing() -> dict[str, Any]:
    """The policy of a resource that allows a service only."""
    return document(
        statement("s3:List*", "sns:List*", Principal={"Service": "events.amazonaws.com"})
    )


def statements_of(resources: Resources, name: str) -> list[dict[str, Any]]:
    properties = resources[name]["Properties"]
    found: list[dict[str, Any]] = properties["KeyPolicy" if name == "Key" else "PolicyDocument"][
        "Statement"
    ]
    return found


def without(action: str, name: str) -> Resources:
    """The same where one policy takes an action from the role."""
    resources = writing()
    statements = statements_of(resources, name)
    if name == "Boundary":  # an implicit denial; the others are explicit
        statements[:] = [{"Effect": "Allow", "NotAction": action, "Resource": "*"}]
    else:
        principal = {} if name == "Policy" else {"Principal": {"AWS": ROLE}}
        statements.append(statement(action, effect="Deny", **principal))
    return resources


@pytest.mark.parametrize(
    ("action", "name"),
    [
        (action, name)
        for action in DATA
        for name in ("Policy", "Boundary", RESOURCE_POLICIES[action.partition(":")[0]])
    ],
)
def test_taking_a_permission_away_is_found(tmp_path: Path, action: str, name: str) -> None:
    """By each kind of policy, for all data that needs the action, with the step."""
    found = rehearsal(tmp_path, writing(), without(action, name))
    assert {problem.path.partition(", ")[2] for problem in found.problems} == DATA[action]
    for problem in found.problems:
        assert (problem.code, problem.severity) == ("rehearse-data-loses-access", Severity.ERROR)
        assert f"(update {name}) on, role Role may not" in problem.message
        assert problem.message.endswith(f"{action} is not allowed")


@pytest.mark.parametrize(
    ("action", "name"),
    [
        ("s3:PutObject", "Policy"),
        ("kms:Decrypt", "Boundary"),
        ("s3:PutObject", "BucketPolicy"),
        ("sns:Publish", "TopicPolicy"),
        ("kms:CreateGrant", "Key"),
    ],
)
def test_giving_a_permission_is_silent(tmp_path: Path, action: str, name: str) -> None:
    """By each kind of policy."""
    assert codes(rehearsal(tmp_path, without(action, name), writing())) == set()


@pytest.mark.parametrize("action", ["s3:PutObject", "sns:Publish", "kms:CreateGrant"])
def test_policy_of_a_resource_gives_a_permission(tmp_path: Path, action: str) -> None:
    """It is enough without the role's own policies; a permissions boundary limits it."""
    old = writing()
    name = RESOURCE_POLICIES[action.partition(":")[0]]
    statements_of(old, name).append(statement(action, Principal={"AWS": ROLE}))
    new = copy.deepcopy(old)
    others = [allowed for allowed in WRITES if allowed != action]
    statements_of(new, "Policy")[1]["Action"] = others
    assert codes(rehearsal(tmp_path, old, new)) == set()

    statements_of(new, "Boundary")[:] = statements_of(without(action, "Boundary"), "Boundary")
    assert codes(rehearsal(tmp_path, old, new)) == {"rehearse-data-loses-access"}


def test_bucket_policy_may_require_encryption(tmp_path: Path) -> None:
    """SageMaker uploads with the header of KMS, and an organization is not known;
    roles may be excepted.
    """
    new = writing()
    tests = {
        "StringNotEquals": {"s3:x-amz-server-side-encryption": "aws:kms"},
        "StringNotEqualsIfExists": {"aws:PrincipalOrgID": "o-0123456789"},
        "ArnNotLike": {"aws:PrincipalArn": ROLE},
    }
    for operator, test in tests.items():
        denied = statement("s3:PutObject", effect="Deny", Principal="*", Condition={operator: test})
        statements_of(new, "BucketPolicy").append(denied)
    found = rehearsal(tmp_path, writing(), new)
    assert codes(found) == set()
    assert any("aws:PrincipalOrgID is not known" in note for note in found.not_simulated)


def test_what_failed_before_is_a_warning(tmp_path: Path) -> None:
    """The update changes nothing, but data is lost;
    with a bucket of others its policy may allow the role.
    """
    broken = without("s3:PutObject", "Policy")
    found = rehearsal(tmp_path, broken, broken)
    assert {problem.severity for problem in found.problems} == {Severity.WARNING}
    for problem in found.problems:
        assert problem.message.startswith("before and after the update, role Role")

    capture = broken["Config"]["Properties"].pop("DataCaptureConfig")
    broken["Config"]["Properties"] = {
        "ProductionVariants": endpoint()["Config"]["Properties"]["ProductionVariants"],
        "DataCaptureConfig": {**capture, "DestinationS3Uri": "s3://of-others/captured"},
    }
    assert codes(rehearsal(tmp_path, broken, broken)) == set()


OUTSIDE = "arn:aws:iam::123456789012:policy/team/limits"
LIMIT = {
    "Type": "AWS::IAM::ManagedPolicy",
    "Properties": {"PolicyDocument": document(statement("ec2:*"))},
}


@pytest.mark.parametrize(
    ("boundary", "expected"),
    [
        ({"Ref": "Limit"}, {"rehearse-reader-loses-access"}),
        ("arn:aws:iam::aws:policy/AmazonEC2ReadOnlyAccess", {"rehearse-reader-loses-access"}),
        ("arn:aws:iam::aws:policy/AdministratorAccess", set()),
        (OUTSIDE, set()),
    ],
)
def test_boundary_that_a_role_gets_limits_it(
    tmp_path: Path, boundary: Any, expected: set[str]
) -> None:
    """A policy of the stack and one of AWS are known; another is named and allows everything."""
    old = {**endpoint(), "Limit": LIMIT}
    new = copy.deepcopy(old)
    new["Role"]["Properties"]["PermissionsBoundary"] = boundary

    found = rehearsal(tmp_path, old, new)

    assert codes(found) == expected
    for problem in found.problems:
        assert "(update Role) on, a new instance cannot start" in problem.message
    assert ("existing managed policy limits" in found.not_simulated) is (boundary == OUTSIDE)
    assert found.way_back is not None
    assert found.way_back.succeeds


def test_description_of_a_role_changes_in_place(tmp_path: Path) -> None:
    """So do the longest session and the tags; the report has no word about them."""
    new = endpoint()
    new["Role"] = copy.deepcopy(new["Role"])
    new["Role"]["Properties"] |= {
        "Description": "serves",
        "MaxSessionDuration": 7200,
        "Tags": [{"Key": "team", "Value": "ml"}],
    }
    found = rehearsal(tmp_path, endpoint(), new)
    assert codes(found) == set()
    assert found.replaced == ()
    assert not any("Role" in note for note in found.not_simulated)


def connected(*statements: dict[str, Any]) -> Resources:
    """An endpoint in a network of others, whose role has these permissions to use it."""
    resources = endpoint()
    network = {
        "Subnets": ["subnet-0123456789abcdef0"],
        "SecurityGroupIds": ["sg-0123456789abcdef0"],
    }
    resources["Model"]["Properties"]["VpcConfig"] = network
    statements_of(resources, "Policy").extend(statements)
    return resources


@pytest.mark.parametrize("action", NETWORK_ACTIONS[::4])
def test_instance_needs_the_network_actions(tmp_path: Path, action: str) -> None:
    """Without one of them no instance can start."""
    everything = statement("ec2:*")
    found = rehearsal(
        tmp_path, connected(everything), connected(everything, statement(action, effect="Deny"))
    )
    (problem,) = found.problems
    assert problem.code == "rehearse-reader-loses-access"
    assert (
        f"Could not attach to subnet-0123456789abcdef0: {action} is not allowed" in problem.message
    )


def test_network_actions_may_be_narrowed(tmp_path: Path) -> None:
    """By the resources that each supports, or by a condition whose value is not known,
    which is named.
    """
    resources = ("network-interface/*", "subnet/*", "security-group/*")
    arns = [f"arn:aws:ec2:*:*:{resource}" for resource in resources]
    others = [action for action in NETWORK_ACTIONS if action != "ec2:CreateNetworkInterface"]
    new = connected(
        {**statement("ec2:CreateNetworkInterface"), "Resource": arns},
        statement(*others, Condition={"StringEquals": {"ec2:Region": "us-east-1"}}),
    )
    found = rehearsal(tmp_path, connected(statement("ec2:*")), new)
    assert codes(found) == set()
    assert any("ec2:Region" in note for note in found.not_simulated)
