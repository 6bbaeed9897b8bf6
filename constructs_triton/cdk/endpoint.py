"""The endpoints: one model, an ensemble, or many models behind one endpoint."""

from __future__ import annotations

from typing import Protocol, Unpack, runtime_checkable

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_triton.cdk._endpoint_core import EndpointCore
from constructs_triton.cdk._endpoint_props import EndpointOptions, EndpointProps
from constructs_triton.cdk._served_models import MultipleModels, SingleModel
from constructs_triton.cdk.model_repository import TritonModelRepository

__all__ = ["ITritonEndpoint", "TritonEndpoint", "TritonEnsembleEndpoint", "TritonMultiModelEndpoint"]


@runtime_checkable
class ITritonEndpoint(Protocol):
    """What can be asked of any Triton endpoint, whichever construct made it.

    A protocol for annotations. The constructs themselves also implement CDK's own
    ``aws_sagemaker.IEndpoint``, so that Step Functions tasks and the like accept them.
    """

    @property
    def endpoint_name(self) -> str:
        """The endpoint's name, as it is known at deployment."""
        ...

    @property
    def endpoint_arn(self) -> str:
        """The endpoint's ARN."""
        ...

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to call the endpoint."""
        ...

    def metric(
        self, metric_name: str, *, statistic: str | None = None, period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Any metric SageMaker publishes for the endpoint."""
        ...


class TritonEndpoint(EndpointCore):
    """An endpoint that serves one model of a repository.

    ``model_repository``
        Where the model is.
    ``model``
        Its name; Triton loads it before the endpoint is in service.

    The other properties are those of ``EndpointOptions``, of which ``instance_type`` is required. Raises
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
        props = EndpointProps(**options)
        super().__init__(scope, id, models=SingleModel.of_model(model_repository, model), props=props)


class TritonEnsembleEndpoint(EndpointCore):
    """An endpoint that serves an ensemble: the archive holds it and all its step models.

    ``model_repository``
        Where the ensemble and its steps are.
    ``ensemble``
        Its name, which becomes ``SAGEMAKER_TRITON_DEFAULT_MODEL_NAME``: with several models in the archive
        the image does not start without it.

    The other properties are those of ``EndpointOptions``, of which ``instance_type`` is required. Raises as
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
        props = EndpointProps(**options)
        super().__init__(scope, id, models=SingleModel.of_ensemble(model_repository, ensemble), props=props)


class TritonMultiModelEndpoint(EndpointCore):
    """An endpoint that serves all models of a repository, each loaded when it is first asked for.

    ``model_repository``
        Where the models are. At deployment each model, and each ensemble with its steps, becomes one archive
        under the repository's prefix; ``model_repository.target_models`` says what to send as
        ``TargetModel``.

    The other properties are those of ``EndpointOptions``, of which ``instance_type`` is required. Raises as
    :class:`TritonEndpoint` does.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        model_repository: TritonModelRepository,
        **options: Unpack[EndpointOptions],
    ) -> None:
        props = EndpointProps(**options)
        super().__init__(scope, id, models=MultipleModels(model_repository), props=props)
