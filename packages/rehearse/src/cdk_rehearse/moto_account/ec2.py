"""Amazon EC2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.ec2.responses.security_groups import SecurityGroups
from moto.ec2.responses.subnets import Subnets

from .differences import Difference, Replacement

_GROUP = Difference(
    SecurityGroups,
    "delete_security_group",
    "refuses while network interfaces use the group (EC2 API reference: DeleteSecurityGroup)",
    since="5.1.10",
)
_SUBNET = Difference(
    Subnets,
    "delete_subnet",
    "refuses while network interfaces are in the subnet "
    "(EC2 API reference: error code DependencyViolation)",
    since="5.1.10",
)


def networks_deleted_after(check: Callable[[str], None]) -> list[Replacement]:
    """Delete a security group or a subnet after a check, which gets its ID."""
    return [
        _GROUP.wrapped_by(_after(check, "GroupId")),
        _SUBNET.wrapped_by(_after(check, "SubnetId")),
    ]


def _after(check: Callable[[str], None], parameter: str) -> Callable[..., Any]:
    def around(original: Callable[[Any], Any], response: Any) -> Any:
        check(response._get_param(parameter))
        return original(response)

    return around
