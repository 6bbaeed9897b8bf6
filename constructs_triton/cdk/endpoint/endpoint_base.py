"""What can be done with any endpoint, made here or imported: grants, metrics, scaling, outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Unpack

import jsii
from aws_cdk import CfnOutput, Duration, Resource
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.interfaces import aws_sagemaker as sagemaker_references

from constructs_triton.cdk.metrics.metrics import VariantMetrics
from constructs_triton.cdk.monitoring.alarms import AlarmThresholds, TritonAlarms
from constructs_triton.cdk.monitoring.dashboard import TritonDashboard
from constructs_triton.cdk.options.async_inference import AsyncInferenceConfig
from constructs_triton.cdk.repository.model_repository import TritonModelRepository
from constructs_triton.cdk.scaling.endpoint_variant import EndpointVariant
from constructs_triton.cdk.scaling.scalable_instance_count import TritonScalableInstanceCount
from constructs_triton.cdk.scaling.targets import PlannedCapacity
from constructs_triton.cdk.validation.limit_checks import check_name
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts import limits
from constructs_triton.spelling import did_you_mean

__all__ = ["EndpointBase"]

_MATCHES_ARCHIVES = re.compile(r"[*?]|\.tar\.gz$")


@jsii.implements(sagemaker.IEndpoint)
class EndpointBase(VariantMetrics, Resource):
    """An endpoint by its name, its ARN and its variants; the subclasses set them.

    ``_serves_many`` is whether each request names its model, ``None`` where that is not known;
    ``_repository`` is where those models are named, ``None`` for an import.
    """

    _endpoint_name: str
    _endpoint_arn: str
    _variants: tuple[EndpointVariant, ...]
    _serves_many: bool | None
    _async_inference: AsyncInferenceConfig | None
    _is_asynchronous: bool | None
    _repository: TritonModelRepository | None

    @property
    def endpoint_name(self) -> str:
        """The endpoint's name, as it is known at deployment."""
        return self._endpoint_name

    @property
    def endpoint_arn(self) -> str:
        """The endpoint's ARN."""
        return self._endpoint_arn

    @property
    def endpoint_ref(self) -> sagemaker_references.EndpointReference:
        """How other constructs of the CDK refer to the endpoint."""
        return sagemaker_references.EndpointReference(endpoint_arn=self._endpoint_arn)

    @property
    def variants(self) -> tuple[EndpointVariant, ...]:
        """The production variants."""
        return self._variants

    @property
    def is_asynchronous(self) -> bool:
        """Whether requests are queued; of an imported endpoint as far as that was said."""
        return bool(self._is_asynchronous)

    @property
    def is_multi_model(self) -> bool:
        """Whether each request names its model; of an imported endpoint as far as that was said."""
        return bool(self._serves_many)

    def variant(self, variant_name: str) -> EndpointVariant:
        """The production variant of that name; raises ``InvalidValueError`` where there is none."""
        for each in self._variants:
            if each.variant_name == variant_name:
                return each
        names = ", ".join(f'"{each.variant_name}"' for each in self._variants)
        raise InvalidValueError(f'{self.node.path}: has no variant "{variant_name}"; use one of {names}')

    # Who may call it.

    def grant(self, grantee: iam.IGrantable, *actions: str) -> iam.Grant:
        """Allow a principal any actions on this endpoint, for example ``"sagemaker:DescribeEndpoint"``."""
        return self._grant(grantee, list(actions), {})

    def grant_invoke(
        self, grantee: iam.IGrantable, *, target_models: Sequence[str] | None = None
    ) -> iam.Grant:
        """Allow a principal to call the endpoint (``sagemaker:InvokeEndpoint``).

        ``target_models`` restricts a multi-model endpoint to some of its models: each is the name of a model
        in the repository, a ``TargetModel`` such as ``"resnet.tar.gz"``, or a pattern such as
        ``"tenant-a/*"``. Raises ``InvalidValueError`` for them on an endpoint that serves one model.
        """
        return self._grant(grantee, ["sagemaker:InvokeEndpoint"], self._model_condition(target_models))

    def grant_invoke_async(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to queue requests, and to fetch the answers from S3.

        On an imported endpoint the buckets are not known, and only ``sagemaker:InvokeEndpointAsync`` is
        granted. Raises ``InvalidValueError`` for an endpoint without ``async_inference``.
        """
        if self._is_asynchronous is False:
            raise InvalidValueError(
                f"{self.node.path}: answers at once, got no async_inference; "
                "give the endpoint async_inference, or use grant_invoke"
            )
        grant = self._grant(grantee, ["sagemaker:InvokeEndpointAsync"], {})
        if self._async_inference is not None:
            for statement in self._async_inference.caller_statements():
                grantee.grant_principal.add_to_principal_policy(statement)
        return grant

    def grant_invoke_with_response_stream(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to call the endpoint and read the answer as it is generated.

        Raises ``InvalidValueError`` for a multi-model endpoint: the streaming call has no ``TargetModel``
        (botocore sagemaker-runtime service model).
        """
        if self._serves_many:
            raise InvalidValueError(
                f"{self.node.path}: cannot stream, since the streaming call names no TargetModel, "
                "got a multi-model endpoint; serve the model with TritonEndpoint"
            )
        actions = ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"]
        return self._grant(grantee, actions, {})

    def _grant(
        self, grantee: iam.IGrantable, actions: list[str], conditions: Mapping[str, Mapping[str, object]]
    ) -> iam.Grant:
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=actions,
            resource_arns=[self._endpoint_arn],
            conditions=conditions or None,
        )

    def _model_condition(self, target_models: Sequence[str] | None) -> dict[str, dict[str, object]]:
        if target_models is None:
            return {}
        if isinstance(target_models, str) or not target_models:
            raise InvalidValueError(
                f"target_models: must be a list of at least one model, got {target_models!r}; "
                "leave it out to allow all of them"
            )
        if self._serves_many is False:
            raise InvalidValueError(
                f"target_models: only a multi-model endpoint is asked for one of several, got "
                f'"{target_models[0]}"; leave it out'
            )
        for name in target_models:
            check_name("target_models", name, limits.TARGET_MODEL)
        # AWS documentation: invoke a multi-model endpoint, security.
        known = {} if self._repository is None else self._repository.target_models
        for name in target_models:
            _refuse_unknown_model(name, known)
        return {
            "StringLike": {"sagemaker:TargetModel": [str(known.get(name, name)) for name in target_models]}
        }

    # Scaling, metrics, outputs.

    def auto_scale_instance_count(
        self, *, min_capacity: float, max_capacity: float
    ) -> TritonScalableInstanceCount:
        """Let Application Auto Scaling choose the instance count of the endpoint's only variant."""
        return self._only_variant().auto_scale_instance_count(
            min_capacity=min_capacity, max_capacity=max_capacity
        )

    def apply_plan(self, plan: PlannedCapacity) -> TritonScalableInstanceCount:
        """Scale the endpoint's only variant by a plan; see :meth:`EndpointVariant.apply_plan`."""
        return self._only_variant().apply_plan(plan)

    def add_alarms(
        self,
        id: str = "Alarms",
        *,
        actions: Sequence[cloudwatch.IAlarmAction] = (),
        alarm_name_prefix: str | None = None,
        **thresholds: Unpack[AlarmThresholds],
    ) -> TritonAlarms:
        """Alarms on the endpoint, once its scaling is set up; properties as of :class:`TritonAlarms`."""
        return TritonAlarms(
            self, id, endpoint=self, actions=actions, alarm_name_prefix=alarm_name_prefix, **thresholds
        )

    def add_dashboard(
        self,
        id: str = "Dashboard",
        *,
        dashboard_name: str | None = None,
        model_latency_objective: Duration | None = None,
        default_interval: Duration | None = None,
    ) -> TritonDashboard:
        """A dashboard of the endpoint, once its scaling is set up; see :class:`TritonDashboard`."""
        return TritonDashboard(
            self,
            id,
            endpoints=[self],
            dashboard_name=dashboard_name,
            model_latency_objective=model_latency_objective,
            default_interval=default_interval,
        )

    def export_outputs(self, *, export_name_prefix: str | None = None) -> None:
        """Make outputs of the stack: the endpoint's name and ARN.

        With ``export_name_prefix`` other stacks can import them as ``<prefix>-endpoint-name`` and
        ``<prefix>-endpoint-arn``.
        """
        values = {"name": self._endpoint_name, "arn": self._endpoint_arn}
        for what, value in values.items():
            export = None if export_name_prefix is None else f"{export_name_prefix}-endpoint-{what}"
            CfnOutput(self, f"Endpoint{what.capitalize()}", value=value, export_name=export)

    def _metric_endpoint_name(self) -> str:
        return self._endpoint_name

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


def _refuse_unknown_model(name: str, known: Mapping[str, str]) -> None:
    """A grant for what can be no archive's name would be accepted, and allow nothing."""
    if known and name not in known and is_concrete(name) and not _MATCHES_ARCHIVES.search(name):
        hint = did_you_mean(name, known, 'write "<name>.tar.gz", or a pattern with "*"')
        raise InvalidValueError(
            f'target_models: neither a model of the repository nor a TargetModel, got "{name}"; {hint}'
        )
