"""Edits of policies: a Deny of each kind for each access, and the statement that allows it removed.

Source: IAM user guide, "Policy evaluation logic": a Deny in any policy that applies wins; in one
account, the identity's policies or the resource's policy must allow; a permissions boundary must
allow too. KMS developer guide, "Key policies": the key's policy must allow the role, or the
account.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from shared_endpoint import Resources, trust

from . import bases
from .accesses import Access, accesses
from .bases import allow, arn, document, ref, resource
from .mutant import DATA, READERS, Mutant, Verdict, template

_DENIES = "a Deny in any policy that applies wins"
_NOT_ALLOWED = "no policy allows the action any more"
_OUTSIDE = "the boundary does not allow the action"
_MORE = "a policy that allows more takes nothing away"
Edit = Callable[[Resources, Access], None]
_Kind = tuple[str, Edit, str]


def denied(access: Access, **more: Any) -> dict[str, Any]:
    return {**allow(access.action, access.resource, **more), "Effect": "Deny"}


def policy_edits() -> Iterator[Mutant]:
    """Edits of every kind of policy for each access: of each family one, in turn."""
    for number, access in enumerate(accesses()):
        chosen = (edits[number % len(edits)] for edits in (_DENIED, _BOUND, _decided(access)))
        for kind, edit, source in dict.fromkeys(chosen):
            yield _mutant(f"policy: {kind}", access, edit, "wrong", source)
        yield _mutant("policy: Allow removed", access, _disallow, "wrong", _NOT_ALLOWED)
        edits = _harmless(access)
        kind, edit, source = edits[number % len(edits)]
        yield _mutant(f"policy without effect: {kind}", access, edit, "harmless", source)


def _mutant(kind: str, access: Access, edit: Edit, verdict: Verdict, source: str) -> Mutant:
    old = bases.needed(access.base(), "Endpoint", access.role, access.granted_in, access.policy)
    new = copy.deepcopy(old)
    edit(new, access)
    codes = access.codes if verdict == "wrong" else ()
    return Mutant(
        kind, access.name, {"S": template(old)}, {"S": template(new)}, verdict, source, codes
    )


def _decided(access: Access) -> list[_Kind]:
    """The edits of the policy of the bucket, the key or the topic."""
    if not access.policy:
        return [("Deny in an inline policy", _attach_inline, _DENIES)]
    kind = {"s3": "bucket", "kms": "key", "sns": "topic"}[access.action.partition(":")[0]]
    found: list[_Kind] = [
        (f"Deny for everybody in the policy of the {kind}", _deny_everybody, _DENIES),
        (f"Deny for the role in the policy of the {kind}", _deny_role, _DENIES),
    ]
    if kind == "key":
        found.append(("policy of the key narrowed to administration", _narrow_key, _NOT_ALLOWED))
    return found


def _harmless(access: Access) -> list[_Kind]:
    found: list[_Kind] = [
        ("Deny with a condition that is not met", _deny_without_tls, "all requests use TLS"),
        ("Deny for another role", _deny_other_role, "the policy belongs to another role"),
        ("allowed twice", _allow_again, _MORE),
    ]
    if access.policy:
        found.append(("the resource's policy allows the role", _allow_in_resource, _MORE))
    return found


def _attach_inline(resources: Resources, access: Access) -> None:
    _inline(resources, access.role, denied(access))


def _inline(resources: Resources, role: str, statement: Any) -> None:
    resources["Added"] = resource(
        "AWS::IAM::Policy",
        PolicyName="added",
        Roles=[ref(role)],
        PolicyDocument=document(statement),
    )


def _add_to_role(resources: Resources, access: Access) -> None:
    added = {"PolicyName": "added", "PolicyDocument": document(_written_out(access))}
    resources[access.role]["Properties"].setdefault("Policies", []).append(added)


def _written_out(access: Access) -> dict[str, Any]:
    """The Deny without references, which a role could not have to what depends on it."""
    return {"Effect": "Deny", "Action": access.action, "Resource": "*"}


def _attach_managed(resources: Resources, access: Access) -> None:
    resources["Added"] = resource(
        "AWS::IAM::ManagedPolicy", Roles=[ref(access.role)], PolicyDocument=document(denied(access))
    )


def _bound_by_deny(resources: Resources, access: Access) -> None:
    _bound(resources, access, allow("*", "*"), _written_out(access))


def _bound_without(resources: Resources, access: Access) -> None:
    _bound(resources, access, {"Effect": "Allow", "NotAction": access.action, "Resource": "*"})


def _bound(resources: Resources, access: Access, *statements: Any) -> None:
    resources["Limit"] = resource("AWS::IAM::ManagedPolicy", PolicyDocument=document(*statements))
    resources[access.role]["Properties"]["PermissionsBoundary"] = ref("Limit")


def _disallow(resources: Resources, access: Access) -> None:
    """Take the action out of the statements that allow it,
    and keep one that allows something else.
    """
    properties = resources[access.granted_in]["Properties"]
    for found in properties.get("Policies", [properties]):
        statements = found["PolicyDocument"]["Statement"]
        for statement in statements:
            if statement["Resource"] != access.resource and not _covers(statement, access):
                continue
            given = statement["Action"]
            actions = given if isinstance(given, list) else [given]
            others = [action for action in actions if action != access.action]
            statement["Action"] = others or ["s3:GetBucketLocation"]


def _covers(statement: Any, access: Access) -> bool:
    given = statement["Resource"]
    is_pattern = isinstance(given, str) and isinstance(access.resource, str) and given.endswith("*")
    return is_pattern and access.resource.startswith(given[:-1])


def _policy_of_resource(resources: Resources, access: Access) -> list[Any]:
    properties = resources[access.policy]["Properties"]
    statements: list[Any] = properties[
        "KeyPolicy" if "KeyPolicy" in properties else "PolicyDocument"
    ]["Statement"]
    return statements


def _in_resource(access: Access) -> Any:
    """The resource as a statement of its own policy names it."""
    return "*" if access.action.startswith("kms:") else access.resource


def _deny_everybody(resources: Resources, access: Access) -> None:
    added = {**denied(access, Principal="*"), "Resource": _in_resource(access)}
    _policy_of_resource(resources, access).append(added)


def _deny_role(resources: Resources, access: Access) -> None:
    added = {
        **denied(access, Principal={"AWS": arn(access.role)}),
        "Resource": _in_resource(access),
    }
    _policy_of_resource(resources, access).append(added)


def _narrow_key(resources: Resources, access: Access) -> None:
    account = _policy_of_resource(resources, access)[0]
    account["Action"] = [
        "kms:Describe*",
        "kms:Get*",
        "kms:List*",
        "kms:Put*",
        "kms:ScheduleKeyDeletion",
    ]


def _deny_without_tls(resources: Resources, access: Access) -> None:
    _inline(
        resources, access.role, denied(access, Condition={"Bool": {"aws:SecureTransport": "false"}})
    )


def _deny_other_role(resources: Resources, access: Access) -> None:
    resources["Other"] = resource("AWS::IAM::Role", AssumeRolePolicyDocument=trust("lambda"))
    _inline(resources, "Other", denied(access))


def _allow_again(resources: Resources, access: Access) -> None:
    _inline(resources, access.role, allow(access.action.partition(":")[0] + ":*", "*"))


def _allow_in_resource(resources: Resources, access: Access) -> None:
    added = allow(access.action, _in_resource(access), Principal={"AWS": arn(access.role)})
    _policy_of_resource(resources, access).append(added)


_DENIED: list[_Kind] = [
    ("Deny in an inline policy", _attach_inline, _DENIES),
    ("Deny in a policy of the role", _add_to_role, _DENIES),
    ("Deny in a managed policy", _attach_managed, _DENIES),
]
_BOUND: list[_Kind] = [
    ("permissions boundary with a Deny", _bound_by_deny, _DENIES),
    ("permissions boundary without the action", _bound_without, _OUTSIDE),
]


def trust_edits() -> Iterator[Mutant]:
    """Edits of the trust policy of the execution role,
    and of the policy of a key that a service uses.
    """
    other = {"StringEquals": {"aws:SourceAccount": "210987654321"}}
    own = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    service = {"Service": "sagemaker.amazonaws.com"}
    assume = {"Action": "sts:AssumeRole", "Principal": service}
    edits: dict[str, tuple[Verdict, list[Any]]] = {
        "another service": (
            "wrong",
            [{**assume, "Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}}],
        ),
        "Deny for everybody": (
            "wrong",
            [{**assume, "Effect": "Allow"}, {**assume, "Effect": "Deny", "Principal": "*"}],
        ),
        "Deny for the service": (
            "wrong",
            [{**assume, "Effect": "Allow"}, {**assume, "Effect": "Deny"}],
        ),
        "another account": ("wrong", [{**assume, "Effect": "Allow", "Condition": other}]),
        "this account": ("harmless", [{**assume, "Effect": "Allow", "Condition": own}]),
        "a second service": (
            "harmless",
            [
                {
                    **assume,
                    "Effect": "Allow",
                    "Principal": {"Service": ["sagemaker.amazonaws.com", "lambda.amazonaws.com"]},
                }
            ],
        ),
    }
    for base in (bases.local, bases.queue, bases.components):
        for name, (verdict, statements) in edits.items():
            new = base()
            new["Role"]["Properties"]["AssumeRolePolicyDocument"] = document(*statements)
            codes = READERS if verdict == "wrong" else ()
            kind = "policy: trust" if verdict == "wrong" else "policy without effect: trust"
            source = "SageMaker assumes the execution role to start an instance"
            versions = {"S": template(base())}, {"S": template(new)}
            yield Mutant(kind, f"{base.__name__}: {name}", *versions, verdict, source, codes)


def log_key_edits() -> Iterator[Mutant]:
    """Edits of the policy of a key of CloudWatch Logs."""
    for name, change in (("Allow removed", -1), ("Deny for everybody", 0)):
        new = bases.local()
        statements = new["LogKey"]["Properties"]["KeyPolicy"]["Statement"]
        if change:
            del statements[change]
        else:
            statements.append(
                {
                    "Effect": "Deny",
                    "Action": "kms:GenerateDataKey*",
                    "Resource": "*",
                    "Principal": "*",
                }
            )
        source = "CloudWatch Logs developer guide: the key's policy must allow the service"
        versions = {"S": template(bases.local())}, {"S": template(new)}
        yield Mutant("policy: key of logs", name, *versions, "wrong", source, DATA)


def repository_edits() -> Iterator[Mutant]:
    """A Deny in the policy of an image repository, and the repository removed."""
    repository = resource("AWS::ECR::Repository", RepositoryName="acme/triton")
    image = {"Fn::Join": ["", [{"Fn::GetAtt": ["Images", "RepositoryUri"]}, ":1"]]}
    old = {**bases.local(), "Images": repository}
    old["Model"]["Properties"]["PrimaryContainer"]["Image"] = image
    new = copy.deepcopy(old)
    deny = {"Effect": "Deny", "Action": "ecr:BatchGetImage", "Principal": "*"}
    new["Images"]["Properties"]["RepositoryPolicyText"] = document(deny)
    versions = {"S": template(old)}, {"S": template(new)}
    yield Mutant(
        "policy: image repository", "Deny for everybody", *versions, "wrong", _DENIES, READERS
    )
    removed = copy.deepcopy(old)
    del removed["Images"]
    removed["Model"]["Properties"]["PrimaryContainer"]["Image"] = {
        "Fn::Sub": "${AWS::AccountId}.dkr.ecr.us-east-1.amazonaws.com/acme/triton:1"
    }
    source = "an instance that starts cannot pull the image"
    yield Mutant(
        "relation: resource removed",
        "image repository",
        {"S": template(old)},
        {"S": template(removed)},
        "wrong",
        source,
        READERS,
    )
