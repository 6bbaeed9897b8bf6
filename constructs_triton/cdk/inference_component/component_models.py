"""The models, the image and the container of a component, checked for the GPUs that it reserves."""

from __future__ import annotations

from collections.abc import Sequence

from constructs import Construct

from constructs_triton.cdk.endpoint.container import SettledContainer, settle_container
from constructs_triton.cdk.endpoint.served_models import SingleModel, check_kept_models
from constructs_triton.cdk.inference_component.properties import InferenceComponentOptions
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.repository.compression_type import CompressionType
from constructs_triton.cdk.repository.model_repository import TritonModelRepository
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType

__all__ = ["component_models", "settle_component"]


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


def settle_component(
    scope: Construct,
    models: SingleModel,
    options: InferenceComponentOptions,
    *,
    image: TritonImage,
    instance_type: InstanceType,
    enable_network_isolation: bool | None,
    shared_with: Sequence[InstanceType] = (),
) -> SettledContainer:
    """Check models, image and variables of a component as those of an endpoint's variant.

    ``instance_type`` has the GPUs of one copy. ``shared_with`` are all types that load the same models.

    Raises:
        InvalidValueError: SageMaker would refuse a value.
        RepositoryError: Triton would not load the models.
    """
    check_kept_models(models, options["removal_policy"])
    return settle_container(
        scope,
        models,
        instance_type,
        image=None if models.contents.is_model_package else image,
        environment=options["environment"],
        inference_ami_version=None,  # the endpoint chooses it for all components
        enable_network_isolation=enable_network_isolation,
        shared_with=shared_with,
    )
