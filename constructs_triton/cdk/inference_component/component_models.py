"""The models, the image and the container of a component, checked for the GPUs that it reserves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from constructs import Construct

from constructs_triton.cdk.endpoint.container import ContainerSettings, check_models, container_settings
from constructs_triton.cdk.endpoint.properties import EndpointOptions
from constructs_triton.cdk.endpoint.resolved_variant import ResolvedVariant
from constructs_triton.cdk.endpoint.served_models import SingleModel
from constructs_triton.cdk.inference_component.properties import InferenceComponentOptions
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.repository.compression_type import CompressionType
from constructs_triton.cdk.repository.model_repository import TritonModelRepository
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.instance_types import InstanceType

__all__ = ["ComponentContainer", "component_models"]


def component_models(
    repository: TritonModelRepository,
    model: str | None,
    ensemble: str | None,
    compression_type: CompressionType | None,
) -> SingleModel:
    """Return the model or the ensemble of a component.

    Raises:
        InvalidValueError: both are given, or the repository has no such model.
    """
    if model is not None and ensemble is not None:
        raise InvalidValueError(
            f'model: cannot be combined with ensemble, got "{model}" and "{ensemble}"; remove one of them'
        )
    if ensemble is not None:
        return SingleModel.of_ensemble(repository, ensemble, compression_type)
    return SingleModel.of_model(repository, model, compression_type)


@dataclass(frozen=True, slots=True)
class ComponentContainer:
    """How the container of a component is started, in the form that endpoints use."""

    resolved: ResolvedVariant

    @classmethod
    def of(
        cls,
        scope: Construct,
        models: SingleModel,
        options: InferenceComponentOptions,
        *,
        image: TritonImage,
        instance_type: InstanceType,
    ) -> ComponentContainer:
        """Check models, image and variables for ``instance_type``, which has the GPUs of one copy.

        Raises:
            InvalidValueError: SageMaker would refuse a value.
            RepositoryError: Triton would not load the models.
        """
        container = cast(
            EndpointOptions,
            {
                "image": None if models.repository.is_model_package else image,
                "environment": options["environment"],
                "instance_type": instance_type,
                "inference_ami_version": None,  # the endpoint chooses it for all components
                "volume_size": None,
                "container_startup_health_check_timeout": options["container_startup_health_check_timeout"],
                "model_data_download_timeout": options["model_data_download_timeout"],
            },
        )
        models.check_scope(scope)
        settings: ContainerSettings = container_settings(scope, models, container)
        findings = tuple(check_models(models, settings, container))
        return cls(ResolvedVariant(container, models, settings, findings))

    @property
    def image(self) -> TritonImage:
        """The image."""
        return self.resolved.settings.image
