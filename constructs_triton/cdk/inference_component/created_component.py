"""What the components of this app have in common, whatever their container is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.endpoint.endpoint_config import ModelContainer, ModelHost, make_model
from constructs_triton.cdk.endpoint.execution_role import container_statements
from constructs_triton.cdk.endpoint.log_group import ContainerLogs, component_log_group_name
from constructs_triton.cdk.inference_component.component_base import InferenceComponentBase
from constructs_triton.cdk.inference_component.component_endpoint_base import (
    ComponentEndpointBase,
    check_endpoint,
    check_environment,
    check_kept,
    host_of,
)
from constructs_triton.cdk.inference_component.component_host import ComponentHost, PlacedComponent
from constructs_triton.cdk.inference_component.component_names import generated_name, referring_name
from constructs_triton.cdk.inference_component.component_pools import render_specifications
from constructs_triton.cdk.inference_component.compute_requirements import ComputeRequirements
from constructs_triton.cdk.inference_component.host_instances import ComponentCopies
from constructs_triton.cdk.inference_component.properties import CopyOptions
from constructs_triton.cdk.options.component_deployment import (
    ComponentDeployment,
    render_component_deployment,
)
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.options.removal import apply_removal_policy
from constructs_triton.cdk.options.rollback_alarms import (
    alarm_name,
    check_alarm,
    read_alarms_statement,
)
from constructs_triton.cdk.options.serving_image import ServingImage
from constructs_triton.cdk.permissions.alarm_topics import let_alarms_publish
from constructs_triton.cdk.permissions.places import alarm_places, check_places
from constructs_triton.cdk.permissions.role_permissions import RolePermissions, removed_after_error
from constructs_triton.cdk.permissions.statements import Statement
from constructs_triton.cdk.repository.model_repository import annotate
from constructs_triton.cdk.validation.unique_names import check_unique_name, register_name
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.limit_checks import check_count
from constructs_triton_core.tokens import is_token

_Component = sagemaker.CfnInferenceComponent


class ComponentContainer(Protocol):
    """The container of a component, checked. ``findings`` are warnings about it."""

    @property
    def image(self) -> TritonImage | ServingImage:
        """The image, on which the AMI of the endpoint depends."""
        ...

    @property
    def findings(self) -> Sequence[Finding]:
        """Warnings about the container."""
        ...

    @property
    def sequence_models(self) -> tuple[str, ...]:
        """The models that keep state between the requests of a sequence."""
        ...

    def bind(self, scope: Construct) -> tuple[ModelContainer, Mapping[str, ModelContainer]]:
        """Add what image and models need to the stack.

        Returns the container, and those of instance types with their own models by type.
        """
        ...


@dataclass(frozen=True, slots=True)
class ComponentPlace:
    """Where a component runs and what its copies reserve,
    checked before anything is in the tree.
    """

    endpoint: ComponentEndpointBase
    host: ComponentHost
    options: CopyOptions
    requirements: ComputeRequirements
    initial: ComponentCopies
    deployment: ComponentDeployment
    alarm_names: list[str]
    role: iam.IRole

    @classmethod
    def of(
        cls,
        id: str,
        endpoint: ComponentEndpointBase,
        options: CopyOptions,
        requirements: ComputeRequirements,
        used_memory_mib: float = 0,
    ) -> ComponentPlace:
        """Check that the copies fit on the instances."""
        host = host_of(endpoint)
        initial = ComponentCopies(id, requirements, options["copy_count"] or 1, used_memory_mib)
        host.check(initial)
        deployment = options["deployment"] or ComponentDeployment.rolling()
        names = [alarm_name(alarm) for alarm in deployment.alarms]
        check_places(endpoint, alarm_places(deployment.alarms))
        return cls(
            endpoint, host, options, requirements, initial, deployment, names, host.role.role
        )


def checked_host(
    scope: Construct, id: str, endpoint: ComponentEndpointBase, options: CopyOptions
) -> ComponentHost:
    """Return what the endpoint gives to a component.

    Raises:
        InvalidValueError: it is not a component endpoint, or the name is used already.
    """
    check_unique_name(scope, id, "inference_component_name", options["inference_component_name"])
    check_endpoint(endpoint)
    check_environment(scope, endpoint)
    # An import by ARN alone does not know the name, which a component needs.
    _ = endpoint.endpoint_name
    check_kept(scope, endpoint, options["removal_policy"])
    return host_of(endpoint)


class CreatedInferenceComponent(InferenceComponentBase):
    """A component of this app: its model, its permissions and its copies."""

    def __init__(
        self, scope: Construct, id: str, place: ComponentPlace, container: ComponentContainer
    ) -> None:
        # What was checked before leaves nothing in the tree after an error.
        super().__init__(scope, id)
        self._endpoint = place.endpoint
        self._host = place.host
        self._options = place.options
        self._requirements = place.requirements
        self._deployment = place.deployment
        self._alarm_names = place.alarm_names
        self._logs = _logs_of(place.options)

        self._bound, self._overrides = container.bind(self)
        self._permissions = self._permit()
        model_host = ModelHost(
            execution_role_arn=place.role.role_arn,
            permissions=self._permissions,
            enable_network_isolation=self._host.enable_network_isolation,
            network=self._host.network_ids,
        )
        self._cfn_model = make_model(self._bound, model_host)
        self._pool_models = {
            instance_type: make_model(override, model_host)
            for instance_type, override in self._overrides.items()
        }
        self._cfn_inference_component = self._make_component()
        self._logs.create(self, writer=self._cfn_inference_component)

        needed = [self._cfn_model, *self._pool_models.values(), self._permissions]
        apply_removal_policy(
            self._options["removal_policy"], self._cfn_inference_component, needed=needed
        )
        placed = PlacedComponent(place.initial, place.deployment, self, container.sequence_models)
        self._host.add(placed, container.image)
        annotate(self, [*self._warnings(), *container.findings])
        register_name(self, "inference_component_name", self._options["inference_component_name"])

    # Its parts.

    @property
    def cfn_inference_component(self) -> sagemaker.CfnInferenceComponent:
        """The ``AWS::SageMaker::InferenceComponent``, also ``node.default_child``."""
        return self._cfn_inference_component

    @property
    def cfn_model(self) -> sagemaker.CfnModel:
        """The ``AWS::SageMaker::Model``. It has no name, since changes replace it."""
        return self._cfn_model

    @property
    def uses_gpus(self) -> bool:
        """Whether the copies reserve GPUs."""
        return is_token(self._requirements.gpus) or self._requirements.gpus > 0

    def add_rollback_alarms(self, *alarms: cloudwatch.IAlarm) -> None:
        """Roll an update back when one of at most 10 alarms goes into alarm.

        An alarm that is created in this app needs an ``alarm_name``.

        Raises:
            InvalidValueError: there are no alarms or more than 10, an alarm has no name, or the
                deployment is all at once.
        """
        if self._deployment.maximum_batch_size is None:
            raise InvalidValueError(
                f"{self.node.path}: SageMaker supports rollback alarms with a rolling update only; "
                "set deployment=ComponentDeployment.rolling()"
            )
        check_count("alarms", alarms, limits.AUTO_ROLLBACK_ALARMS)
        for alarm in alarms:
            check_alarm(alarm)
        check_places(self, alarm_places(alarms))
        names = list(dict.fromkeys([*self._alarm_names, *(alarm_name(alarm) for alarm in alarms)]))
        check_count("alarms", names, limits.AUTO_ROLLBACK_ALARMS)
        self._host.role.permit(self, [read_alarms_statement(self, alarms)])
        let_alarms_publish(self, alarms)
        self._alarm_names = names
        self._cfn_inference_component.deployment_config = render_component_deployment(
            self._deployment, names
        )

    # Creation.

    def _warnings(self) -> list[Finding]:
        name = self._options["inference_component_name"]
        return [] if name is None else [fixed_name(name)]

    def _permit(self) -> RolePermissions | None:
        with removed_after_error(self):
            return self._host.role.permit(self, self._statements())

    def _statements(self) -> list[Statement]:
        statements = container_statements([self._bound, *self._overrides.values()])
        if self._deployment.alarms:
            statements.append(read_alarms_statement(self, self._deployment.alarms))
            let_alarms_publish(self, self._deployment.alarms)
        return [*statements, *self._logs.role_statements()]

    def _make_component(self) -> sagemaker.CfnInferenceComponent:
        """Create the inference component, with one specification or one for each instance type."""
        options = self._options
        endpoint = self._endpoint
        given = options["inference_component_name"]
        identity = self._identity()
        component = _Component(
            self,
            f"Component{identity}",
            inference_component_name=generated_name(self, identity) if given is None else given,
            endpoint_name=endpoint.endpoint_name,
            variant_name=endpoint.variant_name,
            specification=None if self._pool_models else self._specification(),
            specifications=render_specifications(
                self._host.types, self._specification(), self._pool_models
            )
            if self._pool_models
            else None,
            runtime_config=_Component.InferenceComponentRuntimeConfigProperty(
                copy_count=options["copy_count"]
            ),
            deployment_config=render_component_deployment(self._deployment, self._alarm_names),
        )
        self.node.default_child = component
        self._inference_component_arn = component.attr_inference_component_arn
        self._inference_component_name = referring_name(
            given, component.attr_inference_component_arn
        )
        return component

    def _identity(self) -> str:
        """A digest of what SageMaker cannot change; as part of the logical id, it makes a new
        component.

        CloudFormation would update the component in place, but the API has no such update.
        """
        stack = Stack.of(self)
        is_imported = self._endpoint.node.default_child is None
        parts = [
            # The id of an imported endpoint says nothing about the endpoint.
            None if is_imported else self._endpoint.node.path,
            stack.resolve(self._host.identity),
            stack.resolve(self._endpoint.variant_name),
            stack.resolve(self._options["inference_component_name"]),
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]

    def _specification(
        self,
    ) -> sagemaker.CfnInferenceComponent.InferenceComponentSpecificationProperty:
        """Return the model of the component, and what each copy needs."""
        sizing = self._bound.sizing
        caching = self._options["enable_caching"]
        return _Component.InferenceComponentSpecificationProperty(
            model_name=self._cfn_model.attr_model_name,
            compute_resource_requirements=self._requirements.render(),
            startup_parameters=_Component.InferenceComponentStartupParametersProperty(
                container_startup_health_check_timeout_in_seconds=sizing.container_startup_health_check_timeout,
                model_data_download_timeout_in_seconds=sizing.model_data_download_timeout,
            ),
            data_cache_config=None
            if caching is None
            else _Component.InferenceComponentDataCacheConfigProperty(enable_caching=caching),
            scheduling_config=self._scheduling(),
        )

    def _scheduling(
        self,
    ) -> sagemaker.CfnInferenceComponent.InferenceComponentSchedulingConfigProperty | None:
        """Return how SageMaker places the copies on instances; ``None`` leaves it to SageMaker."""
        strategy = self._options["placement_strategy"]
        if strategy is None:
            return None
        return _Component.InferenceComponentSchedulingConfigProperty(
            placement_strategy=strategy,
            # The API needs the strategy only, CloudFormation both.
            availability_zone_balance=_Component.InferenceComponentAvailabilityZoneBalanceProperty(
                enforcement_mode="PERMISSIVE", max_imbalance=self._options["max_zone_imbalance"]
            ),
        )

    def _initial_copy_count(self) -> float | None:
        return self._options["copy_count"]

    def _metric_component_name(self) -> str:
        # An alarm on the literal name does not refer to the component, so it can be created first.
        name = self._options["inference_component_name"]
        return self._inference_component_name if name is None or is_token(name) else name


def _logs_of(options: CopyOptions) -> ContainerLogs:
    name = options["inference_component_name"]
    return ContainerLogs(
        None if name is None else component_log_group_name(name),
        options["log_retention"],
        options["removal_policy"],
    )


def fixed_name(name: str) -> Finding:
    """Return the warning about a component with a fixed name."""
    words = "the same name" if is_token(name) else f'the name "{name}"'
    return Finding(
        "component-name-fixed",
        Severity.WARNING,
        "inference_component_name",
        f"a new endpoint or variant replaces the component, and the new one cannot have {words} "
        "while the old one exists",
        "remove it, or acknowledge this and change the "
        "name together with the endpoint or the variant",
    )
