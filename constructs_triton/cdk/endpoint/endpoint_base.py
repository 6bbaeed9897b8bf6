"""The methods of every endpoint with models, new or imported: grants, metrics,
scaling and outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Unpack

import jsii
from aws_cdk import CfnOutput, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker

from constructs_triton.cdk.endpoint.log_group import log_group_name
from constructs_triton.cdk.endpoint.operating import warming_statements
from constructs_triton.cdk.endpoint.sagemaker_endpoint import SageMakerEndpoint
from constructs_triton.cdk.metrics.container_metrics import ContainerMetrics
from constructs_triton.cdk.options.async_inference import (
    AsyncInferenceConfig,
    async_caller_statements,
)
from constructs_triton.cdk.permissions.statements import Statement
from constructs_triton.cdk.repository.contents import RepositoryContents
from constructs_triton.cdk.scaling.endpoint_variant import EndpointVariant
from constructs_triton.cdk.scaling.targets import CapacityPlan
from constructs_triton.cdk.validation.arguments import check_string
from constructs_triton.cdk.validation.property_types import check_names, shown
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.limit_checks import check_name
from constructs_triton_core.tokens import is_lookup_dummy, is_token

if TYPE_CHECKING:
    from constructs_triton.cdk.monitoring.alarms import AlarmThresholds, TritonAlarms
    from constructs_triton.cdk.monitoring.dashboard import TritonDashboard
    from constructs_triton.cdk.scaling.scalable_instance_count import TritonScalableInstanceCount


@jsii.implements(sagemaker.IEndpoint)
class EndpointBase(SageMakerEndpoint):
    """An endpoint with models and variants, which the subclasses set.

    ``_serves_many`` is whether each request names its model, or ``None`` if that is not known.
    ``_contents`` are the models, or ``None`` for an imported endpoint.
    """

    _variants: tuple[EndpointVariant, ...]
    _serves_many: bool | None
    _async_inference: AsyncInferenceConfig | None
    _is_asynchronous: bool | None
    _contents: RepositoryContents | None

    @property
    def log_group_name(self) -> str:
        """The name of the CloudWatch log group that the containers write to."""
        return log_group_name(self.endpoint_name)

    @property
    def variants(self) -> tuple[EndpointVariant, ...]:
        """The production variants."""
        return self._variants

    @property
    def is_asynchronous(self) -> bool:
        """Whether requests are queued. For an imported endpoint: the value that was passed."""
        return bool(self._is_asynchronous)

    @property
    def is_multi_model(self) -> bool:
        """Whether each request names its model.

        ``False`` for an imported endpoint of unknown type.
        """
        return bool(self._serves_many)

    @property
    def container_metrics(self) -> ContainerMetrics:
        """Triton's own metrics of the only variant, with ``container_metrics=True``.

        Raises:
            InvalidValueError: the endpoint does not publish them, is imported, or has several
                variants.
        """
        return self._only_variant().container_metrics

    def variant(self, variant_name: str) -> EndpointVariant:
        """Return a production variant by its name.

        Args:
            variant_name: Name of the variant.

        Raises:
            InvalidValueError: there is no such variant.
        """
        for each in self._variants:
            if each.variant_name == variant_name:
                return each
        if is_lookup_dummy(variant_name):
            return self._variants[0]  # the next synthesis has the name
        names = ", ".join(shown(each.variant_name) for each in self._variants)
        raise InvalidValueError(
            f"variant_name: {self.node.path} has no such variant, got {shown(variant_name)}; "
            f"use one of {names}"
        )

    # Permissions.

    def grant_invoke(
        self, grantee: iam.IGrantable, *, target_models: Sequence[str] | None = None
    ) -> iam.Grant:
        """Allow a principal to call the endpoint (``sagemaker:InvokeEndpoint``).

        A grant for a model allows its name with any digest, so it stays valid when the content of
        the model changes.

        Args:
            grantee: Who gets the permission.
            target_models: Models of a multi-model endpoint that may be called. Each is the name of
                a model in the repository, a ``TargetModel`` such as ``"resnet.tar.gz"``, or a
                pattern such as ``"tenant-a/*"``. Default: all.

        Raises:
            InvalidValueError: the endpoint is asynchronous, serves one model, or no model has such
                a name.
        """
        self._refuse_asynchronous("grant_invoke")
        return self._grant(
            grantee, ["sagemaker:InvokeEndpoint"], self._model_condition(target_models)
        )

    def grant_invoke_async(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to queue requests and to read the responses from S3.

        The buckets of an imported endpoint are not known, so only ``sagemaker:InvokeEndpointAsync``
        is granted.

        Args:
            grantee: Who gets the permission.

        Raises:
            InvalidValueError: the endpoint has no ``async_inference``.
        """
        if self._is_asynchronous is False:
            raise InvalidValueError(
                f"{self.node.path}: grant_invoke_async needs an asynchronous endpoint; "
                "set async_inference, or use grant_invoke"
            )
        grant = self._grant(grantee, ["sagemaker:InvokeEndpointAsync"])
        if self._async_inference is not None:
            for statement in async_caller_statements(self._async_inference):
                grantee.grant_principal.add_to_principal_policy(statement.to_cdk())
        return grant

    def grant_invoke_with_response_stream(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to call the endpoint and receive the response as a stream.

        Args:
            grantee: Who gets the permission.

        Raises:
            InvalidValueError: the endpoint is asynchronous, or is a multi-model endpoint. The
                streaming call has no ``TargetModel`` (botocore sagemaker-runtime service model).
        """
        self._refuse_asynchronous("grant_invoke_with_response_stream")
        if self._serves_many:
            raise InvalidValueError(
                f"{self.node.path}: multi-model endpoints do not support response streaming; "
                "serve the model with TritonEndpoint"
            )
        actions = ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
        return self._grant(grantee, actions)

    def _refuse_asynchronous(self, method: str) -> None:
        # SageMaker developer guide, "Asynchronous inference": InvokeEndpoint is refused.
        if self._is_asynchronous:
            raise InvalidValueError(
                f"{self.node.path}: {method} needs a real-time endpoint, and this one queues its "
                "requests; use grant_invoke_async"
            )

    def _operating_statements_of_type(self) -> Iterable[Statement]:
        return warming_statements(self._contents, self._endpoint_arn) if self._serves_many else ()

    def _model_condition(
        self, target_models: Sequence[str] | None
    ) -> dict[str, dict[str, object]] | None:
        """Return the IAM condition that limits a grant to some models; ``None`` allows all of them.

        Raises:
            InvalidValueError: it is no multi-model endpoint, or ``target_models`` is no list.
        """
        if target_models is None:
            return None
        if self._serves_many is False:
            raise InvalidValueError(
                "target_models: only multi-model endpoints support it, "
                f"got {shown(target_models)}; remove it"
            )
        if isinstance(target_models, str) and not is_token(target_models):
            raise InvalidValueError(
                f"target_models: must be a list of models, got {shown(target_models)}; "
                f'write ["{target_models}"]'
            )
        check_names("target_models", target_models)
        if not target_models:
            raise InvalidValueError(
                "target_models: must be a list of models, got []; remove it to allow all of them"
            )
        for name in target_models:
            check_name("target_models", name, limits.TARGET_MODEL)
        # AWS documentation: invoke a multi-model endpoint, security.
        contents = self._contents
        allowed = (
            list(target_models)
            if contents is None
            else contents.prefix.grant_patterns(target_models)
        )
        return {"StringLike": {"sagemaker:TargetModel": [str(each) for each in allowed]}}

    # Scaling, metrics, outputs.

    def auto_scale_instance_count(
        self, *, min_capacity: float, max_capacity: float
    ) -> TritonScalableInstanceCount:
        """Let Application Auto Scaling choose the instance count of the only variant.

        SageMaker refuses a later deployment that changes the instance type of a scaled variant or
        removes it, unless the endpoint has ``scaling_guard=True``.

        Args:
            min_capacity: Minimum number of instances; 0 only on an asynchronous endpoint.
            max_capacity: Maximum number of instances.

        Raises:
            InvalidValueError: the endpoint has several variants, or a capacity is out of range.
        """
        return self._only_variant().auto_scale_instance_count(
            min_capacity=min_capacity, max_capacity=max_capacity
        )

    def apply_plan(self, plan: CapacityPlan) -> TritonScalableInstanceCount:
        """Scale the endpoint's only variant by a plan; see :meth:`EndpointVariant.apply_plan`.

        Args:
            plan: A ``constructs_triton_tools.planning.Plan``, or an object with its attributes.
        """
        return self._only_variant().apply_plan(plan)

    def add_alarms(
        self,
        id: str = "Alarms",
        *,
        actions: Sequence[cloudwatch.IAlarmAction] = (),
        alarm_name_prefix: str | None = None,
        **thresholds: Unpack[AlarmThresholds],
    ) -> TritonAlarms:
        """Add alarms, after scaling is set up; the properties are those of :class:`TritonAlarms`.

        Args:
            id: Construct id of the alarms.
            actions: At most 5 actions of each alarm.
            alarm_name_prefix: Prefix of the alarms' names. Default: CloudFormation generates the
                names.
        """
        from constructs_triton.cdk.monitoring.alarms import TritonAlarms

        return TritonAlarms(
            self,
            id,
            endpoint=self,
            actions=actions,
            alarm_name_prefix=alarm_name_prefix,
            **thresholds,
        )

    def add_dashboard(
        self,
        id: str = "Dashboard",
        *,
        dashboard_name: str | None = None,
        model_latency_objective: Duration | None = None,
        default_interval: Duration | None = None,
    ) -> TritonDashboard:
        """Add a dashboard, after scaling is set up; see :class:`TritonDashboard`.

        Args:
            id: Construct id of the dashboard.
            dashboard_name: Name of the dashboard. Default: generated by CloudFormation.
            model_latency_objective: Latency that is drawn as a line into the latency graphs.
                Default: no line.
            default_interval: Time range that is shown at first. Default: 3 hours.
        """
        from constructs_triton.cdk.monitoring.dashboard import TritonDashboard

        return TritonDashboard(
            self,
            id,
            endpoints=[self],
            dashboard_name=dashboard_name,
            model_latency_objective=model_latency_objective,
            default_interval=default_interval,
        )

    def export_outputs(self, *, export_name_prefix: str | None = None) -> None:
        """Add the endpoint's name and ARN to the outputs of the stack.

        Args:
            export_name_prefix: Other stacks can import the outputs as ``<prefix>-endpoint-name``
                and ``<prefix>-endpoint-arn``. Default: they are not exported.
        """
        check_string("export_name_prefix", export_name_prefix)
        if is_lookup_dummy(export_name_prefix):
            export_name_prefix = None  # the CDK refuses its "/"; the next synthesis has the name
        values = {"name": self.endpoint_name, "arn": self._endpoint_arn}
        for what, value in values.items():
            export = None if export_name_prefix is None else f"{export_name_prefix}-endpoint-{what}"
            CfnOutput(self, f"Endpoint{what.capitalize()}", value=value, export_name=export)

    def _metric_variant_name(self) -> str:
        return self._only_variant().variant_name

    def _only_variant(self) -> EndpointVariant:
        if len(self._variants) != 1:
            name = self._variants[0].variant_name
            raise InvalidValueError(
                f"{self.node.path}: has {len(self._variants)} variants; "
                f'call this method on one of them, for example endpoint.variant("{name}")'
            )
        return self._variants[0]
