"""The models, the image and the container of a component, checked for the GPUs that it reserves."""

from __future__ import annotations

from typing import cast

from constructs import Construct

from constructs_triton.cdk.endpoint.container import check_models, container_settings
from constructs_triton.cdk.endpoint.properties import EndpointOptions
from constructs_triton.cdk.endpoint.resolved_variant import ResolvedVariant
from constructs_triton.cdk.endpoint.served_models import SingleModel
from constructs_triton.cdk.inference_component.properties import InferenceComponentOptions
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.repository.compression_type import CompressionType
from constructs_triton.cdk.repository.model_repository import TritonModelRepository
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.instance_types import InstanceType

__all__ = ["component_models", "resolve_component"]


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


def resolve_component(
    scope: Construct,
    models: SingleModel,
    options: InferenceComponentOptions,
    *,
    image: TritonImage,
    instance_type: InstanceType,
) -> ResolvedVariant:
    """Check models, image and variables of a component as those of an endpoint's variant.

    ``instance_type`` has the GPUs of one copy.

    Raises:
        InvalidValueError: SageMaker would refuse a value.
        RepositoryError: Triton would not load the models.
    """
    container = {
        "image": None if models.repository.is_model_package else image,
        "environment": options["environment"],
        "instance_type": instance_type,
        "inference_ami_version": None,  # the endpoint chooses it for all components
        "volume_size": None,
        "container_startup_health_check_timeout": options["container_startup_health_check_timeout"],
        "model_data_download_timeout": options["model_data_download_timeout"],
    }
    # The other properties of endpoints are not about the container.
    variant = cast(EndpointOptions, container)
    models.check_scope(scope)
    settings = container_settings(scope, models, variant)
    findings = tuple(check_models(models, settings, variant))
    return ResolvedVariant(variant, models, settings, findings)
