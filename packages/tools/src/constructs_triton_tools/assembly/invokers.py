"""Who may call the endpoints of a stack: roles and users with a policy that allows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.wildcards import matches_wildcards

_POLICIES = "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"
_PRINCIPALS = "AWS::IAM::Role", "AWS::IAM::User", "AWS::IAM::Group"
_CALL = "sagemaker:InvokeEndpoint"


def invokers_of(stack: SynthesizedStack, endpoint: str, logical_id: str) -> list[str]:
    """Return the roles, users and groups of the stack that may call an endpoint, by name.

    Conditions and denials of the policies are not evaluated.
    """
    own = {endpoint.lower(), logical_id.lower(), f"{logical_id}.arn".lower()}
    return sorted({name for name, each in _statements(stack) if _allows(each, own)})


def _statements(stack: SynthesizedStack) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for logical_id in stack.created(*_POLICIES):
        policy = stack.known_properties(logical_id)
        for name in [
            each for key in ("Roles", "Users", "Groups") for each in policy.get(key) or ()
        ]:
            yield from ((str(name), each) for each in _of_document(policy.get("PolicyDocument")))
    for logical_id in stack.created(*_PRINCIPALS):
        for policy in stack.known_properties(logical_id).get("Policies") or ():
            name = stack.name_of(logical_id)
            yield from ((name, each) for each in _of_document(policy.get("PolicyDocument")))


def _of_document(document: Any) -> Iterator[Mapping[str, Any]]:
    statements = document.get("Statement") if isinstance(document, Mapping) else None
    yield from (each for each in _listed(statements) if isinstance(each, Mapping))


def _allows(statement: Mapping[str, Any], own: set[str]) -> bool:
    if statement.get("Effect") != "Allow":
        return False
    actions = [str(each) for each in _listed(statement.get("Action"))]
    if not any(matches_wildcards(each, _CALL) or each.startswith(_CALL) for each in actions):
        return False
    return any(_covers(str(each).lower(), own) for each in _listed(statement.get("Resource")))


def _covers(resource: str, own: set[str]) -> bool:
    """Return whether a resource of a policy is the endpoint: by its ARN, by a reference,
    or by a pattern.
    """
    name = resource.rpartition(":endpoint/")[2]
    return any(matches_wildcards(name, each) for each in own)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
