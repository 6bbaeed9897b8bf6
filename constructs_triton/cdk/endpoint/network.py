"""The VPC of an endpoint: its subnets, and whether they have a route to S3."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2

from constructs_triton.cdk.endpoint.properties import EndpointOptions
from constructs_triton.findings import Finding, Severity

__all__ = ["check_routes", "selected_subnets"]


def selected_subnets(vpc: ec2.IVpc, selection: ec2.SubnetSelection | None) -> ec2.SelectedSubnets:
    """Return the subnets of a selection, or the default of the CDK."""
    if selection is None:
        return vpc.select_subnets()
    return vpc.select_subnets(
        availability_zones=selection.availability_zones,
        one_per_az=selection.one_per_az,
        subnet_filters=selection.subnet_filters,
        subnet_group_name=selection.subnet_group_name,
        subnets=selection.subnets,
        subnet_type=selection.subnet_type,
    )


def check_routes(options: EndpointOptions) -> list[Finding]:
    """Return a warning if the subnets are isolated and their VPC has no endpoint for S3 in this app."""
    vpc = options["vpc"]
    if vpc is None:
        return []
    chosen = {subnet.node.path for subnet in selected_subnets(vpc, options["vpc_subnets"]).subnets}
    isolated = {subnet.node.path for subnet in vpc.isolated_subnets}
    if not chosen & isolated or _has_s3_endpoint(vpc):
        return []
    return [
        Finding(
            "vpc-without-route-to-s3",
            Severity.WARNING,
            "vpc_subnets",
            "SageMaker downloads the models through these isolated subnets, which have no route to S3 in "
            "this app",
            "add TritonVpcEndpoints to the VPC before the endpoint, or acknowledge this if there is another "
            "route to S3",
            source="AWS documentation: give SageMaker hosted endpoints access to resources in your VPC",
        )
    ]


def _has_s3_endpoint(vpc: ec2.IVpc) -> bool:
    gateways = (each for each in vpc.stack.node.find_all() if isinstance(each, ec2.GatewayVpcEndpoint))
    names = [_service_name(each) for each in gateways if _vpc_of(each) == vpc.stack.resolve(vpc.vpc_id)]
    return any("s3" in name for name in names)


def _service_name(endpoint: ec2.GatewayVpcEndpoint) -> str:
    resource = endpoint.node.default_child
    return (
        str(endpoint.stack.resolve(resource.service_name)) if isinstance(resource, ec2.CfnVPCEndpoint) else ""
    )


def _vpc_of(endpoint: ec2.GatewayVpcEndpoint) -> object:
    resource = endpoint.node.default_child
    return endpoint.stack.resolve(resource.vpc_id) if isinstance(resource, ec2.CfnVPCEndpoint) else None
