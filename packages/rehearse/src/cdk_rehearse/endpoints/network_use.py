"""What EC2 refuses to delete: subnets and security groups in which an endpoint has network interfaces.

Sources: API reference of EC2, "DeleteSecurityGroup" and "DeleteSubnet", error ``DependencyViolation``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.responses.security_groups import SecurityGroups
from moto.ec2.responses.subnets import Subnets

from ..replacement import wrapped
from .fleets import Fleets

__all__ = ["patches"]


def patches(fleets: Fleets) -> list[Any]:
    """All patches."""
    return [
        wrapped(SecurityGroups, "delete_security_group", partial(_delete, fleets, "GroupId")),
        wrapped(Subnets, "delete_subnet", partial(_delete, fleets, "SubnetId")),
    ]


def _delete(fleets: Fleets, member: str, original: Callable[[Any], Any], response: Any) -> Any:
    wanted = response._get_param(member)
    for endpoint, config in fleets.running():
        if any(wanted in network for network in _networks(fleets, config)):
            raise DependencyViolationError(
                f"resource {wanted} has a dependent object: a network interface of endpoint {endpoint}"
            )
    return original(response)


def _networks(fleets: Fleets, config_name: str) -> Iterator[list[str]]:
    """The subnets and security groups of a configuration for components, and of the models of others."""
    yield _ids(fleets.kept_members(config_name).get("VpcConfig"))
    for name in fleets.models_of(config_name):
        yield _ids(fleets.model(name).vpc_config)


def _ids(vpc_config: Mapping[str, list[str]] | None) -> list[str]:
    found = vpc_config or {}
    return [*found.get("Subnets", ()), *found.get("SecurityGroupIds", ())]
