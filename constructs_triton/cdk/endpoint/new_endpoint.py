"""The base of the endpoint constructs: role, models, endpoint configuration and endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jsii
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.interfaces import aws_sagemaker as sagemaker_references
from constructs import Construct

from constructs_triton.cdk.endpoint.endpoint_base import EndpointBase
from constructs_triton.cdk.endpoint.endpoint_config import BoundVariant, make_endpoint_config, make_model
from constructs_triton.cdk.endpoint.execution_role import (
    ExecutionRole,
    host_statements,
    observability_statements,
)
from constructs_triton.cdk.endpoint.imported_endpoint import ImportedTritonEndpoint, name_and_arn
from constructs_triton.cdk.endpoint.log_group import make_log_group
from constructs_triton.cdk.endpoint.mode_limits import check_deployment, check_mode
from constructs_triton.cdk.endpoint.network import (
    check_network,
    make_connections,
    network_ids,
    require_connections,
)
from constructs_triton.cdk.endpoint.properties import EndpointOptions
from constructs_triton.cdk.endpoint.resolved_variant import ResolvedVariant, resolve_variants
from constructs_triton.cdk.endpoint.served_models import ServedModels
from constructs_triton.cdk.endpoint.sizing import Sizing
from constructs_triton.cdk.endpoint.update_check import verify_update
from constructs_triton.cdk.endpoint.verification_check import verify_responses
from constructs_triton.cdk.options.deployment import Deployment
from constructs_triton.cdk.options.removal import apply_removal_policy
from constructs_triton.cdk.options.rollback_alarms import rollback_alarm
from constructs_triton.cdk.repository.loaded_models import ModelLocation
from constructs_triton.cdk.repository.model_repository import annotate
from constructs_triton.cdk.scaling.endpoint_variant import EndpointVariant, VariantOwner
from constructs_triton.cdk.scaling.scaling_guard import ScalingGuard
from constructs_triton.cdk.validation.limit_checks import check_range
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts import limits
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.findings import Finding

__all__ = ["NewEndpoint"]


@jsii.implements(sagemaker.IEndpoint, iam.IGrantable, ec2.IConnectable)
class NewEndpoint(EndpointBase):
    """A SageMaker endpoint that runs Triton, the base of the three endpoint constructs.

    All checks run before the construct is added to the tree, so an error leaves nothing behind.
    """

    _imported_serves_many: bool | None = None

    def __init__(self, scope: Construct, id: str, *, models: ServedModels, options: EndpointOptions) -> None:
        resolved = resolve_variants(scope, models, options)
        findings = [*check_mode(options, resolved), *check_deployment(options, resolved)]
        findings += check_network(options)
        super().__init__(scope, id, physical_name=options["endpoint_name"])
        self._options = options
        self._serves_many = models.serves_many
        self._repository = models.repository
        self._async_inference = options["async_inference"]
        self._is_asynchronous = options["async_inference"] is not None
        self._alarms: list[str] = []
        self._connections = make_connections(self, options)
        self._bound = self._bind(resolved)
        self._execution = self._make_role()
        self._cfn_models = [self._make_model(each) for each in self._bound]
        self._cfn_endpoint_config = make_endpoint_config(self, options, self._bound, self._cfn_models)
        self._cfn_endpoint = self._make_endpoint()
        make_log_group(self, options, self._cfn_endpoint)
        self._scaling_guard = self._make_scaling_guard(resolved)
        pairs = zip(resolved, self._cfn_models, strict=True)
        variants = [self._make_variant(each, model) for each, model in pairs]
        self._shadow_variant = variants.pop() if options["shadow_variant"] is not None else None
        self._variants = tuple(variants)
        self._set_deployment()
        if options["verify_update"]:
            verify_update(self, self._cfn_endpoint, self._cfn_endpoint_config)
        verify_responses(self, options["verification"], models.repository)
        needed = [*self._cfn_models, self._cfn_endpoint_config, *self._execution.resources]
        apply_removal_policy(options["removal_policy"], self._cfn_endpoint, needed=needed)
        self._annotate(findings)

    # Endpoints that exist already.

    @classmethod
    def from_endpoint_name(cls, scope: Construct, id: str, endpoint_name: str) -> ImportedTritonEndpoint:
        """Refer to an endpoint of this account and Region with one variant, ``"AllTraffic"``.

        Args:
            endpoint_name: Name of the endpoint.
        """
        return cls.from_endpoint_attributes(scope, id, endpoint_name=endpoint_name)

    @classmethod
    def from_endpoint_arn(cls, scope: Construct, id: str, endpoint_arn: str) -> ImportedTritonEndpoint:
        """Refer to an endpoint by its ARN, also in another account or Region.

        Args:
            endpoint_arn: ARN of the endpoint.
        """
        return cls.from_endpoint_attributes(scope, id, endpoint_arn=endpoint_arn)

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
        """Refer to an endpoint by its name or its ARN.

        Args:
            endpoint_name: Name of an endpoint of this account and Region; instead of ``endpoint_arn``.
            endpoint_arn: ARN of the endpoint; instead of ``endpoint_name``.
            variants: Instance type of each variant, by name. A type may be ``None``; scaling on GPU
                utilization then needs ``gpu_count``. Default: one variant, ``"AllTraffic"``.
            is_asynchronous: Whether the endpoint was created with asynchronous inference. Default: not known.

        Raises:
            InvalidValueError: both or neither of name and ARN are given, or one of them is invalid.
        """
        name, arn = name_and_arn(scope, endpoint_name, endpoint_arn)
        return ImportedTritonEndpoint(
            scope,
            id,
            endpoint_name=name,
            endpoint_arn=arn,
            variants=variants,
            serves_many=cls._imported_serves_many,
            is_asynchronous=is_asynchronous,
        )

    # Its parts.

    @property
    def endpoint_ref(self) -> sagemaker_references.EndpointReference:
        """The reference that other constructs of the CDK use."""
        return self._cfn_endpoint.endpoint_ref

    @property
    def cfn_endpoint(self) -> sagemaker.CfnEndpoint:
        """The ``AWS::SageMaker::Endpoint``, also ``node.default_child``."""
        return self._cfn_endpoint

    @property
    def cfn_endpoint_config(self) -> sagemaker.CfnEndpointConfig:
        """The ``AWS::SageMaker::EndpointConfig``. It has no name, since changes replace it."""
        return self._cfn_endpoint_config

    @property
    def cfn_model(self) -> sagemaker.CfnModel:
        """The ``AWS::SageMaker::Model`` of the only variant. Each of several variants has its own."""
        return self._only_variant().cfn_model

    @property
    def shadow_variant(self) -> EndpointVariant | None:
        """The shadow variant with its metrics and scaling, or ``None``."""
        return self._shadow_variant

    @property
    def role(self) -> iam.IRole:
        """The execution role of the containers."""
        return self._execution.role

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The principal of grants on other resources: the execution role."""
        return self._execution.role.grant_principal

    @property
    def connections(self) -> ec2.Connections:
        """The network connections.

        Raises:
            InvalidValueError: the endpoint has no ``vpc``.
        """
        return require_connections(self, self._connections)

    # Additions.

    def add_to_role_policy(self, statement: iam.PolicyStatement) -> None:
        """Add a statement to the execution role. The models are created after it.

        Args:
            statement: The permissions.
        """
        result = self._execution.role.add_to_principal_policy(statement)
        if result.policy_dependable is not None:
            for model in self._cfn_models:
                model.node.add_dependency(result.policy_dependable)

    def add_rollback_alarms(self, *alarms: cloudwatch.IAlarm) -> None:
        """Roll a deployment back when one of at most 10 alarms goes into alarm.

        Without a ``deployment`` property, the deployment is blue/green, all at once. If the endpoint has an
        ``endpoint_name``, the alarms of its stack are created before it. If it has none, an alarm on its
        metrics is created after it and needs an ``alarm_name``, since endpoint and alarm would otherwise
        depend on each other. Unless ``verify_update`` is ``False``, a deployment that SageMaker has rolled
        back then fails.

        Raises:
            InvalidValueError: there are more than 10 alarms, or an alarm needs an ``alarm_name``.
        """
        check_range("alarms", len(self._alarms) + len(alarms), limits.AUTO_ROLLBACK_ALARMS)
        found = [rollback_alarm(self._cfn_endpoint, alarm) for alarm in alarms]
        self._alarms += [alarm.name for alarm in found]
        self._execution.add(*(alarm.statement() for alarm in found))
        deployment = self._options["deployment"] or Deployment.all_at_once()
        self._cfn_endpoint.deployment_config = deployment.render(self._alarms)
        if self._alarms and self._options["verify_update"] is None:
            verify_update(self, self._cfn_endpoint, self._cfn_endpoint_config)

    # Creation.

    def _bind(self, resolved: Sequence[ResolvedVariant]) -> list[BoundVariant]:
        bound, locations = [], dict[ServedModels, ModelLocation]()
        for each in resolved:
            scope = self if each.is_only else Construct(self, f"{each.construct_name}Variant")
            if each.models not in locations:
                locations[each.models] = each.models.bind(self)
            location = locations[each.models]
            image = each.settings.image.bind(scope, each.instance_type)
            bound.append(BoundVariant(each, scope, image, location, Sizing.of(each.options, location)))
        return bound

    def _statements(self) -> list[iam.PolicyStatement]:
        options = self._options
        statements = [
            *(statement for each in self._bound for statement in each.location.read_statements),
            *(statement for each in self._bound for statement in each.image.pull_statements()),
            *observability_statements(self),
            *host_statements(options),
        ]
        dumps = [each.resolved.options["core_dump"] for each in self._bound]
        for feature in (options["data_capture"], options["async_inference"], *dumps):
            if feature is not None:
                statements += feature.statements()
        return statements

    def _make_model(self, variant: BoundVariant) -> sagemaker.CfnModel:
        ids = network_ids(self._options, self._connections)
        return make_model(
            variant,
            execution_role_arn=self._execution.role.role_arn,
            permissions=self._execution.permissions,
            enable_network_isolation=self._options["enable_network_isolation"],
            vpc_config=None if ids is None else ids.of_model(),
        )

    def _make_endpoint(self) -> sagemaker.CfnEndpoint:
        endpoint = sagemaker.CfnEndpoint(
            self,
            "Resource",
            endpoint_name=self._options["endpoint_name"],
            endpoint_config_name=self._cfn_endpoint_config.attr_endpoint_config_name,
        )
        self._endpoint_name = self._get_resource_name_attribute(endpoint.attr_endpoint_name)
        self._endpoint_arn = self._get_resource_arn_attribute(
            endpoint.attr_endpoint_arn,
            service="sagemaker",
            resource="endpoint",
            resource_name=self._physical_name,
        )
        return endpoint

    def _make_scaling_guard(self, resolved: Sequence[ResolvedVariant]) -> ScalingGuard | None:
        if not self._options["scaling_guard"]:
            return None
        instance_types = {each.variant_name: each.instance_type for each in resolved}
        return ScalingGuard(self, "ScalingGuard", endpoint=self._cfn_endpoint, instance_types=instance_types)

    def _make_variant(self, resolved: ResolvedVariant, model: sagemaker.CfnModel) -> EndpointVariant:
        return EndpointVariant(
            # A reference to the resource: scaling is created after the endpoint and deleted before it.
            VariantOwner(
                self,
                self._cfn_endpoint.attr_endpoint_name,
                self._cfn_endpoint,
                bool(self._is_asynchronous),
                self._scaling_guard,
                self._metric_endpoint_name(),
            ),
            variant_name=resolved.variant_name,
            instance_type=resolved.instance_type,
            initial_instance_count=resolved.initial_instance_count,
            cfn_model=model,
            construct_name=resolved.construct_name,
        )

    def _make_role(self) -> ExecutionRole:
        try:
            return ExecutionRole.make(self, self._statements(), self._options["role"])
        except InvalidValueError:
            # The size of the permissions is known only now; the id can be used again.
            assert self.node.scope is not None
            self.node.scope.node.try_remove_child(self.node.id)
            raise

    def _set_deployment(self) -> None:
        deployment = self._options["deployment"]
        if deployment is not None:
            self._cfn_endpoint.deployment_config = deployment.render([])
            if deployment.alarms:
                self.add_rollback_alarms(*deployment.alarms)

    def _annotate(self, findings: Sequence[Finding]) -> None:
        scopes: dict[Finding, list[Construct]] = {}
        for each in self._bound:
            for finding in (*each.resolved.findings, *each.sizing.findings):
                scopes.setdefault(finding, []).append(each.scope)
        for finding, found_in in scopes.items():
            # A finding of several variants is annotated once, on the endpoint.
            annotate(found_in[0] if len(found_in) == 1 else self, [finding])
        annotate(self, findings)
