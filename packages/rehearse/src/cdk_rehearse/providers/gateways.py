"""EC2: what connects a network with the internet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import NotSimulatedError
from .ec2 import Ec2Resource
from .provider import Deployed, Physical, Request


class ElasticIp(Ec2Resource):
    """An address: ``Ref`` is the address itself, and EC2 releases it by its allocation."""

    type = "AWS::EC2::EIP"
    create_operation = "AllocateAddress"
    delete_operation = "ReleaseAddress"
    tag_type = "elastic-ip"

    def physical(self, found: Mapping[str, Any]) -> Physical:
        attributes = {name: found[name] for name in ("AllocationId", "PublicIp")}
        return Physical(found["PublicIp"], attributes)

    def key(self, current: Deployed) -> dict[str, Any]:
        return {"AllocationId": current.physical.attributes["AllocationId"]}


class InternetGateway(Ec2Resource):
    type = "AWS::EC2::InternetGateway"
    create_operation = "CreateInternetGateway"
    delete_operation = "DeleteInternetGateway"
    id_member = "InternetGatewayId"
    tag_type = "internet-gateway"


class NatGateway(Ec2Resource):
    type = "AWS::EC2::NatGateway"
    create_operation = "CreateNatGateway"
    delete_operation = "DeleteNatGateway"
    id_member = "NatGatewayId"
    tag_type = "natgateway"


class VPCGatewayAttachment(Ec2Resource):
    """It attaches an internet gateway or a virtual private gateway; only the first is simulated.

    Source: CloudFormation template reference, AWS::EC2::VPCGatewayAttachment: either
    ``InternetGatewayId`` or ``VpnGatewayId``, not both.
    """

    type = "AWS::EC2::VPCGatewayAttachment"
    create_operation = "AttachInternetGateway"
    delete_operation = "DetachInternetGateway"

    def create(self, request: Request) -> Physical:
        if "VpnGatewayId" in request.properties:
            raise NotSimulatedError(f"{self.type}: a virtual private gateway")
        return super().create(request)

    def physical(self, found: Mapping[str, Any]) -> Physical:
        return Physical(f"IGW|{found['VpcId']}", {"AttachmentType": "IGW"})

    def key(self, current: Deployed) -> dict[str, Any]:
        return {name: current.properties[name] for name in ("VpcId", "InternetGatewayId")}
