"""Which subnets a selection has, and which AWS services have an endpoint in their VPC."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2


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


def services_without_endpoint(vpc: ec2.IVpc, services: Sequence[str]) -> list[str]:
    """Return the services, such as ``sagemaker.api``,
    that have no endpoint in the VPC in this app.
    """
    resolve = vpc.stack.resolve
    service_names = []
    for construct in vpc.stack.node.find_all():
        if not isinstance(construct, ec2.CfnVPCEndpoint):
            continue
        if resolve(construct.vpc_id) == resolve(vpc.vpc_id):
            service_names.append(str(resolve(construct.service_name)))

    missing = []
    for service in services:
        if not any(f".{service}" in name for name in service_names):
            missing.append(service)
    return missing
