"""The endpoints: one model, an ensemble, or many models behind one endpoint."""

from __future__ import annotations

from typing import Literal, Unpack

from constructs import Construct

from constructs_triton.cdk.endpoint.new_endpoint import NewEndpoint
from constructs_triton.cdk.endpoint.properties import EndpointOptions, checked_options
from constructs_triton.cdk.endpoint.served_models import MultipleModels, SingleModel
from constructs_triton.cdk.repository.model_repository import TritonModelRepository
from constructs_triton.cdk.validation.property_documentation import takes_options

__all__ = ["TritonEndpoint", "TritonEnsembleEndpoint", "TritonMultiModelEndpoint"]


@takes_options(EndpointOptions)
class TritonEndpoint(NewEndpoint):
    """An endpoint that serves one model of a repository.

    ``model_repository``
        Where the model is.
    ``model``
        Its name; Triton loads it before the endpoint is in service.

    The other properties are those of ``EndpointOptions``; ``instance_type`` is required, unless each of its
    ``variants`` has one. Raises
    ``InvalidValueError`` for a property that is out of range and ``RepositoryError`` for models that Triton
    would refuse on this machine and image; in both cases nothing is added to the stack.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        model_repository: TritonModelRepository,
        model: str,
        **options: Unpack[EndpointOptions],
    ) -> None:
        checked = checked_options("TritonEndpoint()", options)
        models = SingleModel.of_model(model_repository, model)
        super().__init__(scope, id, models=models, options=checked)


@takes_options(EndpointOptions)
class TritonEnsembleEndpoint(NewEndpoint):
    """An endpoint that serves an ensemble: the archive holds it and all its step models.

    ``model_repository``
        Where the ensemble and its steps are.
    ``ensemble``
        Its name, which becomes ``SAGEMAKER_TRITON_DEFAULT_MODEL_NAME``: with several models in the archive
        the image does not start without it.

    The other properties are those of ``EndpointOptions``; ``instance_type`` is required, unless each of its
    ``variants`` has one. Raises as
    :class:`TritonEndpoint` does.
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
        checked = checked_options("TritonEnsembleEndpoint()", options)
        super().__init__(
            scope, id, models=SingleModel.of_ensemble(model_repository, ensemble), options=checked
        )


@takes_options(EndpointOptions)
class TritonMultiModelEndpoint(NewEndpoint):
    """An endpoint that serves all models of a repository, each loaded when it is first asked for.

    ``model_repository``
        Where the models are. At deployment each model, and each ensemble with its steps, becomes one archive
        under the repository's prefix; ``model_repository.target_models`` says what to send as
        ``TargetModel``.
    ``model_cache_setting``
        ``"Disabled"`` unloads a model after each request, which suits many models that are each asked for
        once in a while; ``"Enabled"`` is SageMaker's default.

    The other properties are those of ``EndpointOptions``; ``instance_type`` is required, unless each of its
    ``variants`` has one. Raises as
    :class:`TritonEndpoint` does.
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
        checked = checked_options("TritonMultiModelEndpoint()", options)
        models = MultipleModels(model_repository, model_cache_setting=model_cache_setting)
        super().__init__(scope, id, models=models, options=checked)
