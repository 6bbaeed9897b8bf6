"""The endpoint constructs: one model, an ensemble, or many models."""

from __future__ import annotations

from typing import Literal, Unpack

from constructs import Construct

from constructs_triton.cdk.endpoint.new_endpoint import NewEndpoint
from constructs_triton.cdk.endpoint.properties import EndpointOptions, checked_options
from constructs_triton.cdk.endpoint.served_models import MultipleModels, SingleModel
from constructs_triton.cdk.repository.model_repository import TritonModelRepository
from constructs_triton.cdk.validation.properties import takes_properties


@takes_properties(EndpointOptions)
class TritonEndpoint(NewEndpoint):
    """An endpoint that serves one model of a repository.

    ``model_repository``
        The repository that contains the model.
    ``model``
        The name of the model. Triton loads it before the endpoint is in service. Default: the only
        model of the repository that is not just a step of an ensemble.

    The other properties are those of ``EndpointOptions``. After an error, nothing has been added to
    the stack.

    Raises:
        TypeError: there is no such property.
        InvalidValueError: a property has the wrong type or is out of range.
        RepositoryError: Triton would not load the models with this instance type and image.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        model_repository: TritonModelRepository,
        model: str | None = None,
        **options: Unpack[EndpointOptions],
    ) -> None:
        parts = checked_options("TritonEndpoint()", options, ("model_repository", "model"))
        models = SingleModel.of_model(model_repository, model, options.get("compression_type"))
        super().__init__(scope, id, models=models, **parts)


@takes_properties(EndpointOptions)
class TritonEnsembleEndpoint(NewEndpoint):
    """An endpoint that serves an ensemble and the models of its steps.

    ``model_repository``
        The repository that contains the ensemble and the models of its steps. They become one
        archive, or are placed below one prefix.
    ``ensemble``
        The name of the ensemble, which becomes ``SAGEMAKER_TRITON_DEFAULT_MODEL_NAME``. The image
        does not start without it when an archive contains several models.

    The other properties are those of ``EndpointOptions``. The errors are those of
    :class:`TritonEndpoint`.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        model_repository: TritonModelRepository,
        ensemble: str,
        **options: Unpack[EndpointOptions],
    ) -> None:
        parts = checked_options(
            "TritonEnsembleEndpoint()", options, ("model_repository", "ensemble")
        )
        models = SingleModel.of_ensemble(
            model_repository, ensemble, options.get("compression_type")
        )
        super().__init__(scope, id, models=models, **parts)


@takes_properties(EndpointOptions)
class TritonMultiModelEndpoint(NewEndpoint):
    """An endpoint that serves all models of a repository and loads each at its first request.

    ``model_repository``
        The repository that contains the models. Each model, and each ensemble with its steps,
        becomes one archive. ``model_repository.target_models`` contains the ``TargetModel`` of
        each.
    ``model_cache_setting``
        ``"Disabled"`` unloads a model after each request, for many models with few requests each.
        Default: ``"Enabled"``.

    The other properties are those of ``EndpointOptions``. The errors are those of
    :class:`TritonEndpoint`.
    """

    _imported_serves_many = True

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        model_repository: TritonModelRepository,
        model_cache_setting: Literal["Enabled", "Disabled"] | None = None,
        **options: Unpack[EndpointOptions],
    ) -> None:
        others = ("model_repository", "model_cache_setting")
        parts = checked_options("TritonMultiModelEndpoint()", options, others)
        models = MultipleModels(
            model_repository,
            model_cache_setting=model_cache_setting,
            compression_type=options.get("compression_type"),
        )
        super().__init__(scope, id, models=models, **parts)
