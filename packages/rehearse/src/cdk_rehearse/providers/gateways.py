"""EC2: the attachment of a gateway to a network."""

from __future__ import annotations

from functools import partial

from ..errors import NotSimulatedError
from .called import CalledResource
from .provider import Physical, Provider, Request


class VPCGatewayAttachment(CalledResource):
    """It attaches an internet gateway or a virtual private gateway; only the first is simulated.

    Source: CloudFormation template reference, AWS::EC2::VPCGatewayAttachment: either
    ``InternetGatewayId`` or ``VpnGatewayId``, not both.
    """

    def create(self, request: Request) -> Physical:
        if "VpnGatewayId" in request.properties:
            raise NotSimulatedError(f"{self.type}: a virtual private gateway")
        return super().create(request)


_TYPE = "AWS::EC2::VPCGatewayAttachment"
Provider.by_type[_TYPE] = partial(VPCGatewayAttachment, type=_TYPE)
