"""``TritonVpcEndpoints``: VPC endpoints for subnets without internet access."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from constructs_triton.cdk.permissions.nag_findings import mark_as_own

__all__ = ["TritonVpcEndpoints"]


class TritonVpcEndpoints(Construct):
    """VPC endpoints for SageMaker endpoints in subnets without a route to the internet.

    SageMaker downloads models through the VPC, so the VPC needs a gateway endpoint for S3, which is free.
    The image and the logs do not use the VPC.

    ``vpc``
        The VPC. The gateway endpoint is added to all its route tables.
    ``runtime_access``
        Adds an interface endpoint for ``sagemaker.runtime``, so callers in the VPC can call the SageMaker
        endpoint. AWS charges for it by the hour. Default: ``False``.
    """

    def __init__(self, scope: Construct, id: str, *, vpc: ec2.IVpc, runtime_access: bool = False) -> None:
        super().__init__(scope, id)
        mark_as_own(self)
        self.s3_endpoint = ec2.GatewayVpcEndpoint(
            self, "S3", vpc=vpc, service=ec2.GatewayVpcEndpointAwsService.S3
        )
        self.runtime_endpoint: ec2.InterfaceVpcEndpoint | None = None
        if runtime_access:
            self.runtime_endpoint = ec2.InterfaceVpcEndpoint(
                self, "Runtime", vpc=vpc, service=ec2.InterfaceVpcEndpointAwsService.SAGEMAKER_RUNTIME
            )
