"""Component endpoints and components that another stack or another tool has created."""

from __future__ import annotations

from collections.abc import Sequence

import jsii
from aws_cdk.interfaces import aws_sagemaker as sagemaker_references
from constructs import Construct

from constructs_triton.cdk.endpoint.execution_role import ExecutionRole
from constructs_triton.cdk.endpoint.network import ContainerNetwork
from constructs_triton.cdk.inference_component.component_base import InferenceComponentBase
from constructs_triton.cdk.inference_component.component_endpoint_base import ComponentEndpointBase
from constructs_triton.cdk.inference_component.component_host import ComponentHost
from constructs_triton.cdk.inference_component.shared_role import SharedRole
from constructs_triton.cdk.options.host_options import HostOptions, check_subnets_need_vpc
from constructs_triton.cdk.validation.properties import check_properties
from constructs_triton.cdk.validation.property_types import check_type, shown
from constructs_triton_core.declared_values import with_defaults
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.limit_checks import check_name


@jsii.implements(sagemaker_references.IEndpointRef)
class ImportedComponentEndpoint(ComponentEndpointBase):
    """A component endpoint that exists already. Components can be added to it if its role is known.

    ``TritonComponentEndpoint.from_endpoint_name`` and ``from_endpoint_attributes`` return it.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str | None,
        endpoint_arn: str,
        has_arn_of_token: bool,
        variant_name: str,
        instance_type: InstanceType | None,
        host: HostOptions,
    ) -> None:
        check_name("variant_name", variant_name, limits.VARIANT_NAME)
        check_type(
            "instance_type", instance_type, (InstanceType, 'InstanceType.of("ml.g5.xlarge")')
        )
        check_properties("from_endpoint_attributes()", host, HostOptions)
        options = with_defaults(host, HostOptions)
        check_subnets_need_vpc(options)
        super().__init__(scope, id, environment_from_arn=endpoint_arn)
        self._known_endpoint_name = endpoint_name
        self._endpoint_arn = endpoint_arn
        self._has_arn_of_token = has_arn_of_token
        role = options["role"]
        self._host = ComponentHost(
            path=self.node.path,
            variant_name=variant_name,
            identity=endpoint_arn if endpoint_name is None else endpoint_name,
            known_type=instance_type,
            # The permissions of each component are added with the component.
            known_role=None if role is None else SharedRole(self, ExecutionRole(role, None)),
            network_ids=ContainerNetwork.make(self, options).ids,
            enable_network_isolation=options["enable_network_isolation"],
        )


class ImportedInferenceComponent(InferenceComponentBase):
    """An inference component that exists already, with grants, metrics and scaling.

    ``TritonInferenceComponent.from_inference_component_name`` and ``from_inference_component_arn``
    return it.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        inference_component_name: str,
        inference_component_arns: Sequence[str],
        endpoint: ComponentEndpointBase,
    ) -> None:
        check_name(
            "inference_component_name", inference_component_name, limits.INFERENCE_COMPONENT_NAME
        )
        if not isinstance(endpoint, ComponentEndpointBase):
            raise InvalidValueError(
                f"endpoint: must be the endpoint of the component, got {shown(endpoint)}; write "
                "TritonComponentEndpoint.from_endpoint_name(...)"
            )
        super().__init__(scope, id, environment_from_arn=inference_component_arns[0])
        self._inference_component_name = inference_component_name
        self._inference_component_arn, *others = inference_component_arns
        self._other_arns = tuple(others)
        self._endpoint = endpoint
