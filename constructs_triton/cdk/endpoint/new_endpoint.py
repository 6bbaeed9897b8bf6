"""The base of the endpoint constructs: role, models, endpoint configuration and endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import jsii
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.endpoint.endpoint_base import EndpointBase
from constructs_triton.cdk.endpoint.endpoint_checks import check_endpoint
from constructs_triton.cdk.endpoint.endpoint_config import (
    ModelContainer,
    bind_variants,
    make_endpoint_config,
    make_model,
)
from constructs_triton.cdk.endpoint.execution_role import (
    make_endpoint_role,
)
from constructs_triton.cdk.endpoint.log_group import log_group_name, make_log_group
from constructs_triton.cdk.endpoint.network import (
    created_group,
    make_connections,
    network_ids,
)
from constructs_triton.cdk.endpoint.properties import FleetOptions, RequestOptions, UpdateOptions
from constructs_triton.cdk.endpoint.resource_arn import endpoint_name_and_arn
from constructs_triton.cdk.endpoint.sagemaker_endpoint import CreatedEndpoint
from constructs_triton.cdk.endpoint.served_models import ServedModels
from constructs_triton.cdk.endpoint.settled_variant import SettledVariant
from constructs_triton.cdk.options.deployment import Deployment, render_deployment
from constructs_triton.cdk.options.host_options import HostOptions, ResourceOptions
from constructs_triton.cdk.options.removal import apply_removal_policy
from constructs_triton.cdk.permissions.alarm_topics import let_alarms_publish
from constructs_triton.cdk.permissions.s3_conditions import decrypt_statements
from constructs_triton.cdk.repository.model_repository import annotate
from constructs_triton.cdk.scaling.endpoint_variant import (
    EndpointVariant,
    VariantOwner,
    retain_instance_counts,
    sequence_warning,
)
from constructs_triton.cdk.scaling.scaling_guard import ScalingGuard
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton.cdk.validation.synthesis_warning import warn_at_synthesis
from constructs_triton.cdk.validation.unique_names import register_name
from constructs_triton_core.facts import limits
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding
from constructs_triton_core.limit_checks import check_range

if TYPE_CHECKING:
    from constructs_triton.cdk.endpoint.imported_endpoint import ImportedTritonEndpoint


@jsii.implements(sagemaker.IEndpoint, iam.IGrantable, ec2.IConnectable)
class NewEndpoint(CreatedEndpoint["ImportedTritonEndpoint"], EndpointBase):
    """A SageMaker endpoint that runs Triton, the base of the three endpoint constructs.

    All checks run before the construct is added to the tree, so an error leaves nothing behind.
    """

    _imported_serves_many: bool | None = None

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        models: ServedModels,
        fleet: FleetOptions,
        host: HostOptions,
        resource: ResourceOptions,
        requests: RequestOptions,
        update: UpdateOptions,
        container_metrics: bool | None,
        log_retention: logs.RetentionDays | None,
    ) -> None:
        name, policy = resource["endpoint_name"], resource["removal_policy"]
        checked = check_endpoint(
            scope,
            id,
            models=models,
            fleet=fleet,
            host=host,
            resource=resource,
            requests=requests,
            update=update,
            container_metrics=container_metrics,
        )
        super().__init__(scope, id, physical_name=name)
        self._update = update
        self._encrypted_data = checked.encrypted_data
        self._serves_many = checked.models.serves_many
        self._contents = checked.models.contents
        self._async_inference = requests["async_inference"]
        self._is_asynchronous = self._async_inference is not None
        self._alarms: list[str] = []
        self._connections = make_connections(self, host)
        self._bound = bind_variants(self, checked.settled)
        self._execution = make_endpoint_role(
            self, self._bound, host, requests, kept_logs=None if log_retention is None else name
        )
        self._role = self._execution.role
        self._make_resources(host, requests, resource, log_retention)
        self._make_variants(checked.settled)
        self._set_deployment()
        self._add_verification(checked.recorded)
        needed = [*self._all_models, self._cfn_endpoint_config, *self._execution.created]
        apply_removal_policy(policy, self._cfn_endpoint, needed=[*needed, *created_group(self)])
        self._annotate([*checked.findings, *self._execution.findings()])
        register_name(self, "endpoint_name", name)

    # Endpoints that exist already.

    @classmethod
    def from_endpoint_attributes(
        cls,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str | None = None,
        endpoint_arn: str | None = None,
        variants: Mapping[str, InstanceType | None] | None = None,
        is_asynchronous: bool | None = None,
    ) -> ImportedTritonEndpoint:
        """Refer to an endpoint by its name, its ARN, or both.

        Args:
            endpoint_name: Name of the endpoint. Without ``endpoint_arn``, it is an endpoint of
                this account and Region.
            endpoint_arn: ARN of the endpoint. It has the name in lower case, so metrics, alarms
                and scaling need ``endpoint_name`` too.
            variants: Instance type of each variant, by name. A type may be ``None``; scaling on GPU
                utilization then needs ``gpu_count``. Default: one variant, ``"AllTraffic"``.
            is_asynchronous: Whether the endpoint was created with asynchronous inference. Default:
                not known.

        Raises:
            InvalidValueError: neither name nor ARN is given, or one of them is invalid.
        """
        given = endpoint_name_and_arn(scope, endpoint_name, endpoint_arn)
        from constructs_triton.cdk.endpoint.imported_endpoint import ImportedTritonEndpoint

        return ImportedTritonEndpoint(
            scope,
            id,
            endpoint_name=given.name,
            endpoint_arn=given.arn,
            has_arn_of_token=given.has_arn_of_token,
            variants=variants,
            serves_many=cls._imported_serves_many,
            is_asynchronous=is_asynchronous,
        )

    # Its parts.

    @property
    def cfn_model(self) -> sagemaker.CfnModel:
        """The ``AWS::SageMaker::Model`` of the only variant.

        Each of several variants has its own.
        """
        return self._only_variant().cfn_model

    @property
    def shadow_variant(self) -> EndpointVariant | None:
        """The shadow variant with its metrics and scaling, or ``None``."""
        return self._shadow_variant

    # Additions.

    def add_to_role_policy(self, statement: iam.PolicyStatement) -> None:
        """Add a statement to the execution role. The models are created after it.

        Args:
            statement: The permissions.
        """
        example = 'iam.PolicyStatement(actions=["s3:GetObject"], resources=["..."])'
        check_type("statement", statement, (iam.PolicyStatement, example))
        result = self._role.add_to_principal_policy(statement)
        if result.policy_dependable is not None:
            for model in self._all_models:
                model.node.add_dependency(result.policy_dependable)

    def add_rollback_alarms(self, *alarms: cloudwatch.IAlarm) -> None:
        """Roll a deployment back when one of at most 10 alarms goes into alarm.

        Without a ``deployment`` property, the deployment is blue/green, all at once. If the
        endpoint has an ``endpoint_name``, the alarms of its stack are created before it. If it has
        none, an alarm on its metrics is created after it and needs an ``alarm_name``, since
        endpoint and alarm would otherwise depend on each other. Unless ``verify_update`` is
        ``False``, a deployment that SageMaker has rolled back then fails.

        Raises:
            InvalidValueError: there are more than 10 alarms, or an alarm needs an ``alarm_name``.
        """
        from constructs_triton.cdk.options.rollback_alarms import rollback_alarm

        check_range("alarms", len(self._alarms) + len(alarms), limits.AUTO_ROLLBACK_ALARMS)
        found = [rollback_alarm(self._cfn_endpoint, alarm) for alarm in alarms]
        self._alarms += [alarm.name for alarm in found]
        self._execution.add(*(alarm.statement() for alarm in found))
        let_alarms_publish(self, alarms)
        deployment = self._update["deployment"] or Deployment.all_at_once()
        self._cfn_endpoint.deployment_config = render_deployment(deployment, self._alarms)
        if self._alarms and self._update["verify_update"] is None:
            self._verify_update()

    def retain_instance_counts(self) -> None:
        """Keep the present instance counts in each deployment, as on an endpoint that scales.

        Call it in a deployment that removes the scaling, so that the endpoint stays as it is.
        Without it, SageMaker may set each variant back to ``initial_instance_count``, which has no
        effect with it.
        """
        retain_instance_counts(self._cfn_endpoint)

    # Creation.

    def _make_resources(
        self,
        host: HostOptions,
        requests: RequestOptions,
        resource: ResourceOptions,
        log_retention: logs.RetentionDays | None,
    ) -> None:
        """Create the models, the endpoint configuration, the endpoint, and its log group."""
        name, key = resource["endpoint_name"], host["encryption_key"]
        self._cfn_models = [self._make_model(each.container, host) for each in self._bound]
        overrides = self._bound[0].overrides
        pool_models = {
            position: self._make_model(each, host) for position, each in overrides.items()
        }
        self._all_models = [*self._cfn_models, *pool_models.values()]
        self._cfn_endpoint_config = make_endpoint_config(
            self,
            self._bound,
            self._cfn_models,
            pool_models,
            requests=requests,
            metrics=resource["metrics_config"],
            key=key,
        )
        adopts, switch = self._update["adopt_existing"], self._update["off_switch"]
        self._cfn_endpoint = self._make_endpoint(name, adopts=adopts, key=key, switch=switch)
        if name is not None:
            make_log_group(
                self,
                log_group_name(name),
                retention=log_retention,
                removal_policy=resource["removal_policy"],
                writer=self._cfn_endpoint,
            )

    def _make_model(self, container: ModelContainer, host: HostOptions) -> sagemaker.CfnModel:
        return make_model(
            container,
            execution_role_arn=self._role.role_arn,
            permissions=self._execution.permissions,
            enable_network_isolation=host["enable_network_isolation"],
            network=network_ids(host, self._connections),
        )

    def _make_variants(self, settled: Sequence[SettledVariant]) -> None:
        self._scaling_guard = self._make_scaling_guard(settled)
        pairs = zip(settled, self._cfn_models, strict=True)
        variants = [self._make_variant(each, model) for each, model in pairs]
        self._shadow_variant = variants.pop() if settled[-1].is_shadow else None
        self._variants = tuple(variants)
        for variant, each in zip(
            variants, settled, strict=False
        ):  # a shadow variant answers no caller
            if models := each.container.models.sequence_models:
                warn_at_synthesis(self, partial(sequence_warning, variant, models))

    def _make_scaling_guard(self, settled: Sequence[SettledVariant]) -> ScalingGuard | None:
        if not self._update["scaling_guard"]:
            return None
        instance_types = {each.variant_name: each.instance_types for each in settled}
        adopts, endpoint = bool(self._update["adopt_existing"]), self._cfn_endpoint
        return ScalingGuard(
            self,
            "ScalingGuard",
            endpoint=endpoint,
            instance_types=instance_types,
            replaces_policies=adopts,
        )

    def _make_variant(self, settled: SettledVariant, model: sagemaker.CfnModel) -> EndpointVariant:
        return EndpointVariant(
            # A reference to the resource: scaling is created after the endpoint and deleted before
            # it.
            VariantOwner(
                self,
                self._cfn_endpoint.attr_endpoint_name,
                self._cfn_endpoint,
                bool(self._is_asynchronous),
                self._scaling_guard,
                self._metric_endpoint_name(),
                serves_many=settled.container.models.serves_many,
            ),
            variant_name=settled.variant_name,
            instance_types=settled.instance_types,
            initial_instance_count=settled.initial_instance_count,
            cfn_model=model,
            construct_name=settled.construct_name,
            container_metrics=settled.container_metrics,
        )

    def _set_deployment(self) -> None:
        deployment = self._update["deployment"]
        if deployment is not None:
            self._cfn_endpoint.deployment_config = render_deployment(deployment, [])
            if deployment.alarms:
                self.add_rollback_alarms(*deployment.alarms)

    def _add_verification(self, recorded: str | None) -> None:
        if self._update["verify_update"]:
            self._verify_update()
        contents = self._contents
        if recorded is None or contents is None:
            return
        from constructs_triton.cdk.endpoint.deployment_verification import ResponseVerification

        ResponseVerification(
            self,
            "Verification",
            requests=recorded,
            endpoint=self._cfn_endpoint,
            endpoint_config=self._cfn_endpoint_config,
            variants=[each.variant_name for each in self._variants],
            target_models=contents.prefix.target_models if self._serves_many else {},
            decrypt=decrypt_statements("DecryptRequests", *contents.asset_keys),
        )

    def _verify_update(self) -> None:
        from constructs_triton.cdk.endpoint.deployment_verification import verify_update

        verify_update(self, self._cfn_endpoint, self._cfn_endpoint_config)

    def _annotate(self, findings: Sequence[Finding]) -> None:
        scopes: dict[Finding, list[Construct]] = {}
        for each in self._bound:
            container = each.container
            for finding in (*container.findings, *container.sizing.findings):
                scopes.setdefault(finding, []).append(container.scope)
        for finding, found_in in scopes.items():
            # A finding of several variants is annotated once, on the endpoint.
            annotate(found_in[0] if len(found_in) == 1 else self, [finding])
        annotate(self, findings)
