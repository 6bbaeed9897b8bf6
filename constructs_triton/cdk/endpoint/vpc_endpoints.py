"""``TritonVpcEndpoints``: what an endpoint in subnets without internet access needs."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

__all__ = ["TritonVpcEndpoints"]


class TritonVpcEndpoints(Construct):
    """VPC endpoints for models in subnets that have no route to the internet.

    The models come through the VPC, hence the gateway endpoint of S3, which costs nothing. Image and logs do
    not: SageMaker pulls the one and ships the other outside of the VPC.

    ``vpc``
        Where to; the endpoints go into all of its route tables.
    ``runtime_access``
        Adds the interface endpoint of ``sagemaker.runtime``, through which callers in the VPC reach the
        endpoint; off by default, since it is charged by the hour.
    """

    def __init__(self, scope: Construct, id: str, *, vpc: ec2.IVpc, runtime_access: bool = False) -> None:
        super().__init__(scope, id)
        self.s3_endpoint = ec2.GatewayVpcEndpoint(
            self, "S3", vpc=vpc, service=ec2.GatewayVpcEndpointAwsService.S3
        )
        self.runtime_endpoint: ec2.InterfaceVpcEndpoint | None = None
        if runtime_access:
            self.runtime_endpoint = ec2.InterfaceVpcEndpoint(
                self, "Runtime", vpc=vpc, service=ec2.InterfaceVpcEndpointAwsService.SAGEMAKER_RUNTIME
            )
