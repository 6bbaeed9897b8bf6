"""What ``adopt_existing`` needs of the other properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy

from constructs_triton.cdk.options.deployment import total_wait_seconds
from constructs_triton.errors import InvalidValueError

if TYPE_CHECKING:
    from constructs_triton.cdk.endpoint.properties import EndpointOptions

__all__ = ["check_adoption"]

_LONGEST_WAIT_SECONDS = 30 * 60
"""The function waits for an update for about 45 minutes, and instances need time to start."""


def check_adoption(options: EndpointOptions) -> None:
    """Check the properties of an endpoint that is adopted.

    Raises:
        InvalidValueError: one is missing or not supported.
    """
    name, deployment = options["endpoint_name"], options["deployment"]
    if name is None:
        raise InvalidValueError(
            "endpoint_name: is required with adopt_existing; set it to the name of the existing endpoint"
        )
    if options["log_retention"] is not None:
        raise InvalidValueError(
            "log_retention: not supported with adopt_existing, because the log group exists already; remove "
            f"it, and run `aws logs put-retention-policy --log-group-name /aws/sagemaker/Endpoints/{name} "
            "--retention-in-days 30`"
        )
    if options["removal_policy"] is RemovalPolicy.RETAIN:
        raise InvalidValueError(
            "removal_policy: RETAIN would leave the endpoint on the new model if the first deployment fails; "
            "use RETAIN_ON_UPDATE_OR_DELETE"
        )
    wait = None if deployment is None else total_wait_seconds(deployment)
    if wait is not None and wait > _LONGEST_WAIT_SECONDS:
        raise InvalidValueError(
            f"deployment: the waits must take at most {_LONGEST_WAIT_SECONDS} seconds together with "
            f"adopt_existing, because CloudFormation waits an hour for the update, got {wait:g}; shorten "
            "wait_interval or termination_wait"
        )
