"""Every policy statement of every example is one that IAM can apply, and is complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from cdk_apps import add_many, add_repository, synthesize, write_model
from example_apps import CAPABILITIES, example, whole_templates
from policy_statements import PolicyStatement, policy_statements
from service_authorization import Action, matching_actions, overlap

# Statements that use the resource "*" although their actions support a narrower one, with the
# reason.
ANY_RESOURCE = {
    "AttachToVpc": (
        "AWS documentation, CreateModel API: permissions for a VPC are listed without a resource"
    )
}
WRITTEN_BY_THE_CDK = "Pipeline"  # CDK Pipelines' roles, by the start of their logical ids
# Actions that need another one on the same resource, with the reason.
COUNTERPARTS = {
    "s3:PutObject": ("s3:AbortMultipartUpload", "a large upload that fails leaves its parts"),
    "s3:ListBucketMultipartUploads": (
        "s3:ListMultipartUploadParts",
        "an upload is resumed by its parts",
    ),
    "kms:Encrypt": ("kms:Decrypt", "Amazon S3 decrypts the parts of a multipart upload"),
    "kms:GenerateDataKey": ("kms:Decrypt", "Amazon S3 decrypts the parts of a multipart upload"),
}
# A statement without a fault. The tests below change one member of it.
READ = {
    "Effect": "Allow",
    "Action": ["s3:GetObject"],
    "Resource": {"Fn::Join": ["", [{"Fn::GetAtt": ["Bucket", "Arn"]}, "/models/*"]]},
}
PASS_ROLE = {"Action": "iam:PassRole", "Resource": {"Fn::GetAtt": ["Role", "Arn"]}}
WRITE = {**READ, "Action": "s3:PutObject"}
ENCRYPT = {
    "Effect": "Allow",
    "Action": "kms:GenerateDataKey",
    "Resource": {"Fn::GetAtt": ["Key", "Arn"]},
}


def statements_of(name: str) -> list[PolicyStatement]:
    """The statements of all stacks of an example."""
    found: list[PolicyStatement] = []
    for template in whole_templates(example(name)):
        found += policy_statements(template)
    return found


def faults_of(statements: Iterable[PolicyStatement]) -> list[str]:
    """What is wrong with several statements."""
    found: list[str] = []
    for statement in statements:
        found += faults(statement)
    return found


def faults(statement: PolicyStatement) -> Iterator[str]:
    """What is wrong with one statement."""
    if statement.unsupported:
        yield f"{statement}: elements {statement.unsupported} are not checked"
    for pattern in statement.actions:
        yield from action_faults(statement, pattern)
    yield from unused_resources(statement)

    keys = statement.condition_keys
    if "iam:PassRole" in statement.actions and "iam:PassedToService" not in keys:
        yield f"{statement}: iam:PassRole needs the condition iam:PassedToService"


def action_faults(statement: PolicyStatement, pattern: str) -> Iterator[str]:
    """Whether an action exists, and supports the resources and the conditions of its statement."""
    actions = matching_actions(pattern)
    if not actions:
        yield f"{statement}: there is no action {pattern}"
        return

    # The resource "*" of a key policy is the key itself.
    if statement.resources and statement.owner_type != "AWS::KMS::Key":
        yield from resource_faults(statement, pattern, actions)
    for key in statement.condition_keys:
        if not any(action.supports(key) for action in actions):
            yield f"{statement}: {pattern} does not support the condition key {key}"


def resource_faults(
    statement: PolicyStatement, pattern: str, actions: list[Action]
) -> Iterator[str]:
    """Whether the action applies to one of the resources,
    and to each type of resource that it requires.
    """
    if statement.resources == ("*",):
        if all(action.arns for action in actions) and not has_reason(statement):
            yield f'{statement}: {pattern} supports a narrower resource than "*"'
        return
    if not any(covers(statement, arn) for arn in arns_of(actions)):
        yield f"{statement}: {pattern} does not apply to {', '.join(statement.resources)}"
    if len(actions) == 1:
        (action,) = actions
        for arn in action.required_arns:
            if not covers(statement, arn):
                yield f"{statement}: {pattern} also requires {arn}"


def arns_of(actions: Iterable[Action]) -> list[str]:
    """The ARNs of all resources to which at least one of the actions applies."""
    found: list[str] = []
    for action in actions:
        found += action.arns
    return found


def has_reason(statement: PolicyStatement) -> bool:
    return statement.sid in ANY_RESOURCE or statement.owner.startswith(WRITTEN_BY_THE_CDK)


def covers(statement: PolicyStatement, arn: str) -> bool:
    return any(overlap(resource, arn) for resource in statement.resources)


def unused_resources(statement: PolicyStatement) -> Iterator[str]:
    """Resources to which no action of the statement applies."""
    arns: list[str] = []
    for pattern in statement.actions:
        arns += arns_of(matching_actions(pattern))
    for resource in statement.resources:
        if resource != "*" and not any(overlap(resource, arn) for arn in arns):
            yield f"{statement}: no action applies to {resource}"


def missing_counterparts(statements: Iterable[PolicyStatement]) -> Iterator[str]:
    """Actions that a role has without the action that they need on the same resource."""
    of_roles = [statement for statement in statements if statement.roles and statement.resources]
    for statement in of_roles:
        for action in COUNTERPARTS.keys() & set(statement.actions):
            needed, reason = COUNTERPARTS[action]
            for resource in statement.resources:
                if not any(allows(other, statement.roles, needed, resource) for other in of_roles):
                    yield f"{statement}: {action} on {resource} needs {needed}: {reason}"


def allows(statement: PolicyStatement, roles: tuple[str, ...], action: str, resource: str) -> bool:
    """Whether a statement of the same roles allows an action on the resource
    or on something in it.
    """
    if not set(roles) <= set(statement.roles):
        return False
    names: set[str] = set()
    for pattern in statement.actions:
        names.update(matching.name for matching in matching_actions(pattern))
    if action not in names:
        return False
    return any(within(resource, own) or within(own, resource) for own in statement.resources)


def within(inner: str, outer: str) -> bool:
    """Whether an ARN is in another: the same, or what a wildcard or a bucket contains."""
    if inner == outer:
        return True
    if outer.endswith("*"):
        return inner.startswith(outer.removesuffix("*"))
    return inner.startswith(f"{outer}/")


@pytest.mark.parametrize("name", CAPABILITIES)
def test_every_statement_can_apply(name: str) -> None:
    """Each action exists and supports the resources and the condition keys of its statement."""
    found = statements_of(name)
    assert found
    assert faults_of(found) == []


@pytest.mark.parametrize("name", CAPABILITIES)
def test_every_action_has_its_counterpart(name: str) -> None:
    """A role that may write to S3 or encrypt may do all that a multipart upload needs."""
    assert list(missing_counterparts(statements_of(name))) == []


# The checks themselves.


def stack_with(*statements: Mapping[str, Any]) -> list[PolicyStatement]:
    """The statements of one policy of a role, in a template with a bucket, a key and the role."""
    document = {"Statement": list(statements)}
    policy = {"Roles": [{"Ref": "Role"}], "PolicyDocument": document}
    resources = {
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Key": {"Type": "AWS::KMS::Key"},
        "Role": {"Type": "AWS::IAM::Role"},
        "Policy": {"Type": "AWS::IAM::Policy", "Properties": policy},
    }
    return policy_statements({"Resources": resources})


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"Action": ["s3:ReadObject"]}, "there is no action s3:ReadObject"),
        ({"Action": ["storage:GetObject"]}, "there is no action storage:GetObject"),
        (
            {"Resource": {"Fn::GetAtt": ["Bucket", "Arn"]}},
            "s3:GetObject does not apply to arn:aws:s3:::Bucket",
        ),
        ({"Resource": "*"}, 's3:GetObject supports a narrower resource than "*"'),
        ({"Action": ["s3:GetObject", "s3:ListBucket"]}, "s3:ListBucket does not apply to"),
        (
            {"Resource": [READ["Resource"], {"Fn::GetAtt": ["Key", "Arn"]}]},
            "no action applies to arn:aws:kms:",
        ),
        (
            {"Condition": {"StringLike": {"s3:prefix": "models/*"}}},
            "not support the condition key s3:prefix",
        ),
        ({"NotResource": "*"}, "elements ('NotResource',) are not checked"),
        (PASS_ROLE, "iam:PassRole needs the condition iam:PassedToService"),
    ],
)
def test_a_fault_is_found(change: dict[str, Any], fault: str) -> None:
    """A statement with one fault is reported, and the same statement without it is not."""
    (correct,) = stack_with(READ)
    (wrong,) = stack_with({**READ, **change})
    assert list(faults(correct)) == []
    assert fault in "\n".join(faults(wrong))


def test_a_role_may_be_passed_to_a_service() -> None:
    """The condition makes ``iam:PassRole`` complete."""
    condition = {"StringEquals": {"iam:PassedToService": "sagemaker.amazonaws.com"}}
    (statement,) = stack_with({**PASS_ROLE, "Condition": condition})
    assert list(faults(statement)) == []


@pytest.mark.parametrize(
    ("statement", "needed"), [(WRITE, "s3:AbortMultipartUpload"), (ENCRYPT, "kms:Decrypt")]
)
def test_a_missing_counterpart_is_found(statement: dict[str, Any], needed: str) -> None:
    """It is missing, or granted on another resource, or granted as it should be."""
    counterpart = {**statement, "Action": needed}
    elsewhere = {**counterpart, "Resource": "arn:aws:s3:::other/*"}
    for granted in ([statement], [statement, elsewhere]):
        (fault,) = missing_counterparts(stack_with(*granted))
        assert f"needs {needed}" in fault

    complete = stack_with(statement, counterpart)
    assert list(missing_counterparts(complete)) == []


def test_statements_of_options_that_no_example_has(stack: cdk.Stack, tmp_path: Path) -> None:
    """Removing archives, at once or after a time, needs actions that exist."""
    write_model(tmp_path, "model")
    options: dict[str, Any] = {
        "prune_after": cdk.Duration.days(90),
        "removal_policy": cdk.RemovalPolicy.DESTROY,
    }
    repository = add_repository(stack, tmp_path, **options)
    add_many(stack, repository)

    found = policy_statements(synthesize(stack))

    sids = {statement.sid for statement in found}
    assert {"PruneArchives", "RemoveArchives", "ListArchives"} <= sids
    assert faults_of(found) == []
