"""Checks that what watches or scales an endpoint is in its account and Region."""

from __future__ import annotations

from functools import cache
from typing import Protocol

from aws_cdk import Stack
from constructs import Construct, Node

from constructs_triton.cdk.validation.read_once import environment_of, stack_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_token


class _HasNode(Protocol):
    @property
    def node(self) -> Node: ...


def is_elsewhere(resource: object, stack: Stack) -> bool:
    """Whether a resource is in another account or Region than a stack; tokens are not."""
    place = _place_of(resource)
    if place is None:
        return False
    here = environment_of(stack)
    pairs = zip(place, (here.account, here.region), strict=True)
    return any(there != own and not is_token(there) and not is_token(own) for there, own in pairs)


@cache
def _place_of(resource: object) -> tuple[str, str] | None:
    """Return the account and the Region of a resource; they never change."""
    environment = getattr(resource, "env", None)
    return None if environment is None else (environment.account, environment.region)


def known_place(resource: object) -> tuple[str | None, str | None]:
    """Return the account and the Region of a resource, ``None`` where it is not known."""
    account, region = _place_of(resource) or (None, None)
    return (None if is_token(account) else account, None if is_token(region) else region)


def check_is_here(scope: Construct, resource: _HasNode, what: str, method: str) -> None:
    """Check that an imported endpoint is where its alarms and its scaling would be created.

    Application Auto Scaling scales what is in its account and Region, and an alarm watches the
    metrics of its own (Amazon CloudWatch user guide, "Using Amazon CloudWatch alarms").

    Raises:
        InvalidValueError: it is in another account or Region.
    """
    stack = stack_of(scope)
    if not is_elsewhere(resource, stack):
        return
    environment = resource.env  # type: ignore[attr-defined] # is_elsewhere found one
    raise InvalidValueError(
        f"{resource.node.path}: {what} must be in the account and Region of the endpoint, "
        f"{environment.account} and {environment.region}, got {stack.account} and {stack.region}; "
        f"call {method} in a stack of {environment.account} and {environment.region}"
    )
