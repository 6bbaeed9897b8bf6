"""The VPC of an endpoint: its subnets, whether they have a route to S3,
and ``TritonVpcEndpoints``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aws_cdk import CfnResource
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from constructs_triton.cdk.options.host_options import HostOptions
from constructs_triton.cdk.permissions.nag_findings import mark_as_own
from constructs_triton.cdk.permissions.places import check_places, network_places
from constructs_triton.cdk.repository.model_repository import annotate
from constructs_triton.cdk.validation.arguments import check_flag
from constructs_triton.cdk.validation.subnets import selected_subnets, services_without_endpoint
from constructs_triton_core.facts import limits
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.limit_checks import check_count


@dataclass(frozen=True, slots=True)
class NetworkIds:
    """The ids of the subnets and security groups of containers."""

    subnets: list[str]
    security_group_ids: list[str]


@dataclass(frozen=True, slots=True)
class ContainerNetwork:
    """How containers are attached to a VPC; empty without one.

    ``created`` has the security group, if it was created for the construct.
    """

    connections: ec2.Connections | None = None
    ids: NetworkIds | None = None
    created: tuple[CfnResource, ...] = ()

    @classmethod
    def make(cls, scope: Construct, options: HostOptions) -> ContainerNetwork:
        """Attach containers to the given security groups, or to a new one."""
        vpc = options["vpc"]
        if vpc is None:
            return cls()

        groups = options["security_groups"]
        created: tuple[CfnResource, ...] = ()
        if groups is None:
            group = ec2.SecurityGroup(scope, "SecurityGroup", vpc=vpc)
            groups = [group]
            resource = group.node.default_child
            assert isinstance(resource, CfnResource)
            created = (resource,)

        ids = NetworkIds(
            list(selected_subnets(vpc, options["vpc_subnets"]).subnet_ids),
            [group.security_group_id for group in groups],
        )
        return cls(ec2.Connections(security_groups=list(groups)), ids, created)


def check_network(scope: Construct, options: HostOptions) -> list[Finding]:
    """Return warnings about the subnets: no route to S3 in this app, or one Availability Zone only.

    Raises:
        InvalidValueError: SageMaker would refuse the number of subnets, or the VPC is in another
            Region.
    """
    vpc = options["vpc"]
    if vpc is None:
        return []
    places = network_places(vpc, options["vpc_subnets"], options["security_groups"])
    elsewhere = check_places(scope, places)
    selected = selected_subnets(vpc, options["vpc_subnets"])
    if selected.is_pending_lookup:
        return elsewhere
    check_count("vpc_subnets", selected.subnet_ids, limits.SUBNETS)
    return [*elsewhere, *_routes(vpc, selected), *_zones(selected)]


def _routes(vpc: ec2.IVpc, selected: ec2.SelectedSubnets) -> Iterator[Finding]:
    """Yield a warning if containers in the selected subnets cannot reach S3."""
    chosen = {subnet.node.path for subnet in selected.subnets}
    if not services_without_endpoint(vpc, ["s3"]):
        return
    if chosen & {subnet.node.path for subnet in vpc.isolated_subnets}:
        yield _no_route("these isolated subnets, which have no route to S3")
    if chosen & {subnet.node.path for subnet in vpc.public_subnets}:
        yield _no_route(
            "these public subnets, where its network interfaces "
            "have no public address and so no route to S3"
        )


def _no_route(subnets: str) -> Finding:
    """Return the warning that the selected subnets lead to no S3."""
    return Finding(
        "vpc-without-route-to-s3",
        Severity.WARNING,
        "vpc_subnets",
        f"SageMaker downloads the models through {subnets} in this app",
        "add TritonVpcEndpoints to the VPC before the endpoint, use private subnets with a NAT "
        "gateway, or acknowledge this if there is another route to S3",
        source="AWS documentation: give SageMaker hosted endpoints access to resources in your VPC",
    )


def _zones(selected: ec2.SelectedSubnets) -> Iterator[Finding]:
    """Yield a warning if all selected subnets are in one Availability Zone."""
    zones = set(selected.availability_zones)
    if len(zones) == 1:
        yield Finding(
            "vpc-in-one-zone",
            Severity.WARNING,
            "vpc_subnets",
            "all subnets are in one Availability Zone, so its failure stops the endpoint",
            "select subnets of at least two zones, or acknowledge this",
            source=(
                "AWS documentation: best practices for endpoints, subnets in two Availability Zones"
            ),
        )


class TritonVpcEndpoints(Construct):
    """VPC endpoints for SageMaker endpoints in subnets without a route to the internet.

    SageMaker downloads models through the VPC, so the VPC needs a gateway endpoint for S3, which is
    free. The image and the logs do not use the VPC.

    ``vpc``
        The VPC. The gateway endpoint is added to all its route tables.
    ``runtime_access``
        Adds an interface endpoint for ``sagemaker.runtime``, so callers in the VPC can call the
        SageMaker endpoint. AWS charges for it by the hour. Default: ``False``.
    """

    def __init__(
        self, scope: Construct, id: str, *, vpc: ec2.IVpc, runtime_access: bool = False
    ) -> None:
        check_flag("runtime_access", runtime_access)
        elsewhere = check_places(scope, network_places(vpc))
        super().__init__(scope, id)
        mark_as_own(self)
        annotate(self, elsewhere)
        self.s3_endpoint = ec2.GatewayVpcEndpoint(
            self, "S3", vpc=vpc, service=ec2.GatewayVpcEndpointAwsService.S3
        )
        self.runtime_endpoint: ec2.InterfaceVpcEndpoint | None = None
        if runtime_access:
            self.runtime_endpoint = ec2.InterfaceVpcEndpoint(
                self,
                "Runtime",
                vpc=vpc,
                service=ec2.InterfaceVpcEndpointAwsService.SAGEMAKER_RUNTIME,
            )
