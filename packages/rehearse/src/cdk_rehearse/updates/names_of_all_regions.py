"""Names that AWS has only once in all Regions, and that stacks of several environments give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.template import Resource

from .problems import problem
from .report import Problem
from .versions import Request, Version

__all__ = ["names_given_twice"]

_OF_AN_ACCOUNT = {
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
}
"""The properties with names that are unique in an account.

Source: IAM User Guide, IAM and AWS STS quotas, IAM name requirements. Capitals make no difference.
"""
_OF_ALL_ACCOUNTS = {"AWS::S3::Bucket": "BucketName"}
"""The properties with names that are unique in all accounts of a partition.

Source: Amazon S3 User Guide, General purpose bucket naming rules.
"""
_PROPERTIES = {**_OF_AN_ACCOUNT, **_OF_ALL_ACCOUNTS}
_FIX = "leave the name out, or add the Region to it, such as f'models-{self.region}'"


class _Name(NamedTuple):
    """A name where it is unique; ``account`` is empty if it is unique in all accounts."""

    type: str
    name: str
    account: str
    partition: str


class _Place(NamedTuple):
    """Where a version gives a name."""

    environment: str
    stack: str
    logical_id: str


def names_given_twice(parts: Mapping[str, Request]) -> Iterator[tuple[str, Problem]]:
    """Yield an error for each name of NEW that another environment takes before it, after the
    environment of the error.

    Two names that OLD gives already are no error: AWS has both resources.

    Args:
        parts: OLD and NEW of each environment, in the order in which they are deployed.
    """
    deployed: set[tuple[_Name, _Place]] = set()
    for environment, request in parts.items():
        deployed.update(_given(request.old, environment))

    first_places: dict[_Name, _Place] = {}
    for environment, request in parts.items():
        for name, place in _given(request.new, environment):
            first = first_places.setdefault(name, place)
            is_of_one_rehearsal = first.environment == environment
            if is_of_one_rehearsal or {(name, first), (name, place)} <= deployed:
                continue
            yield environment, _taken(name, place, first)


def _given(version: Version, environment: str) -> Iterator[tuple[_Name, _Place]]:
    """Yield the names that a version gives, each with its place."""
    for stack_version in version.stacks:
        for stack in stack_version.synthesized():
            for logical_id, resource in stack.existing().items():
                name = _name(stack, resource)
                if name is not None:
                    yield name, _Place(environment, stack.name, logical_id)


def _name(stack: SynthesizedStack, resource: Resource) -> _Name | None:
    """Return the name of a resource; ``None`` if AWS chooses it, or has others in other Regions.

    The CDK writes the name of a stack with a Region as text. What has an intrinsic function is not
    known here.
    """
    if resource.type not in _PROPERTIES:
        return None
    name = resource.properties.get(_PROPERTIES[resource.type])
    if not isinstance(name, str):
        return None
    account = stack.account if resource.type in _OF_AN_ACCOUNT else ""
    return _Name(resource.type, name.lower(), account, _partition(stack.region))


def _partition(region: str) -> str:
    for prefix in ("cn-", "us-gov-"):
        if region.startswith(prefix):
            return prefix
    return ""


def _taken(name: _Name, place: _Place, first: _Place) -> Problem:
    """Return the problem of a name that another environment takes before."""
    scope = f"account {name.account}" if name.account else "all accounts"
    message = (
        f'{_PROPERTIES[name.type]} "{name.name}" is already that of {first.logical_id} in '
        f"{first.stack} ({first.environment}); it is unique in all Regions of {scope}, so this "
        "resource cannot be created"
    )
    return problem("rehearse-name-collision", place.logical_id, message, _FIX, stack=place.stack)
