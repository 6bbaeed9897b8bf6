"""EC2: what no table of calls says of security groups and flow logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ..errors import StackError
from ..values.stand_ins import is_opaque
from .called import CalledResource
from .provider import Physical, Provider, Request, without

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


class Subnet(CalledResource):
    """Its Zone may be one that is not simulated: a Local Zone, one that is new, or the CDK's
    ``dummy1a`` for a Zone that it has not looked up.
    """

    def create(self, request: Request) -> Physical:
        created = super().create(request)
        zone = request.properties.get("AvailabilityZone")
        if zone is None:
            return created
        return replace(created, attributes={**created.attributes, "AvailabilityZone": zone})

    def _members(self, request: Request, name: str) -> dict[str, Any]:
        members = super()._members(request, name)
        zone = members.get("AvailabilityZone")
        if zone is None or self._is_simulated(zone):
            return members
        if not is_opaque(zone):
            self.api.note_not_simulated("Zone", request.stack_name, zone)
        return without(members, "AvailabilityZone")

    def _is_simulated(self, zone: str) -> bool:
        if is_opaque(zone):
            return False
        simulated = self.api.call("ec2", "DescribeAvailabilityZones")["AvailabilityZones"]
        return zone in {each["ZoneName"] for each in simulated}


class VPCEndpoint(CalledResource):
    """EC2 refuses a second endpoint of a service where the first one has its route or its name.

    Sources: EC2 API reference, CreateRoute, ``RouteAlreadyExists`` (the message: eksctl issue
    2510); cfn-lint pull request 4492, which deployed two endpoints with private DNS names.
    """

    def create(self, request: Request) -> Physical:
        for other in self._others(request.properties):
            self._expect_free_routes(request.properties, other)
            self._expect_free_name(request.properties, other)
        if _kind(request.properties) == "Gateway" and "ServiceName" in request.properties:
            self._add_prefix_list(request.properties["ServiceName"])
        return super().create(request)

    def _members(self, request: Request, name: str) -> dict[str, Any]:
        members = super()._members(request, name)
        return {**members, "VpcEndpointType": _kind(members)}

    def _add_prefix_list(self, service: str) -> None:
        """Create the prefix list of a service if the simulated EC2 lacks it, as of S3 Express.

        A gateway endpoint routes to such a list of AWS (VPC user guide, "AWS-managed prefix
        lists"). Without one, the endpoint has no routes, and its deletion finds none.
        """
        given = self.api.call("ec2", "DescribeManagedPrefixLists")["PrefixLists"]
        if service not in {each["PrefixListName"] for each in given}:
            place = {"PrefixListName": service, "AddressFamily": "IPv4", "MaxEntries": 1}
            self.api.call("ec2", "CreateManagedPrefixList", **place)

    def _others(self, properties: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the endpoints of the same service and type in the network."""
        found = self.api.call("ec2", "DescribeVpcEndpoints")["VpcEndpoints"]
        place = (properties["VpcId"], properties.get("ServiceName"), _kind(properties))
        return [
            each
            for each in found
            if each["State"] != "deleted"
            and (each["VpcId"], each["ServiceName"], _kind(each)) == place
        ]

    def _expect_free_routes(self, properties: Mapping[str, Any], other: Mapping[str, Any]) -> None:
        tables = {*properties.get("RouteTableIds", ())} & {*other.get("RouteTableIds", ())}
        if _kind(properties) == "Gateway" and tables:
            raise StackError(
                f"route table {min(tables)} already has a route with destination-prefix-list-id of "
                f"{properties['ServiceName']} (Service: ec2, Code: RouteAlreadyExists)"
            )

    def _expect_free_name(self, properties: Mapping[str, Any], other: Mapping[str, Any]) -> None:
        is_named = properties.get("PrivateDnsEnabled") in (True, "true")
        if is_named and other.get("PrivateDnsEnabled"):
            raise StackError(
                "private-dns-enabled cannot be set because there is already a conflicting DNS "
                f"domain for {properties['ServiceName']} in the VPC {properties['VpcId']} "
                "(Service: ec2, Code: InvalidParameter)"
            )


def _kind(properties: Mapping[str, Any]) -> str:
    return str(properties.get("VpcEndpointType") or "Gateway")


class FlowLog(CalledResource):
    """CloudFormation creates one at a time."""

    def _members(self, request: Request, name: str) -> dict[str, Any]:
        members = super()._members(request, name)
        return {**members, "ResourceIds": [members["ResourceIds"]]}


for _provider in (SecurityGroup, Subnet, VPCEndpoint, FlowLog):
    _type = f"AWS::EC2::{_provider.__name__}"
    Provider.by_type[_type] = partial(_provider, type=_type)
