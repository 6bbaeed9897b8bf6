"""Deregisters variants from auto scaling while a deployment changes their instances.

``constructs_triton_functions.scaling_guard.handler`` describes how the resources work together
and what a rollback does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jsii
from aws_cdk import (
    Annotations,
    Aspects,
    Aws,
    CfnResource,
    Duration,
    Fn,
    IAspect,
    Reference,
    Stack,
)
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IConstruct

from constructs_triton.cdk.custom_resources.function import DeployFunction, FunctionDefinition
from constructs_triton.cdk.permissions.nag_findings import mark_as_own
from constructs_triton.cdk.permissions.statements import Statement, allow, inline_policy
from constructs_triton.cdk.scaling.targets import SERVICE_NAME, service_linked_role_arn
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_functions.scaling_guard import (
    GATE_TYPE,
    PARAMETER_FOLDER,
    POLICY_TYPE,
    SWEEPER_TYPE,
    TARGET_TYPE,
)

_SERVICE_TIMEOUT_MINUTES = 15
# Service authorization reference, Application Auto Scaling: a target's ARN does not contain the
# endpoint's name, so no narrower condition exists.
_ONLY_VARIANTS = {
    "StringEquals": {
        "application-autoscaling:service-namespace": "sagemaker",
        "application-autoscaling:scalable-dimension": "sagemaker:variant:DesiredInstanceCount",
    }
}


SCALING_GUARD_FUNCTION = FunctionDefinition(
    description="Registers endpoint variants for scaling, around deployments (constructs-triton)",
    folder="scaling_guard",
    timeout_seconds=10 * 60,
    memory_mib=256,
    services=("application-autoscaling", "cloudformation", "sagemaker.api", "ssm"),
)
"""The function of one endpoint."""


class ScalingGuard(Construct):
    """Custom resources that run before an endpoint's update, and in the cleanup after it.

    :meth:`protect` makes the scaling of a variant run after the update. ``instance_types`` maps
    each variant's name to its instance types in order of priority. Another order is a change as
    another type is. ``replaces_policies`` takes over the scaling of an adopted endpoint, and
    deletes its previous policies.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: sagemaker.CfnEndpoint,
        instance_types: Mapping[str, Sequence[InstanceType]],
        replaces_policies: bool = False,
    ) -> None:
        super().__init__(scope, id)
        mark_as_own(self)
        self._previous_policies = (
            endpoint.get_att("PreviousPolicies") if replaces_policies else None
        )
        self._function = DeployFunction(self, "Function", SCALING_GUARD_FUNCTION)
        role = self._function.role
        before = inline_policy(self, "Before", role, _before_statements())
        properties = {
            # A name, not a reference: the endpoint is created after the guard.
            "EndpointLogicalId": Stack.of(endpoint).get_logical_id(endpoint),
            "InstanceTypes": {name: _joined(each) for name, each in instance_types.items()},
        }
        add, timeout = (
            self._function.add_custom_resource,
            Duration.minutes(_SERVICE_TIMEOUT_MINUTES),
        )
        sweeper = add(self, "Sweeper", SWEEPER_TYPE, properties, timeout)
        sweeper.node.add_dependency(before)
        # The reference makes CloudFormation update the gate whenever it updates the sweeper, and
        # after it.
        gate = add(self, "Gate", GATE_TYPE, {**properties, "SweeperId": sweeper.ref}, timeout)
        gate_resource = gate.node.default_child
        assert isinstance(gate_resource, CfnResource)
        endpoint.add_resource_dependency(gate_resource)
        self._after = inline_policy(
            self, "After", role, after_statements([endpoint.attr_endpoint_arn])
        )

    def protect(self, scaling: Construct, instance_types: Sequence[InstanceType]) -> None:
        """Let the guard's function register the targets and policies of ``scaling``."""
        scaling.node.add_dependency(self._after)
        Aspects.of(scaling).add(
            _ServedByGuard(
                self._function.function.function_arn,
                _joined(instance_types),
                self._previous_policies,
            )
        )


def _joined(instance_types: Sequence[InstanceType]) -> str:
    # The function joins the types of the running configuration in the same way.
    return ",".join(each.name for each in instance_types)


@jsii.implements(IAspect)
class _ServedByGuard:
    """Turns scalable targets and policies into custom resources with the same properties."""

    def __init__(
        self, function_arn: str, instance_type: str, previous_policies: Reference | None
    ) -> None:
        self._previous_policies = previous_policies
        self._function_arn = function_arn
        self._instance_type = instance_type

    def visit(self, node: IConstruct) -> None:
        if isinstance(node, appscaling.CfnScalableTarget):
            self._serve(node, TARGET_TYPE)
            # The service uses its service-linked role anyway, and RoleARN would require
            # iam:PassRole.
            node.add_property_deletion_override("RoleARN")
        elif isinstance(node, appscaling.CfnScalingPolicy):
            if node.policy_type != "TargetTrackingScaling":
                Annotations.of(node).add_error(
                    f"scaling_guard: supports policies of type TargetTrackingScaling only, got "
                    f"{node.policy_type}; remove the policy, or set scaling_guard=False"
                )
            self._serve(node, POLICY_TYPE)

    def _serve(
        self, node: appscaling.CfnScalableTarget | appscaling.CfnScalingPolicy, resource_type: str
    ) -> None:
        node.add_override("Type", resource_type)
        node.add_property_override("ServiceToken", self._function_arn)
        node.add_property_override("ServiceTimeout", str(_SERVICE_TIMEOUT_MINUTES * 60))
        # A changed property makes CloudFormation update the resource, which registers it again.
        node.add_property_override("InstanceType", self._instance_type)
        if self._previous_policies is not None:
            node.add_property_override("PreviousPolicies", self._previous_policies)


def _before_statements() -> list[Statement]:
    here = f"{Aws.REGION}:{Aws.ACCOUNT_ID}"
    stack_uuid = Fn.select(2, Fn.split("/", Aws.STACK_ID))
    endpoints = f"arn:{Aws.PARTITION}:sagemaker:{here}:endpoint"
    return [
        allow(
            "LookAtStack",
            ["cloudformation:DescribeStacks", "cloudformation:ListStackResources"],
            [Aws.STACK_ID],
        ),
        allow(
            "LookAtEndpoint",
            ["sagemaker:DescribeEndpoint", "sagemaker:DescribeEndpointConfig"],
            [
                f"{endpoints}/*",
                f"{endpoints}-config/*",
            ],  # the name is not known before the creation
        ),
        look_at_scaling(),
        scaling_statement("Deregister", ["DeregisterScalableTarget"]),
        allow(
            "RememberScaling",
            ["ssm:GetParameter", "ssm:PutParameter", "ssm:DeleteParameter"],
            [f"arn:{Aws.PARTITION}:ssm:{here}:parameter/{PARAMETER_FOLDER}/{stack_uuid}/*"],
        ),
    ]


def look_at_scaling() -> Statement:
    """Statement to read the scaling of variants."""
    described = ("ScalableTargets", "ScalingPolicies", "ScheduledActions")
    actions = [f"application-autoscaling:Describe{what}" for what in described]
    return allow("LookAtScaling", actions, ["*"])  # these actions support no other resource


def after_statements(endpoint_arns: Sequence[str]) -> list[Statement]:
    """Statements to register the variants of an endpoint for scaling."""
    # Application Auto Scaling acts on the endpoint and on its alarms with the caller's permissions.
    # Source: SageMaker developer guide, "Auto scaling prerequisites".
    here = f"{Aws.REGION}:{Aws.ACCOUNT_ID}"
    registering = [
        "RegisterScalableTarget",
        "PutScalingPolicy",
        "DeleteScalingPolicy",
        "PutScheduledAction",
        "DeleteScheduledAction",
    ]
    return [
        scaling_statement("Register", registering),
        allow("ScaleEndpoint", ["sagemaker:UpdateEndpointWeightsAndCapacities"], endpoint_arns),
        allow(
            "TrackMetrics",
            ["cloudwatch:PutMetricAlarm", "cloudwatch:DescribeAlarms", "cloudwatch:DeleteAlarms"],
            [f"arn:{Aws.PARTITION}:cloudwatch:{here}:alarm:TargetTracking-endpoint/*"],
        ),
        allow(
            "CreateServiceLinkedRole",
            ["iam:CreateServiceLinkedRole"],
            [service_linked_role_arn(Aws.PARTITION, Aws.ACCOUNT_ID)],
            {"StringEquals": {"iam:AWSServiceName": SERVICE_NAME}},
        ),
    ]


def scaling_statement(sid: str, operations: list[str]) -> Statement:
    """Statement for operations of Application Auto Scaling on variants of endpoints."""
    target = (
        f"arn:{Aws.PARTITION}:application-autoscaling:{Aws.REGION}:{Aws.ACCOUNT_ID}"
        ":scalable-target/*"
    )
    return allow(
        sid,
        [f"application-autoscaling:{operation}" for operation in operations],
        [target],
        _ONLY_VARIANTS,
    )
