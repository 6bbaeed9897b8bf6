"""The CloudWatch log groups of endpoints and of inference components."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Aws, CfnResource, RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

from constructs_triton.cdk.options.host_options import ResourceOptions
from constructs_triton.cdk.permissions.statements import Statement
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_token


def log_group_name(endpoint_name: str) -> str:
    """Return the log group that the containers of an endpoint write to.

    Source: AWS documentation, "Log groups and streams that Amazon SageMaker AI sends to CloudWatch
    Logs".
    """
    return f"/aws/sagemaker/Endpoints/{endpoint_name}"


def component_log_group_name(inference_component_name: str) -> str:
    """Return the log group that the containers of an inference component write to."""
    return f"/aws/sagemaker/InferenceComponents/{inference_component_name}"


def check_log_retention(
    name_property: str, name: str | None, retention: logs.RetentionDays | None
) -> None:
    """Check that a log group with a retention has a name."""
    if retention is not None and (name is None or is_token(name)):
        raise InvalidValueError(
            f"log_retention: needs an {name_property} that is known at synth, because the name of "
            f"the log group contains it; set {name_property}, or set the retention after the "
            "deployment with `aws logs put-retention-policy`"
        )


@dataclass(frozen=True, slots=True)
class ContainerLogs:
    """The log group of containers, which the stack creates only to set a retention.

    Args:
        group_name: Name of the log group; ``None`` if the endpoint or the component has no name.
        retention: How long the logs are kept. ``None`` leaves the log group to SageMaker, which
            sets no retention.
        removal_policy: That of the endpoint or the component.
    """

    group_name: str | None
    retention: logs.RetentionDays | None
    removal_policy: RemovalPolicy | None

    @classmethod
    def of_endpoint(
        cls, options: ResourceOptions, retention: logs.RetentionDays | None
    ) -> ContainerLogs:
        """The log group of an endpoint."""
        name = options["endpoint_name"]
        group = None if name is None else log_group_name(name)
        return cls(group, retention, options["removal_policy"])

    def role_statements(self) -> list[Statement]:
        """Deny the execution role the creation of a log group that the stack creates and deletes.

        SageMaker would create the group again for events that arrive after its deletion, and the
        next deployment would fail because the group exists. Other statements of a shared role allow
        all groups, so this one denies.
        """
        if self.group_name is None or self.retention is None:
            return []
        group = (
            f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:log-group:{self.group_name}"
        )
        return [
            Statement("KeepLogGroup", ["logs:CreateLogGroup"], [group, f"{group}:*"], effect="Deny")
        ]

    def create(self, scope: Construct, *, writer: CfnResource) -> None:
        """Create the log group before ``writer``, whose containers write to it."""
        if self.group_name is None or self.retention is None:
            return
        group = logs.LogGroup(
            scope,
            "LogGroup",
            log_group_name=self.group_name,
            retention=self.retention,
            # A log group that is kept would fail the next deployment of a resource of the same
            # name.
            removal_policy=self.removal_policy or RemovalPolicy.DESTROY,
        )
        writer.node.add_dependency(group)
