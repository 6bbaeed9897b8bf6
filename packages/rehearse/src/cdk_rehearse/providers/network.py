"""EC2: networks, their subnets, routes, security groups, endpoints and flow logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ..errors import NotSimulatedError, StackError
from ..values.stand_ins import is_opaque
from .ec2 import Ec2Resource
from .provider import Deployed, Physical, Request, without

_SOURCE = ("CidrIp", "Description")
"""The properties of a rule that the service has below ``IpRanges``."""


class _Network(Ec2Resource):
    """A VPC or a subnet: without IPv4 addresses of its own, it is not simulated.

    IPAM may choose the addresses, and a subnet may have those of IPv6 only (CloudFormation template
    reference, ``Ipv4IpamPoolId`` and ``Ipv6Native``).
    """

    def create(self, request: Request) -> Physical:
        if "CidrBlock" not in request.properties:
            raise NotSimulatedError(f"{self.type}: no CidrBlock")
        return super().create(request)


class VPC(_Network):
    type = "AWS::EC2::VPC"
    create_operation = "CreateVpc"
    delete_operation = "DeleteVpc"
    id_member = "VpcId"
    tag_type = "vpc"
    set_later = ("EnableDnsHostnames", "EnableDnsSupport")

    def physical(self, found: Mapping[str, Any]) -> Physical:
        attributes = {name: found[name] for name in ("VpcId", "CidrBlock")}
        return Physical(found["VpcId"], attributes)

    def complete(self, key: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        for name in self.set_later:
            if name in properties:
                self.call("ModifyVpcAttribute", {**key, name: {"Value": properties[name]}})


class Subnet(_Network):
    """Its Zone may be one that is not simulated: a Local Zone, one that is new, or the CDK's
    ``dummy1a`` for a Zone that it has not looked up.
    """

    type = "AWS::EC2::Subnet"
    create_operation = "CreateSubnet"
    delete_operation = "DeleteSubnet"
    id_member = "SubnetId"
    tag_type = "subnet"
    set_later = ("MapPublicIpOnLaunch",)

    def create(self, request: Request) -> Physical:
        created = super().create(request)
        zone = request.properties.get("AvailabilityZone")
        if zone is None:
            return created
        return replace(created, attributes={**created.attributes, "AvailabilityZone": zone})

    def members(self, request: Request, name: str) -> dict[str, Any]:
        """Return the members without an Availability Zone that is not simulated."""
        members = super().members(request, name)
        zone = members.get("AvailabilityZone")
        if zone is None or self._is_simulated(zone):
            return members
        if not is_opaque(zone):
            self.api.note_not_simulated("Zone", request.stack_name, zone)
        return without(members, "AvailabilityZone")

    def physical(self, found: Mapping[str, Any]) -> Physical:
        names = ("SubnetId", "AvailabilityZone", "CidrBlock", "VpcId")
        return Physical(found["SubnetId"], {name: found[name] for name in names})

    def complete(self, key: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        if "MapPublicIpOnLaunch" in properties:
            given = {"MapPublicIpOnLaunch": {"Value": properties["MapPublicIpOnLaunch"]}}
            self.call("ModifySubnetAttribute", {**key, **given})

    def _is_simulated(self, zone: str) -> bool:
        if is_opaque(zone):
            return False
        simulated = self.api.call("ec2", "DescribeAvailabilityZones")["AvailabilityZones"]
        return zone in {known["ZoneName"] for known in simulated}


class RouteTable(Ec2Resource):
    type = "AWS::EC2::RouteTable"
    create_operation = "CreateRouteTable"
    delete_operation = "DeleteRouteTable"
    id_member = "RouteTableId"
    tag_type = "route-table"


class SubnetRouteTableAssociation(Ec2Resource):
    type = "AWS::EC2::SubnetRouteTableAssociation"
    create_operation = "AssociateRouteTable"
    delete_operation = "DisassociateRouteTable"
    id_member = "AssociationId"

    def physical(self, found: Mapping[str, Any]) -> Physical:
        association = found["AssociationId"]
        return Physical(association, {"Id": association})


_DESTINATIONS = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")
"""The properties of which a route has one (EC2 API reference, CreateRoute)."""


class Route(Ec2Resource):
    """A route has no ID: its table and its destination identify it."""

    type = "AWS::EC2::Route"
    create_operation = "CreateRoute"
    delete_operation = "DeleteRoute"

    def physical(self, found: Mapping[str, Any]) -> Physical:
        (destination,) = (str(found[name]) for name in _DESTINATIONS if name in found)
        physical_id = f"{found['RouteTableId']}|{destination}"
        if "DestinationCidrBlock" not in found:
            return Physical(physical_id)
        return Physical(physical_id, {"CidrBlock": destination})

    def key(self, current: Deployed) -> dict[str, Any]:
        names = ("RouteTableId", *_DESTINATIONS)
        return {name: current.properties[name] for name in names if name in current.properties}


class SecurityGroup(Ec2Resource):
    """Its rules have another form than those of the service,
    which begins with one that allows everything.
    """

    type = "AWS::EC2::SecurityGroup"
    name_property = "GroupName"
    create_operation = "CreateSecurityGroup"
    delete_operation = "DeleteSecurityGroup"
    id_member = "GroupId"
    tag_type = "security-group"
    renamed: ClassVar = {"GroupDescription": "Description"}
    set_later = ("SecurityGroupIngress", "SecurityGroupEgress")

    def complete(self, key: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        """Add the rules of the template, which replace the default for egress."""
        if "SecurityGroupEgress" in properties:
            everything = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
            self.call("RevokeSecurityGroupEgress", {**key, "IpPermissions": everything})
        for name in self.set_later:
            for rule in properties.get(name, []):
                permission = _as_permission(rule)
                self.call(f"Authorize{name}", {**key, "IpPermissions": [permission]})


def _as_permission(rule: Mapping[str, Any]) -> dict[str, Any]:
    """A rule of a template, as EC2 has it."""
    source = {name: rule[name] for name in _SOURCE if name in rule}
    return {**without(rule, *_SOURCE), "IpRanges": [source]}


class VPCEndpoint(Ec2Resource):
    """EC2 refuses a second endpoint of a service where the first one has its route or its name.

    Sources: EC2 API reference, CreateRoute, ``RouteAlreadyExists`` (the message: eksctl issue
    2510); cfn-lint pull request 4492, which deployed two endpoints with private DNS names.
    """

    type = "AWS::EC2::VPCEndpoint"
    create_operation = "CreateVpcEndpoint"
    delete_operation = "DeleteVpcEndpoints"
    tag_type = "vpc-endpoint"

    def create(self, request: Request) -> Physical:
        for other in self._others(request.properties):
            self._expect_free_routes(request.properties, other)
            self._expect_free_name(request.properties, other)
        if _kind(request.properties) == "Gateway" and "ServiceName" in request.properties:
            self._add_prefix_list(request.properties["ServiceName"])
        return super().create(request)

    def members(self, request: Request, name: str) -> dict[str, Any]:
        members = super().members(request, name)
        return {**members, "VpcEndpointType": _kind(members)}

    def physical(self, found: Mapping[str, Any]) -> Physical:
        endpoint = found["VpcEndpointId"]
        return Physical(endpoint, {"Id": endpoint})

    def key(self, current: Deployed) -> dict[str, Any]:
        return {"VpcEndpointIds": [current.physical.id]}

    def _add_prefix_list(self, service: str) -> None:
        """Create the prefix list of a service if the simulated EC2 lacks it, as of S3 Express.

        A gateway endpoint routes to such a list of AWS (VPC user guide, "AWS-managed prefix
        lists"). Without one, the endpoint has no routes, and its deletion finds none.
        """
        given = self.api.call("ec2", "DescribeManagedPrefixLists")["PrefixLists"]
        if service not in {known["PrefixListName"] for known in given}:
            wanted = {"PrefixListName": service, "AddressFamily": "IPv4", "MaxEntries": 1}
            self.api.call("ec2", "CreateManagedPrefixList", **wanted)

    def _others(self, properties: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the endpoints of the same service and type in the network."""
        found = self.api.call("ec2", "DescribeVpcEndpoints")["VpcEndpoints"]
        place = _place(properties)
        others = [endpoint for endpoint in found if endpoint["State"] != "deleted"]
        return [other for other in others if _place(other) == place]

    def _expect_free_routes(self, properties: Mapping[str, Any], other: Mapping[str, Any]) -> None:
        tables = {*properties.get("RouteTableIds", ())} & {*other.get("RouteTableIds", ())}
        if _kind(properties) == "Gateway" and tables:
            raise StackError(
                f"route table {min(tables)} already has a route with destination-prefix-list-id of "
                f"{properties['ServiceName']} (Service: ec2, Code: RouteAlreadyExists)"
            )

    def _expect_free_name(self, properties: Mapping[str, Any], other: Mapping[str, Any]) -> None:
        """Raise ``StackError`` if another endpoint has the private DNS name."""
        is_named = properties.get("PrivateDnsEnabled") in (True, "true")
        if is_named and other.get("PrivateDnsEnabled"):
            raise StackError(
                "private-dns-enabled cannot be set because there is already a conflicting DNS "
                f"domain for {properties['ServiceName']} in the VPC {properties['VpcId']} "
                "(Service: ec2, Code: InvalidParameter)"
            )


def _place(properties: Mapping[str, Any]) -> tuple[str, str | None, str]:
    """The network, the service and the type of an endpoint, of which one may have each route."""
    return properties["VpcId"], properties.get("ServiceName"), _kind(properties)


def _kind(properties: Mapping[str, Any]) -> str:
    return str(properties.get("VpcEndpointType") or "Gateway")


class FlowLog(Ec2Resource):
    """CloudFormation creates one at a time, of the flow logs that a call may create."""

    type = "AWS::EC2::FlowLog"
    create_operation = "CreateFlowLogs"
    delete_operation = "DeleteFlowLogs"
    tag_type = "vpc-flow-log"

    def members(self, request: Request, name: str) -> dict[str, Any]:
        members = super().members(request, name)
        members["ResourceIds"] = [members.pop("ResourceId")]
        return members

    def physical(self, found: Mapping[str, Any]) -> Physical:
        flow_log = found["FlowLogIds"][0]
        return Physical(flow_log, {"Id": flow_log})

    def key(self, current: Deployed) -> dict[str, Any]:
        return {"FlowLogIds": [current.physical.id]}
