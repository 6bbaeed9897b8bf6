"""EC2: a VPC with its subnets, routes, gateways, security groups, endpoints and flow logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ..errors import StackError
from .provider import Deployed, Physical, Provider, Request, without


def _tagged(properties: Mapping[str, Any], kind: str, *left_out: str) -> dict[str, Any]:
    """The members of a request that creates a resource with its tags."""
    wanted = without(properties, "Tags", *left_out)
    if properties.get("Tags"):
        wanted["TagSpecifications"] = [{"ResourceType": kind, "Tags": properties["Tags"]}]
    return wanted


class _NetworkProvider(Provider):
    """Created by one call with the properties as members; an unknown property is an error."""

    operation: ClassVar[str]
    """Without ``Create`` and ``Delete``."""
    id_member: ClassVar[str]
    tagged_as: ClassVar[str]
    """The type's name in ``TagSpecifications``."""
    set_later: ClassVar[tuple[str, ...]] = ()
    """Properties that other calls set."""
    attributes: ClassVar[tuple[str, ...]] = ()
    """The values of ``Fn::GetAtt`` beside the ID."""

    def create(self, request: Request) -> Physical:
        wanted = _tagged(request.properties, self.tagged_as, *self.set_later)
        answer = self.api.call("ec2", f"Create{self.operation}", **wanted)
        found = answer.get(self.operation, answer)
        try:
            self._finish(found[self.id_member], request.properties)
        except StackError:
            self._delete(found[self.id_member])
            raise
        return Physical(found[self.id_member], self._attributes(found))

    def delete(self, current: Deployed) -> None:
        self._delete(current.physical.id)

    def _delete(self, physical_id: str) -> None:
        self.api.call("ec2", f"Delete{self.operation}", **{self.id_member: physical_id})

    def _finish(self, physical_id: str, properties: Mapping[str, Any]) -> None:
        """Set the properties that need other calls."""

    def _attributes(self, found: Mapping[str, Any]) -> dict[str, Any]:
        return {name: found[name] for name in (self.id_member, *self.attributes)}


class Vpc(_NetworkProvider):
    type = "AWS::EC2::VPC"
    operation, id_member, tagged_as = "Vpc", "VpcId", "vpc"
    set_later = ("EnableDnsHostnames", "EnableDnsSupport")
    attributes = ("CidrBlock",)

    def _finish(self, physical_id: str, properties: Mapping[str, Any]) -> None:
        for name in self.set_later:
            if name in properties:
                value = {"Value": properties[name]}
                self.api.call("ec2", "ModifyVpcAttribute", VpcId=physical_id, **{name: value})


class Subnet(_NetworkProvider):
    type = "AWS::EC2::Subnet"
    operation, id_member, tagged_as = "Subnet", "SubnetId", "subnet"
    set_later = ("MapPublicIpOnLaunch",)
    attributes = ("AvailabilityZone", "CidrBlock", "VpcId")

    def _finish(self, physical_id: str, properties: Mapping[str, Any]) -> None:
        if "MapPublicIpOnLaunch" in properties:
            wanted = {"MapPublicIpOnLaunch": {"Value": properties["MapPublicIpOnLaunch"]}}
            self.api.call("ec2", "ModifySubnetAttribute", SubnetId=physical_id, **wanted)


class RouteTable(_NetworkProvider):
    type = "AWS::EC2::RouteTable"
    operation, id_member, tagged_as = "RouteTable", "RouteTableId", "route-table"


class SubnetRouteTableAssociation(Provider):
    type = "AWS::EC2::SubnetRouteTableAssociation"
    deletion = ("ec2", "DisassociateRouteTable", "AssociationId")

    def create(self, request: Request) -> Physical:
        found = self.api.call("ec2", "AssociateRouteTable", **request.properties)["AssociationId"]
        return Physical(found, {"Id": found})


class Route(Provider):
    type = "AWS::EC2::Route"

    def create(self, request: Request) -> Physical:
        self.api.call("ec2", "CreateRoute", **request.properties)
        table, destination = self._key(request.properties).values()
        return Physical(f"{table}|{destination}", {"CidrBlock": destination})

    def delete(self, current: Deployed) -> None:
        self.api.call("ec2", "DeleteRoute", **self._key(current.properties))

    def _key(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        return {name: properties[name] for name in ("RouteTableId", "DestinationCidrBlock")}


class InternetGateway(_NetworkProvider):
    type = "AWS::EC2::InternetGateway"
    operation, id_member, tagged_as = "InternetGateway", "InternetGatewayId", "internet-gateway"


class VpcGatewayAttachment(Provider):
    type = "AWS::EC2::VPCGatewayAttachment"

    def create(self, request: Request) -> Physical:
        self.api.call("ec2", "AttachInternetGateway", **request.properties)
        return Physical(f"IGW|{request.properties['VpcId']}", {"AttachmentType": "IGW"})

    def delete(self, current: Deployed) -> None:
        self.api.call("ec2", "DetachInternetGateway", **current.properties)


class ElasticIp(Provider):
    type = "AWS::EC2::EIP"

    def create(self, request: Request) -> Physical:
        wanted = _tagged(request.properties, "elastic-ip")
        found = self.api.call("ec2", "AllocateAddress", **wanted)
        attributes = {name: found[name] for name in ("AllocationId", "PublicIp")}
        return Physical(found["PublicIp"], attributes)

    def delete(self, current: Deployed) -> None:
        self.api.call("ec2", "ReleaseAddress", AllocationId=current.physical.attributes["AllocationId"])


class NatGateway(_NetworkProvider):
    type = "AWS::EC2::NatGateway"
    operation, id_member, tagged_as = "NatGateway", "NatGatewayId", "natgateway"


class SecurityGroup(_NetworkProvider):
    type = "AWS::EC2::SecurityGroup"
    operation, id_member, tagged_as = "SecurityGroup", "GroupId", "security-group"
    name_property, name_limit = "GroupName", 255
    set_later = ("SecurityGroupIngress", "SecurityGroupEgress")
    _RANGE = ("CidrIp", "Description")

    def create(self, request: Request) -> Physical:
        wanted = {**without(request.properties, "GroupDescription"), "GroupName": self.name(request)}
        wanted["Description"] = request.properties["GroupDescription"]
        return super().create(replace(request, properties=wanted))

    def _finish(self, physical_id: str, properties: Mapping[str, Any]) -> None:
        if "SecurityGroupEgress" in properties:
            everything = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]  # EC2's default rule
            self.api.call("ec2", "RevokeSecurityGroupEgress", GroupId=physical_id, IpPermissions=everything)
        for kind in self.set_later:
            for rule in properties.get(kind, []):
                wanted = [self._permission(rule)]
                self.api.call("ec2", f"Authorize{kind}", GroupId=physical_id, IpPermissions=wanted)

    def _permission(self, rule: Mapping[str, Any]) -> dict[str, Any]:
        addresses = {name: rule[name] for name in self._RANGE if name in rule}
        return {**without(rule, *self._RANGE), "IpRanges": [addresses]}


class VpcEndpoint(_NetworkProvider):
    type = "AWS::EC2::VPCEndpoint"
    operation, id_member, tagged_as = "VpcEndpoint", "VpcEndpointId", "vpc-endpoint"

    def _delete(self, physical_id: str) -> None:
        self.api.call("ec2", "DeleteVpcEndpoints", VpcEndpointIds=[physical_id])

    def _attributes(self, found: Mapping[str, Any]) -> dict[str, Any]:
        return {"Id": found["VpcEndpointId"]}


class FlowLog(Provider):
    type = "AWS::EC2::FlowLog"
    deletion = ("ec2", "DeleteFlowLogs", "FlowLogIds")

    def create(self, request: Request) -> Physical:
        wanted = _tagged(request.properties, "vpc-flow-log", "ResourceId")
        ids = [request.properties["ResourceId"]]
        answer = self.api.call("ec2", "CreateFlowLogs", **wanted, ResourceIds=ids)
        if answer["Unsuccessful"]:
            raise StackError(answer["Unsuccessful"][0]["Error"]["Message"])
        (found,) = answer["FlowLogIds"]
        return Physical(found, {"Id": found})
