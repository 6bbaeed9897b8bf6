"""Whether a function that may call an endpoint has a route to SageMaker from its subnets.

A call from an isolated subnet without an interface endpoint ends with a timeout of the connection
(aws/aws-cli issue 3940). SageMaker developer guide, "Connect to SageMaker AI through a VPC
interface endpoint": callers need the endpoint of the service ``sagemaker.runtime``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_triton.cdk.validation.synthesis_warning import warn_at_synthesis
from constructs_triton_core.findings import Finding, Severity

_SERVICE = "sagemaker.runtime"


def warn_without_route(
    endpoint: Construct, grantee: iam.IGrantable, actions: Sequence[str]
) -> None:
    """Annotate an endpoint at synthesis if a function that may call it cannot reach SageMaker.

    The VPC may get its endpoint after the permission is given.
    """
    # A function of the CDK; its module is not imported for callers that are none.
    is_function = hasattr(type(grantee), "is_bound_to_vpc")
    if is_function and any(action.startswith("sagemaker:Invoke") for action in actions):
        warn_at_synthesis(endpoint, partial(_find, grantee))


def _find(function: Any) -> Finding | None:
    """Return a warning about a function in isolated subnets of a VPC without the endpoint."""
    config = getattr(function.node.default_child, "vpc_config", None)
    subnets = set(getattr(config, "subnet_ids", None) or ())
    if not subnets:
        return None
    constructs = function.node.root.node.find_all()
    for vpc in _networks(constructs):
        isolated = {subnet.subnet_id for subnet in vpc.isolated_subnets}
        if subnets & isolated and not _has_endpoint(constructs, vpc.vpc_id):
            return Finding(
                "caller-without-route",
                Severity.WARNING,
                "grantee",
                f"{function.node.path} is in isolated subnets of {vpc.node.path}, which has no "
                f"interface endpoint of {_SERVICE} in this app, so its calls time out",
                "add TritonVpcEndpoints(..., runtime_access=True) to the VPC, or acknowledge this "
                "if there is another route",
                source="aws/aws-cli issue 3940; SageMaker developer guide: VPC interface endpoints",
            )
    return None


def _networks(constructs: Sequence[Any]) -> Iterator[Any]:
    """Yield the VPCs of an app, also imported ones, which have no class of their own in Python."""
    for construct in constructs:
        if hasattr(construct, "isolated_subnets") and hasattr(construct, "vpc_id"):
            yield construct


def _has_endpoint(constructs: Sequence[Any], vpc_id: str) -> bool:
    """Whether a VPC has the interface endpoint; its ID is the same token in all stacks."""
    return any(
        construct.vpc_id == vpc_id and _SERVICE in str(construct.service_name)
        for construct in constructs
        if isinstance(construct, ec2.CfnVPCEndpoint)
    )
