"""``TritonInferenceComponent``: a model with its own copies on the instances of an endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, Unpack

from constructs import Construct

from constructs_triton.cdk.endpoint.endpoint_config import ModelContainer
from constructs_triton.cdk.endpoint.resource_arn import component_arns_of, component_name_and_arn
from constructs_triton.cdk.inference_component.component_endpoint_base import ComponentEndpointBase
from constructs_triton.cdk.inference_component.component_pools import (
    SettledComponent,
    bind_component,
    component_models,
    settle_on_host,
)
from constructs_triton.cdk.inference_component.created_component import (
    ComponentPlace,
    CreatedInferenceComponent,
    checked_host,
)
from constructs_triton.cdk.inference_component.imported import ImportedInferenceComponent
from constructs_triton.cdk.inference_component.properties import (
    InferenceComponentOptions,
    checked_component_options,
)
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.repository.model_repository import TritonModelRepository
from constructs_triton.cdk.validation.properties import takes_properties
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding


@dataclass(frozen=True, slots=True)
class _TritonContainer:
    """A container of Triton with its models."""

    settled: SettledComponent
    options: InferenceComponentOptions

    @property
    def image(self) -> TritonImage:
        return self.settled.container.image

    @property
    def findings(self) -> Sequence[Finding]:
        return self.settled.container.findings

    @property
    def sequence_models(self) -> tuple[str, ...]:
        return self.settled.container.models.sequence_models

    def bind(self, scope: Construct) -> tuple[ModelContainer, dict[str, ModelContainer]]:
        return bind_component(scope, self.settled, self.options)


@takes_properties(InferenceComponentOptions)
class TritonInferenceComponent(CreatedInferenceComponent):
    """A model or an ensemble with its own copies on the shared instances of an endpoint.

    The model has the role, the VPC and the network isolation of the endpoint. A new name, endpoint
    or variant replaces the component: CloudFormation creates the new one before it deletes the old
    one. After an error, nothing has been added to the stack.

    Args:
        endpoint: A ``TritonComponentEndpoint``, created in this app or imported with its role.
        model_repository: The repository that contains the model.
        model: The name of the model. Default: the repository's only model that is not just a step
            of an ensemble.
        ensemble: The name of an ensemble, in place of ``model``.

    Raises:
        TypeError: there is no such property.
        InvalidValueError: a property has the wrong type, is out of range, or the copies do not fit
            on the instances of the endpoint.
        RepositoryError: Triton would not load the models with these GPUs and this image.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: ComponentEndpointBase,
        model_repository: TritonModelRepository,
        model: str | None = None,
        ensemble: str | None = None,
        **options: Unpack[InferenceComponentOptions],
    ) -> None:
        checked = checked_component_options(options)
        host = checked_host(scope, id, endpoint, checked)
        host.check_triton()
        models = component_models(model_repository, model, ensemble, checked["compression_type"])
        settled = settle_on_host(scope, models, checked, host)
        place = ComponentPlace.of(
            id, endpoint, checked, settled.requirements, settled.used_memory_mib
        )
        super().__init__(scope, id, place, _TritonContainer(settled, checked))

    def add_adapter(self, id: str, **options: object) -> NoReturn:  # noqa: ARG002
        """Not supported: Triton answers 400 to SageMaker's requests for adapters.

        Args:
            id: Not used.

        Raises:
            InvalidValueError: always.
        """
        raise InvalidValueError(
            f"{self.node.path}: containers of Triton do not load adapters of SageMaker; call "
            "add_adapter of a ContainerInferenceComponent, with the image of vLLM or LMI"
        )

    # Components that exist already.

    @classmethod
    def from_inference_component_name(
        cls,
        scope: Construct,
        id: str,
        inference_component_name: str,
        *,
        endpoint: ComponentEndpointBase,
    ) -> ImportedInferenceComponent:
        """Refer to a component of this account and Region, and its endpoint, new or imported.

        Args:
            inference_component_name: Name of the component.
        """
        return ImportedInferenceComponent(
            scope,
            id,
            inference_component_name=inference_component_name,
            inference_component_arns=component_arns_of(scope, inference_component_name),
            endpoint=endpoint,
        )

    @classmethod
    def from_inference_component_arn(
        cls,
        scope: Construct,
        id: str,
        inference_component_arn: str,
        *,
        endpoint: ComponentEndpointBase,
        inference_component_name: str | None = None,
    ) -> ImportedInferenceComponent:
        """Refer to a component by its ARN, also in another account or Region.

        Args:
            inference_component_arn: ARN of the component.
            inference_component_name: Name of the component. Set it if it has capital letters: AWS
                does not say whether the ARN keeps them, as metrics and scaling do. Default: the
                name in the ARN.

        Raises:
            InvalidValueError: the ARN is not that of a component, or not that of the name.
        """
        name, arn = component_name_and_arn(scope, inference_component_name, inference_component_arn)
        return ImportedInferenceComponent(
            scope,
            id,
            inference_component_name=name,
            inference_component_arns=[arn],
            endpoint=endpoint,
        )
