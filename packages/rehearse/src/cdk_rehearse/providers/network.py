"""EC2: what no table of calls says of security groups and flow logs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from .called import CalledResource
from .provider import Provider, Request, without

_RANGE = ("CidrIp", "Description")


class SecurityGroup(CalledResource):
    """Its rules have another form than those of the service,
    which begins with one that allows everything.
    """

    def _set_later(self, key: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        if "SecurityGroupEgress" in properties:
            everything = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
            self._call("RevokeSecurityGroupEgress", {**key, "IpPermissions": everything})
        for name, operation in self._calls.later.items():
            for rule in properties.get(name, []):
                addresses = {each: rule[each] for each in _RANGE if each in rule}
                permission = {**without(rule, *_RANGE), "IpRanges": [addresses]}
                self._call(operation, {**key, "IpPermissions": [permission]})


class FlowLog(CalledResource):
    """CloudFormation creates one at a time."""

    def _members(self, request: Request, name: str) -> dict[str, Any]:
        members = super()._members(request, name)
        return {**members, "ResourceIds": [members["ResourceIds"]]}


for _provider in (SecurityGroup, FlowLog):
    _type = f"AWS::EC2::{_provider.__name__}"
    Provider.by_type[_type] = partial(_provider, type=_type)
