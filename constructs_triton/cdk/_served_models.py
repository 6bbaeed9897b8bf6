"""What an endpoint serves: one archive unpacked at start, or a prefix of archives loaded on demand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from constructs_triton.cdk.model_repository import TritonModelRepository
from constructs_triton.errors import InvalidValueError

__all__ = ["ModelData", "MultipleModels", "ServedModels", "SingleModel"]


@dataclass(frozen=True, slots=True)
class ModelData:
    """Where the container gets its models: the URL, what reading it takes, and what has to be there first."""

    url: str
    read_statements: tuple[iam.PolicyStatement, ...]
    dependencies: tuple[IDependable, ...]


class ServedModels(ABC):
    """The part in which the kinds of endpoint differ."""

    repository: TritonModelRepository
    mode: Literal["single", "multi-model"]

    @property
    @abstractmethod
    def default_model(self) -> str | None:
        """The model that ``/invocations`` reaches; ``None`` where each request names its own."""

    @abstractmethod
    def bind(self, scope: Construct) -> ModelData:
        """Publish the archives for the endpoint ``scope``."""


@dataclass(frozen=True, slots=True)
class SingleModel(ServedModels):
    """One model, or an ensemble with its steps: Triton loads all of it before the endpoint is in service."""

    repository: TritonModelRepository
    model: str
    mode: Literal["single", "multi-model"] = "single"

    @classmethod
    def of_model(cls, repository: TritonModelRepository, model: str) -> SingleModel:
        """Any model of the repository."""
        repository.models.model(model)
        return cls(repository, model)

    @classmethod
    def of_ensemble(cls, repository: TritonModelRepository, ensemble: str) -> SingleModel:
        """A model of the repository that has to be an ensemble."""
        if not repository.models.model(ensemble).is_ensemble:
            raise InvalidValueError(
                f'ensemble: must be a model with platform "ensemble", got "{ensemble}"; '
                "serve it with TritonEndpoint(model=...)"
            )
        return cls(repository, ensemble)

    @property
    def default_model(self) -> str:
        return self.model

    def bind(self, scope: Construct) -> ModelData:
        archive = self.repository.archive_of(self.model, scope=scope)
        statement = iam.PolicyStatement(
            sid="LoadModel", actions=["s3:GetObject"], resources=[archive.object_arn]
        )
        return ModelData(archive.model_data_url, (statement,), ())


@dataclass(frozen=True, slots=True)
class MultipleModels(ServedModels):
    """All models of the repository, each loaded when it is first asked for."""

    repository: TritonModelRepository
    mode: Literal["single", "multi-model"] = "multi-model"

    @property
    def default_model(self) -> None:
        return None

    def bind(self, scope: Construct) -> ModelData:  # noqa: ARG002 - one prefix serves every endpoint
        repository = self.repository
        return ModelData(repository.model_data_url, tuple(repository.read_statements()), (repository.sync(),))
