"""The methods of every inference component, new or imported: grants, metrics and scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from aws_cdk import CfnResource, Duration, Resource, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam

from constructs_triton.cdk.endpoint.log_group import component_log_group_name
from constructs_triton.cdk.endpoint.operating import component_log_statement
from constructs_triton.cdk.inference_component.component_endpoint_base import (
    ComponentEndpointBase,
)
from constructs_triton.cdk.metrics.component_metrics import ComponentMetrics
from constructs_triton.cdk.monitoring.component_alarms import (
    ComponentAlarmThresholds,
    TritonComponentAlarms,
)
from constructs_triton.cdk.monitoring.dashboard import TritonComponentDashboard
from constructs_triton.cdk.permissions.caller_routes import warn_without_route
from constructs_triton.cdk.permissions.grantees import grantee_findings
from constructs_triton.cdk.repository.model_repository import annotate
from constructs_triton.cdk.scaling.scalable_copy_count import TritonScalableCopyCount
from constructs_triton.cdk.scaling.targets import check_capacity, check_initial
from constructs_triton.cdk.validation.arguments import known_actions
from constructs_triton.cdk.validation.property_types import GRANTEE, check_has
from constructs_triton.cdk.validation.same_environment import is_elsewhere
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.tokens import is_token


class InferenceComponentBase(ComponentMetrics, Resource):
    """A component with a name, an ARN and an endpoint, which the subclasses set."""

    _inference_component_name: str
    _inference_component_arn: str
    _other_arns: tuple[str, ...] = ()
    """Further ARNs that it may have, for permissions."""
    _endpoint: ComponentEndpointBase
    _scalable: TritonScalableCopyCount | None = None

    @property
    def inference_component_name(self) -> str:
        """The component's name, a token until the deployment. Requests contain it."""
        return self._inference_component_name

    @property
    def inference_component_arn(self) -> str:
        """The component's ARN."""
        return self._inference_component_arn

    @property
    def endpoint(self) -> ComponentEndpointBase:
        """The endpoint on whose instances the copies run."""
        return self._endpoint

    @property
    def log_group_name(self) -> str:
        """The name of the CloudWatch log group that the containers write to."""
        return component_log_group_name(self._inference_component_name)

    @property
    def uses_gpus(self) -> bool | None:
        """Whether the copies reserve GPUs; ``None`` for an imported component."""
        return None

    @property
    def scalable_copy_count(self) -> TritonScalableCopyCount | None:
        """The result of :meth:`auto_scale_copy_count`; ``None`` if the component does not scale."""
        return self._scalable

    def grant(self, grantee: iam.IGrantable, *actions: str) -> iam.Grant:
        """Allow a principal some actions on this component only.

        Args:
            grantee: Who gets the permission.
            *actions: IAM actions, such as ``"sagemaker:DescribeInferenceComponent"``.
        """
        return self._grant_on(grantee, known_actions(actions), self._arns)

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to call this component (``sagemaker:InvokeEndpoint``).

        The grant names the endpoint and the component, as AWS's own solutions do. Calls of other
        components of the endpoint are not allowed by it.

        Args:
            grantee: Who gets the permission.
        """
        return self._grant_on_both(grantee, ["sagemaker:InvokeEndpoint"])

    def grant_invoke_with_response_stream(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to call this component and receive the response as a stream.

        Args:
            grantee: Who gets the permission.
        """
        actions = ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
        return self._grant_on_both(grantee, actions)

    def grant_operate(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to read the state and the logs of this component.

        Args:
            grantee: Who gets the permission.
        """
        check_has("grantee", grantee, *GRANTEE)
        logs = component_log_statement(Stack.of(self), self._inference_component_name)
        grantee.grant_principal.add_to_principal_policy(logs.to_cdk())
        return self.grant(grantee, "sagemaker:DescribeInferenceComponent")

    def auto_scale_copy_count(
        self, *, min_capacity: float, max_capacity: float
    ) -> TritonScalableCopyCount:
        """Let Application Auto Scaling choose the number of copies.

        With ``min_capacity=0``, a request to a component without copies fails, and starts the first
        copy. That takes minutes. The instances go to zero when all components of the endpoint have
        no copies and its ``min_instance_count`` is 0. Add policies to the result.

        Args:
            min_capacity: Minimum number of copies, 0 or more.
            max_capacity: Maximum number of copies.

        Raises:
            InvalidValueError: bounds out of range, an initial copy count outside of them, or a
                second call.
        """
        check_capacity(min_capacity, max_capacity, limits.MIN_CAPACITY_COMPONENT)
        self._check_environment()
        check_initial("copy_count", self._initial_copy_count(), min_capacity, max_capacity)
        if self._scalable is not None:
            raise InvalidValueError(
                f"{self.node.path}: auto_scale_copy_count was called already; "
                "add policies to the result of the first call"
            )
        self._scalable = TritonScalableCopyCount(
            self,
            "CopyCount",
            inference_component_name=self._metric_component_name(),
            min_capacity=min_capacity,
            max_capacity=max_capacity,
        )
        component = self.node.default_child
        # A name that is written out does not refer to the component.
        if isinstance(component, CfnResource) and not is_token(self._metric_component_name()):
            self._scalable.node.add_dependency(component)
        return self._scalable

    def add_alarms(
        self,
        id: str = "Alarms",
        *,
        actions: Sequence[cloudwatch.IAlarmAction] = (),
        alarm_name_prefix: str | None = None,
        **thresholds: Unpack[ComponentAlarmThresholds],
    ) -> TritonComponentAlarms:
        """Add alarms; the properties are those of :class:`TritonComponentAlarms`.

        Args:
            id: Construct id of the alarms.
            actions: At most 5 actions of each alarm.
            alarm_name_prefix: Prefix of the alarms' names. Alarms that roll updates back need it.
                Default: CloudFormation generates the names.
        """
        return TritonComponentAlarms(
            self,
            id,
            component=self,
            actions=actions,
            alarm_name_prefix=alarm_name_prefix,
            **thresholds,
        )

    def add_dashboard(
        self,
        id: str = "Dashboard",
        *,
        dashboard_name: str | None = None,
        default_interval: Duration | None = None,
    ) -> TritonComponentDashboard:
        """Add a dashboard, after scaling is set up; see :class:`TritonComponentDashboard`.

        Args:
            id: Construct id of the dashboard.
            dashboard_name: Name of the dashboard. Default: generated by CloudFormation.
            default_interval: Time range that is shown at first. Default: 3 hours.
        """
        return TritonComponentDashboard(
            self,
            id,
            components=[self],
            dashboard_name=dashboard_name,
            default_interval=default_interval,
        )

    @property
    def _arns(self) -> list[str]:
        return [self._inference_component_arn, *self._other_arns]

    def _initial_copy_count(self) -> float | None:
        """The number of copies at the first deployment; ``None`` if it is not known."""
        return None

    def _check_environment(self) -> None:
        if is_elsewhere(self, self.stack):
            raise InvalidValueError(
                f"{self.node.path}: Application Auto Scaling scales components of its account and "
                f"Region, {self.stack.account} and {self.stack.region}, got {self.env.account} and "
                f"{self.env.region}; "
                "call auto_scale_copy_count in a stack of that account and Region"
            )

    def _grant_on_both(self, grantee: iam.IGrantable, actions: list[str]) -> iam.Grant:
        return self._grant_on(grantee, actions, [self._endpoint.endpoint_arn, *self._arns])

    def _grant_on(
        self, grantee: iam.IGrantable, actions: Sequence[str], arns: list[str]
    ) -> iam.Grant:
        check_has("grantee", grantee, *GRANTEE)
        grant = iam.Grant.add_to_principal(
            grantee=grantee, actions=list(actions), resource_arns=arns
        )
        annotate(self, grantee_findings(grantee, grant, self.env.account, "grantee"))
        warn_without_route(self, grantee, actions)
        return grant

    def _metric_component_name(self) -> str:
        return self._inference_component_name
