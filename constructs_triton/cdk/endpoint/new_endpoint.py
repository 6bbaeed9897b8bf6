"""The base of the endpoint constructs: role, models, endpoint configuration and endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jsii
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.endpoint.created_variants import make_scaling_guard, make_variants
from constructs_triton.cdk.endpoint.endpoint_base import EndpointBase
from constructs_triton.cdk.endpoint.endpoint_checks import CheckedEndpoint, check_endpoint
from constructs_triton.cdk.endpoint.endpoint_config import (
    ModelHost,
    bind_variants,
    make_endpoint_config,
    make_models,
)
from constructs_triton.cdk.endpoint.endpoint_updates import EndpointUpdates
from constructs_triton.cdk.endpoint.execution_role import make_endpoint_role
from constructs_triton.cdk.endpoint.log_group import ContainerLogs
from constructs_triton.cdk.endpoint.network import ContainerNetwork
from constructs_triton.cdk.endpoint.properties import FleetOptions, RequestOptions, UpdateOptions
from constructs_triton.cdk.endpoint.resource_arn import endpoint_name_and_arn
from constructs_triton.cdk.endpoint.sagemaker_endpoint import CreatedEndpoint
from constructs_triton.cdk.endpoint.served_models import ServedModels
from constructs_triton.cdk.options.host_options import HostOptions, ResourceOptions
from constructs_triton.cdk.options.published_metrics import PublishedMetrics
from constructs_triton.cdk.options.removal import apply_removal_policy
from constructs_triton.cdk.permissions.s3_conditions import decrypt_statements
from constructs_triton.cdk.repository.contents import RepositoryContents
from constructs_triton.cdk.repository.model_repository import annotate
from constructs_triton.cdk.scaling.endpoint_variant import (
    EndpointVariant,
    VariantOwner,
    retain_instance_counts,
)
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton.cdk.validation.unique_names import register_name
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding

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
        metrics: PublishedMetrics,
        log_retention: logs.RetentionDays | None,
    ) -> None:
        name = resource["endpoint_name"]
        checked = check_endpoint(
            scope,
            id,
            models=models,
            fleet=fleet,
            host=host,
            resource=resource,
            requests=requests,
            update=update,
            metrics=metrics,
        )
        super().__init__(scope, id, physical_name=name)
        self._encrypted_data = checked.encrypted_data
        self._serves_many = checked.models.serves_many
        self._contents = checked.models.contents
        self._async_inference = requests["async_inference"]
        self._is_asynchronous = self._async_inference is not None

        self._network = ContainerNetwork.make(self, host)
        self._connections = self._network.connections
        self._bound = bind_variants(self, checked.settled)
        self._logs = ContainerLogs.of_endpoint(resource, log_retention)
        self._execution = make_endpoint_role(self, self._bound, host, requests, self._logs)
        self._role = self._execution.role
        self._make_resources(host, requests, resource, update)
        self._make_variants(checked, update)

        self._updates = EndpointUpdates(
            self, self._cfn_endpoint, self._cfn_endpoint_config, self._execution, update
        )
        if checked.recorded is not None:
            self._verify_responses(checked.recorded, checked.models.contents)
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
            for model in self._models.all:
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
        self._updates.add_rollback_alarms(alarms)

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
        update: UpdateOptions,
    ) -> None:
        """Create the models, the endpoint configuration, the endpoint, and its log group."""
        model_host = ModelHost(
            execution_role_arn=self._role.role_arn,
            permissions=self._execution.permissions,
            enable_network_isolation=host["enable_network_isolation"],
            network=self._network.ids,
        )
        self._models = make_models(self._bound, model_host)
        self._cfn_endpoint_config = make_endpoint_config(
            self,
            self._bound,
            self._models,
            requests=requests,
            metrics=resource["metrics_config"],
            key=host["encryption_key"],
        )
        self._cfn_endpoint = self._make_endpoint(
            resource["endpoint_name"],
            adopts=update["adopt_existing"],
            key=host["encryption_key"],
            switch=update["off_switch"],
        )
        self._logs.create(self, writer=self._cfn_endpoint)

        # An endpoint that is kept needs all of them.
        needed = [
            *self._models.all,
            self._cfn_endpoint_config,
            *self._execution.created,
            *self._network.created,
        ]
        apply_removal_policy(resource["removal_policy"], self._cfn_endpoint, needed=needed)

    def _make_variants(self, checked: CheckedEndpoint, update: UpdateOptions) -> None:
        """Create the constructs of the variants, through which their scaling is declared."""
        guard = None
        if update["scaling_guard"]:
            guard = make_scaling_guard(
                self, self._cfn_endpoint, checked.settled, adopts=bool(update["adopt_existing"])
            )

        owner = VariantOwner(
            self,
            # A reference: scaling is created after the endpoint and deleted before it.
            self._cfn_endpoint.attr_endpoint_name,
            self._cfn_endpoint,
            is_asynchronous=self._async_inference is not None,
            scaling_guard=guard,
            metric_endpoint_name=self._metric_endpoint_name(),
            serves_many=checked.models.serves_many,
        )
        variants = make_variants(owner, checked.settled, self._models.variants)
        self._variants = variants.production
        self._shadow_variant = variants.shadow

    def _verify_responses(self, recorded: str, contents: RepositoryContents) -> None:
        self._updates.verify_responses(
            recorded,
            variants=[variant.variant_name for variant in self._variants],
            target_models=contents.prefix.target_models if self._serves_many else {},
            decrypt=decrypt_statements("DecryptRequests", *contents.asset_keys),
        )

    def _annotate(self, findings: Sequence[Finding]) -> None:
        """Add the warnings about the containers, each where it belongs, and then the others."""
        scopes: dict[Finding, list[Construct]] = {}
        for variant in self._bound:
            container = variant.container
            for finding in (*container.findings, *container.sizing.findings):
                scopes.setdefault(finding, []).append(container.scope)

        for finding, found_in in scopes.items():
            # A finding of several variants is annotated once, on the endpoint.
            annotate(found_in[0] if len(found_in) == 1 else self, [finding])
        annotate(self, findings)
