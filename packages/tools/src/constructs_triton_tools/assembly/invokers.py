"""Who may call the endpoints of a stack: roles and users with a policy that allows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.wildcards import matches_wildcards

_POLICIES = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
_ATTACHED_TO = ("Roles", "Users", "Groups")
_PRINCIPALS = ("AWS::IAM::Role", "AWS::IAM::User", "AWS::IAM::Group")
_CALL = "sagemaker:InvokeEndpoint"


def invokers_of(stack: SynthesizedStack, endpoint: str, logical_id: str) -> list[str]:
    """Return the roles, users and groups of the stack that may call an endpoint, by name.

    Conditions and denials of the policies are not evaluated.
    """
    names = {endpoint.lower(), logical_id.lower(), f"{logical_id}.arn".lower()}
    allowed = {name for name, statement in _statements(stack) if _allows(statement, names)}
    return sorted(allowed)


def _statements(stack: SynthesizedStack) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each statement of the stack's policies, with the name of who has it."""
    for logical_id in stack.created(*_POLICIES):
        policy = stack.known_properties(logical_id)
        statements = _statements_of(policy)
        for member in _ATTACHED_TO:
            for name in policy.get(member) or ():
                yield from ((str(name), statement) for statement in statements)

    for logical_id in stack.created(*_PRINCIPALS):
        name = stack.name_of(logical_id)
        for policy in stack.known_properties(logical_id).get("Policies") or ():
            yield from ((name, statement) for statement in _statements_of(policy))


def _statements_of(policy: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    document = policy.get("PolicyDocument")
    if not isinstance(document, Mapping):
        return []
    statements = _listed(document.get("Statement"))
    return [statement for statement in statements if isinstance(statement, Mapping)]


def _allows(statement: Mapping[str, Any], endpoint_names: set[str]) -> bool:
    if statement.get("Effect") != "Allow":
        return False
    if not any(_is_call(str(action)) for action in _listed(statement.get("Action"))):
        return False
    resources = _listed(statement.get("Resource"))
    return any(_covers(str(resource).lower(), endpoint_names) for resource in resources)


def _is_call(action: str) -> bool:
    """Return whether an action, which may be a pattern, is one of the calls of endpoints.

    ``InvokeEndpointAsync`` and ``InvokeEndpointWithResponseStream`` begin with the name of the
    first.
    """
    return action.startswith(_CALL) or matches_wildcards(action, _CALL)


def _covers(resource: str, endpoint_names: set[str]) -> bool:
    """Return whether a resource of a policy is the endpoint: by its ARN, by a reference,
    or by a pattern.
    """
    pattern = resource.rpartition(":endpoint/")[2]
    return any(matches_wildcards(pattern, name) for name in endpoint_names)


def _listed(value: Any) -> Sequence[Any]:
    """Return a list of a policy: IAM accepts one value in place of a list of one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
