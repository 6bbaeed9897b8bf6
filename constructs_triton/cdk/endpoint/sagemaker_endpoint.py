"""What endpoints with models and endpoints with components have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from aws_cdk import Resource, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk.interfaces import aws_sagemaker as sagemaker_references
from constructs import Construct

from constructs_triton.cdk.endpoint.operating import operating_statements
from constructs_triton.cdk.endpoint.resource_arn import (
    endpoint_arn_of,
    name_in_endpoint_arn,
    unknown_letters,
)
from constructs_triton.cdk.metrics.metrics import VariantMetrics
from constructs_triton.cdk.monitoring.monitored_endpoint import literal_endpoint_name
from constructs_triton.cdk.monitoring.state_rules import (
    DEPLOYMENT_STATE,
    ENDPOINT_STATE,
    EventPattern,
    add_state_rule,
)
from constructs_triton.cdk.permissions.caller_routes import warn_without_route
from constructs_triton.cdk.permissions.grantees import grantee_findings
from constructs_triton.cdk.permissions.statements import Statement
from constructs_triton.cdk.repository.model_repository import annotate
from constructs_triton.cdk.scaling.off_switch import OffSwitch, connect_endpoint
from constructs_triton.cdk.validation.arguments import known_actions
from constructs_triton.cdk.validation.endpoint_names import known_endpoint_name
from constructs_triton.cdk.validation.property_types import GRANTEE, check_has
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_token

_ADOPTED_ID = "Default"  # also a name of ``node.default_child``
ImportedT = TypeVar("ImportedT", bound="SageMakerEndpoint")
"""What the ``from_*`` methods of a type of endpoint return."""


class SageMakerEndpoint(VariantMetrics, Resource):
    """An endpoint with a name and an ARN, which the subclasses set."""

    _known_endpoint_name: str | None
    """The name; ``None`` for an endpoint that was imported by its ARN alone."""
    _endpoint_arn: str
    _has_arn_of_token = False
    """Whether the ARN contains a name that is known only at deployment."""

    @property
    def endpoint_name(self) -> str:
        """The endpoint's name, a token until the deployment.

        Raises:
            InvalidValueError: the endpoint was imported by its ARN alone, which has the name in
                lower case only.
        """
        return known_endpoint_name(self, self._known_endpoint_name)

    @property
    def endpoint_arn(self) -> str:
        """The endpoint's ARN."""
        return self._endpoint_arn

    @property
    def endpoint_ref(self) -> sagemaker_references.EndpointReference:
        """The reference that other constructs of the CDK use."""
        return sagemaker_references.EndpointReference(endpoint_arn=self._endpoint_arn)

    def grant(self, grantee: iam.IGrantable, *actions: str) -> iam.Grant:
        """Allow a principal some actions on this endpoint.

        Args:
            grantee: Who gets the permission.
            *actions: IAM actions, such as ``"sagemaker:DescribeEndpoint"``.
        """
        return self._grant(grantee, known_actions(actions))

    def grant_operate(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow what ``constructs-triton status``, ``diagnose``, ``logs`` and ``models warm`` need.

        These are reading calls. On a multi-model endpoint they include
        ``sagemaker:InvokeEndpoint``, because a call loads the model. On a component endpoint they
        include the log groups of all components of the account and Region. The stack of an imported
        endpoint is not known, so its events are not granted.

        Args:
            grantee: Who gets the permission.
        """
        check_has("grantee", grantee, *GRANTEE)
        is_imported = self.node.default_child is None
        statements = operating_statements(
            Stack.of(self), self.endpoint_name, self._endpoint_arn, is_imported=is_imported
        )
        for statement in (*statements, *self._operating_statements_of_type()):
            grantee.grant_principal.add_to_principal_policy(statement.to_cdk())
        return self.grant(grantee, "sagemaker:DescribeEndpoint")

    def on_state_change(
        self,
        id: str,
        *,
        target: events.IRuleTarget | None = None,
        event_pattern: EventPattern | None = None,
        rule_name: str | None = None,
        description: str | None = None,
        cross_stack_scope: Construct | None = None,
    ) -> events.Rule:
        """Add an EventBridge rule for changes of the endpoint's status.

        ``EndpointStatus`` in an event is in capital letters, such as ``IN_SERVICE``, ``UPDATING``
        or ``FAILED``. Without ``endpoint_name``, the rule is created after the endpoint and deleted
        before it, so it does not match ``CREATING`` and ``DELETING``. SageMaker may send an event
        more than once.

        Args:
            id: Construct id of the rule.
            target: What gets the events. Default: none; add targets to the rule.
            event_pattern: Further conditions, such as
                ``EventPattern(detail={"EndpointStatus": ["FAILED"]})``. Default: all statuses.
            rule_name: Name of the rule. Default: generated by CloudFormation.
            description: Description of the rule. Default: none.
            cross_stack_scope: Scope of the rule if its target is in another stack that this stack
                depends on. Default: the endpoint.

        Raises:
            InvalidValueError: an argument has the wrong type.
        """
        return self._add_state_rule(
            id,
            ENDPOINT_STATE,
            target=target,
            event_pattern=event_pattern,
            rule_name=rule_name,
            description=description,
            cross_stack_scope=cross_stack_scope,
        )

    def on_deployment_state_change(
        self,
        id: str,
        *,
        target: events.IRuleTarget | None = None,
        event_pattern: EventPattern | None = None,
        rule_name: str | None = None,
        description: str | None = None,
        cross_stack_scope: Construct | None = None,
    ) -> events.Rule:
        """Add an EventBridge rule for the steps of a deployment, such as shifts of traffic.

        ``ProductionVariants`` in an event, and in its ``PendingDeploymentSummary``, have a
        ``VariantStatus``: ``Creating``, ``ActivatingTraffic``, ``Baking``, ``Updating`` or
        ``Deleting``. Endpoints that deployment guardrails exclude send no such events. The
        arguments are those of :meth:`on_state_change`.
        """
        return self._add_state_rule(
            id,
            DEPLOYMENT_STATE,
            target=target,
            event_pattern=event_pattern,
            rule_name=rule_name,
            description=description,
            cross_stack_scope=cross_stack_scope,
        )

    def _add_state_rule(self, id: str, detail_type: str, **options: Any) -> events.Rule:
        name = None if self._known_endpoint_name is None else self._metric_endpoint_name()
        return add_state_rule(
            self,
            id,
            detail_type,
            endpoint_name=name,
            endpoint_arn=self._endpoint_arn,
            **options,
        )

    def _grant(
        self,
        grantee: iam.IGrantable,
        actions: Sequence[str],
        conditions: Mapping[str, Any] | None = None,
    ) -> iam.Grant:
        """Allow a principal these actions on the endpoint, and warn where that has no effect."""
        check_has("grantee", grantee, *GRANTEE)
        if self._has_arn_of_token:
            annotate(self, [unknown_letters()])
        grant = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=list(actions),
            resource_arns=[self._endpoint_arn],
            conditions=conditions,
        )
        annotate(self, grantee_findings(grantee, grant, self.env.account, "grantee"))
        warn_without_route(self, grantee, actions)
        return grant

    def _operating_statements_of_type(self) -> Iterable[Statement]:
        """Return what the commands also need on this type of endpoint."""
        return ()

    def _metric_endpoint_name(self) -> str:
        # An alarm on the literal name does not refer to the endpoint, so it can be created first.
        # The same is true of a rule.
        name = self.endpoint_name
        literal_name = literal_endpoint_name(self.node, name)
        return name if literal_name is None else literal_name

    def _metric_owner(self) -> Construct:
        return self


class CreatedEndpoint(SageMakerEndpoint, Generic[ImportedT]):
    """An endpoint that is created in this app, with its resources and its execution role."""

    _cfn_endpoint: sagemaker.CfnEndpoint
    _cfn_endpoint_config: sagemaker.CfnEndpointConfig
    _role: iam.IRole
    _connections: ec2.Connections | None
    _is_switched = False

    # Endpoints that exist already.

    @classmethod
    def from_endpoint_name(cls, scope: Construct, id: str, endpoint_name: str) -> ImportedT:
        """Refer to an endpoint of this account and Region with one variant, ``"AllTraffic"``.

        Args:
            endpoint_name: Name of the endpoint.
        """
        return cls.from_endpoint_attributes(scope, id, endpoint_name=endpoint_name)

    @classmethod
    def from_endpoint_arn(cls, scope: Construct, id: str, endpoint_arn: str) -> ImportedT:
        """Refer to an endpoint by its ARN, also in another account or Region.

        The ARN has the name in lower case. Grants need no more; for metrics, alarms, scaling and
        the name itself, use ``from_endpoint_attributes`` with ``endpoint_name`` too.

        Args:
            endpoint_arn: ARN of the endpoint.
        """
        return cls.from_endpoint_attributes(scope, id, endpoint_arn=endpoint_arn)

    @classmethod
    @abstractmethod
    def from_endpoint_attributes(
        cls,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str | None = None,
        endpoint_arn: str | None = None,
    ) -> ImportedT:
        """Refer to an endpoint by its name, its ARN, or both."""

    # Its parts.

    @property
    def endpoint_ref(self) -> sagemaker_references.EndpointReference:
        """The reference that other constructs of the CDK use."""
        # A reference to a resource that an OffSwitch deletes would be an error.
        return super().endpoint_ref if self._is_switched else self._cfn_endpoint.endpoint_ref

    @property
    def cfn_endpoint(self) -> sagemaker.CfnEndpoint:
        """The ``AWS::SageMaker::Endpoint``, also ``node.default_child``."""
        return self._cfn_endpoint

    @property
    def cfn_endpoint_config(self) -> sagemaker.CfnEndpointConfig:
        """The ``AWS::SageMaker::EndpointConfig``. It has no name, since changes replace it."""
        return self._cfn_endpoint_config

    @property
    def role(self) -> iam.IRole:
        """The execution role of all containers."""
        return self._role

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The principal of grants on other resources: the execution role."""
        return self._role.grant_principal

    @property
    def connections(self) -> ec2.Connections:
        """The network connections of all containers.

        Raises:
            InvalidValueError: the endpoint has no ``vpc``.
        """
        if self._connections is None:
            raise InvalidValueError(
                f"{self.node.path}: has no network connections without a VPC; "
                "set vpc on the endpoint"
            )
        return self._connections

    def _make_endpoint(
        self,
        endpoint_name: str | None,
        *,
        adopts: bool | None = None,
        key: kms.IKey | None = None,
        switch: OffSwitch | None = None,
    ) -> sagemaker.CfnEndpoint:
        """Create the endpoint with its configuration, and set its name and ARN.

        ``adopts`` updates the existing endpoint of this name, whose volumes have the key, in place
        of that. With a switch, name and ARN do not refer to the endpoint, since it may not exist.
        """
        endpoint = sagemaker.CfnEndpoint(
            self,
            # CloudFormation refuses another type for the same logical id.
            _ADOPTED_ID if adopts else "Resource",
            endpoint_name=endpoint_name,
            endpoint_config_name=self._cfn_endpoint_config.attr_endpoint_config_name,
        )
        if adopts and endpoint_name is not None:
            from constructs_triton.cdk.endpoint.adopted_endpoint import EndpointAdoption

            EndpointAdoption(
                self, "Adoption", endpoint=endpoint, endpoint_name=endpoint_name, key=key
            )
            if is_token(endpoint_name):
                annotate(self, [unknown_letters()])
        self._known_endpoint_name = self._get_resource_name_attribute(endpoint.attr_endpoint_name)
        self._endpoint_arn = self._get_resource_arn_attribute(
            endpoint.attr_endpoint_arn,
            service="sagemaker",
            resource="endpoint",
            resource_name=name_in_endpoint_arn(self._physical_name),
        )
        if switch is not None and endpoint_name is not None:
            connect_endpoint(switch, self, endpoint)
            self._is_switched = True
            self._known_endpoint_name = endpoint_name
            self._endpoint_arn = endpoint_arn_of(self, endpoint_name)
            self._has_arn_of_token = is_token(endpoint_name)
        return endpoint
