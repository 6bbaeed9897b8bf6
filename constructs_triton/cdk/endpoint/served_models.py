"""The models of an endpoint: one archive loaded at start,
or a prefix of archives loaded on demand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk.options.removal import is_kept
from constructs_triton.cdk.permissions.places import Place
from constructs_triton.cdk.repository.contents import RepositoryContents
from constructs_triton.cdk.repository.loaded_models import ModelLocation
from constructs_triton.cdk.repository.model_repository import TritonModelRepository, contents_of
from constructs_triton.cdk.repository.properties import CompressionType
from constructs_triton.cdk.validation.limit_checks import check_spelling
from constructs_triton.cdk.validation.property_types import PropertyType, check_type, shown
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding
from constructs_triton_core.tokens import is_lookup_dummy, is_token
from triton_model_check.artifacts.container_metrics import PUBLISHER
from triton_model_check.model_config.target import Target

_REPOSITORY: PropertyType = (TritonModelRepository, "TritonModelRepository(stack, id, source=...)")

CACHE_SETTINGS = ("Enabled", "Disabled")


class ServedModels(ABC):
    """The part in which the types of endpoints differ."""

    repository: TritonModelRepository
    mode: Literal["single", "multi-model"]
    model_cache_setting: str | None
    compression_type: CompressionType | None = None
    metrics_name: str | None = None
    custom_metrics: tuple[str, ...] = ()

    @property
    def contents(self) -> RepositoryContents:
        """The models of the repository."""
        return contents_of(self.repository)

    @property
    def serves_many(self) -> bool:
        """Whether each request names its model."""
        return self.mode == "multi-model"

    @property
    @abstractmethod
    def default_model(self) -> str | None:
        """The model that answers ``/invocations``; ``None`` if each request names its model."""

    @property
    def called_models(self) -> tuple[str, ...]:
        """The models that the server must load besides the default model,
        because Python models call them.
        """
        return ()

    @property
    def packed_models(self) -> tuple[str, ...] | None:
        """The models in the archive that the server starts with; ``None`` if they are not known."""
        return None

    @property
    def published_models(self) -> tuple[str, ...]:
        """The models whose metrics are published, the default model first."""
        if self.metrics_name is None:
            return ()
        return tuple(name for name in self.packed_models or () if name != PUBLISHER)

    @property
    @abstractmethod
    def sequence_models(self) -> tuple[str, ...]:
        """The models whose requests belong to sequences, as far as the models are known."""

    def check_scope(self, scope: Construct) -> None:  # noqa: B027 - an archive becomes an asset of any stack
        """Check that an endpoint in ``scope`` can load the models."""

    def places(self) -> Iterator[Place]:
        """Yield where the models are that SageMaker loads."""
        if self.is_in_bucket and not self.contents.prefix.creates_bucket:
            yield from Place.of_bucket("model_repository", "models", self.repository.bucket)

    @property
    def is_in_bucket(self) -> bool:
        """Whether the models are in the bucket of the repository."""
        return self.serves_many

    def publish_metrics(
        self,
        metrics_name: str,  # noqa: ARG002 - refused
        custom: tuple[str, ...],  # noqa: ARG002 - refused
    ) -> ServedModels:
        """Return the models with one that publishes Triton's metrics under the name of an endpoint,
        and the families ``custom`` of the models themselves.

        Raises:
            InvalidValueError: there is no archive that it could be added to.
        """
        raise InvalidValueError(
            "container_metrics: not supported on multi-model endpoints; remove it, or "
            "serve the model with TritonEndpoint"
        )

    @abstractmethod
    def check(self, target: Target) -> list[Finding]:
        """Return warnings about the models for this endpoint."""

    @abstractmethod
    def of_variant(
        self, repository: TritonModelRepository | None, model: str | None
    ) -> ServedModels:
        """Return the models of a variant that sets ``model_repository`` or ``model``."""

    @abstractmethod
    def bind(self, scope: Construct) -> ModelLocation:
        """Add the archives to the stack of the endpoint ``scope``."""


@dataclass(frozen=True, slots=True)
class SingleModel(ServedModels):
    """One model with the models that it needs, which Triton loads before the endpoint is in
    service.

    ``compression_type`` is how the models are stored in S3 (default: as the source decides). With a
    ``metrics_name``, the archive also contains the model that publishes Triton's metrics under this
    name, and ``custom_metrics`` of the models.
    """

    repository: TritonModelRepository
    model: str
    mode: Literal["single", "multi-model"] = "single"
    model_cache_setting: None = None
    compression_type: CompressionType | None = None
    metrics_name: str | None = None
    custom_metrics: tuple[str, ...] = ()

    @classmethod
    def of_model(
        cls,
        repository: TritonModelRepository,
        model: str | None,
        compression_type: CompressionType | None = None,
    ) -> SingleModel:
        """A model of the repository that is not an ensemble; ``None`` is its only one."""
        if model is None:
            _check_repository(repository)
            model = contents_of(repository).catalog.only_name()
        elif is_lookup_dummy(model):
            _check_repository(repository)
            model = _stand_in(repository, model, is_ensemble=False)
        _check_model("model", repository, model)
        if contents_of(repository).is_ensemble(model):
            raise InvalidValueError(
                f'model: must not be an ensemble, got "{model}"; set ensemble="{model}", on a '
                "TritonEnsembleEndpoint or a TritonInferenceComponent"
            )
        return cls(repository, model, compression_type=compression_type)

    @classmethod
    def of_ensemble(
        cls,
        repository: TritonModelRepository,
        ensemble: str,
        compression_type: CompressionType | None = None,
    ) -> SingleModel:
        """An ensemble of the repository."""
        _check_repository(repository)
        if is_lookup_dummy(ensemble):
            ensemble = _stand_in(repository, ensemble, is_ensemble=True)
        _check_model("ensemble", repository, ensemble)
        if contents_of(repository).is_ensemble(ensemble) is False:
            raise InvalidValueError(
                f'ensemble: must be a model with platform "ensemble", got "{ensemble}"; '
                "serve it with TritonEndpoint(model=...)"
            )
        return cls(repository, ensemble, compression_type=compression_type)

    def publish_metrics(self, metrics_name: str, custom: tuple[str, ...]) -> SingleModel:
        return replace(self, metrics_name=metrics_name, custom_metrics=custom)

    def check_scope(self, scope: Construct) -> None:
        if self.compression_type is CompressionType.NONE:
            _check_environment(self.repository, scope, "endpoint with CompressionType.NONE")
        if self.metrics_name is not None:
            self.contents.check_publisher(self.model, self.compression_type)
        self.contents.check_key(
            self.model, self.compression_type, publishes_metrics=self.metrics_name is not None
        )

    @property
    def is_in_bucket(self) -> bool:
        return self.contents.is_placed(self.model, self.compression_type)

    def places(self) -> Iterator[Place]:
        yield from ServedModels.places(self)
        if not self.is_in_bucket:
            loaded, _ = self.contents.catalog.find(self.model)
            yield from loaded.places("model_repository")

    def check(self, target: Target) -> list[Finding]:
        found = self.contents.check(target, self.model)
        return [*found, *self.contents.check_files(self.model, self.compression_type)]

    def of_variant(
        self, repository: TritonModelRepository | None, model: str | None
    ) -> SingleModel:
        repository = repository or self.repository
        if is_lookup_dummy(model):
            is_ensemble = bool(self.contents.is_ensemble(self.model))
            model = _stand_in(repository, str(model), is_ensemble=is_ensemble)
        chosen = replace(self, repository=repository, model=model or self.model)
        _check_model("model", chosen.repository, chosen.model)
        return chosen

    @property
    def default_model(self) -> str:
        return self.contents.folder_of(self.model)

    @property
    def called_models(self) -> tuple[str, ...]:
        called = self.contents.called_models(self.model)
        return called if self.metrics_name is None else (*called, PUBLISHER)

    @property
    def packed_models(self) -> tuple[str, ...] | None:
        packed = self.contents.packed_models(self.model)
        return packed if packed is None or self.metrics_name is None else (*packed, PUBLISHER)

    @property
    def sequence_models(self) -> tuple[str, ...]:
        return self.contents.sequence_models(self.model)

    def bind(self, scope: Construct) -> ModelLocation:
        if self.metrics_name is not None:
            return self.contents.locate_with_publisher(self.model, scope)
        return self.contents.locate(self.model, scope, self.compression_type)


@dataclass(frozen=True, slots=True)
class MultipleModels(ServedModels):
    """All models of the repository. SageMaker loads each at its first request."""

    repository: TritonModelRepository
    mode: Literal["single", "multi-model"] = "multi-model"
    model_cache_setting: str | None = None
    compression_type: CompressionType | None = None

    def __post_init__(self) -> None:
        _check_repository(self.repository)
        if self.compression_type is CompressionType.NONE:
            # SageMaker API reference: ContainerDefinition, ModelDataSource.
            raise InvalidValueError(
                "compression_type: not supported on multi-model endpoints, which load archives "
                "only, got CompressionType.NONE; remove it, or serve the model with TritonEndpoint"
            )
        check_spelling("model_cache_setting", self.model_cache_setting, CACHE_SETTINGS)

    def check(self, target: Target) -> list[Finding]:
        return self.contents.check(target)

    def check_scope(self, scope: Construct) -> None:
        _check_environment(self.repository, scope, "multi-model endpoint")

    def places(self) -> Iterator[Place]:
        yield from ServedModels.places(self)
        # A deploy-time function copies the archives of add_model into the bucket.
        for loaded in self.contents.catalog.added():
            for place in loaded.places("add_model"):
                yield replace(place, kind="copied models")

    def of_variant(
        self, repository: TritonModelRepository | None, model: str | None
    ) -> MultipleModels:
        if model is not None:
            raise InvalidValueError(
                "model: a multi-model endpoint serves all models of its repository, got "
                f'"{model}"; remove it, or set model_repository on the variant'
            )
        return self if repository is None else replace(self, repository=repository)

    @property
    def default_model(self) -> None:
        return None

    @property
    def sequence_models(self) -> tuple[str, ...]:
        return self.contents.sequence_models()

    def bind(self, scope: Construct) -> ModelLocation:
        return self.contents.locate_all(scope)


def check_kept_models(models: ServedModels, policy: RemovalPolicy | None) -> None:
    """Check that the stack does not delete the models of an endpoint or a
    component that it keeps.
    """
    if is_kept(policy) and models.is_in_bucket and models.contents.prefix.is_deleted_with_stack:
        raise InvalidValueError(
            "removal_policy: RETAIN keeps the instances in service, but the repository deletes "
            "their models together with the stack; set removal_policy=RemovalPolicy.RETAIN on the "
            "TritonModelRepository too, or remove removal_policy here"
        )


def _check_repository(repository: TritonModelRepository | None) -> None:
    if repository is None:
        raise InvalidValueError(f"model_repository: is required; write {_REPOSITORY[1]}")
    check_type("model_repository", repository, _REPOSITORY)


def _check_environment(repository: TritonModelRepository, scope: Construct, endpoint: str) -> None:
    """Check that the models are in the account and Region of the endpoint, as far as known."""
    # The CDK's own error at synth names the bucket's logical id, and no way to fix it.
    if not contents_of(repository).prefix.creates_bucket:
        _check_region(repository.bucket, Stack.of(scope), endpoint)
        return
    there, here = Stack.of(repository).environment, Stack.of(scope).environment
    if there != here:
        raise InvalidValueError(
            f"model_repository: its bucket must be in the account and Region of the {endpoint}, "
            f"{here}, got {there}; create a TritonModelRepository in a stack of {here}"
        )


def _check_region(bucket: s3.IBucket, stack: Stack, endpoint: str) -> None:
    there, here = bucket.env.region, stack.region
    if there != here and not is_token(there) and not is_token(here):
        raise InvalidValueError(
            f"model_repository: its bucket must be in the Region of the {endpoint}, {here}, got "
            f"{there}; use a bucket in {here}"
        )


def _stand_in(repository: TritonModelRepository, name: str, *, is_ensemble: bool) -> str:
    """Return a model in place of one whose name the CDK has not looked up yet.

    A source in S3 serves a model of any name, so the name can stay.
    """
    contents = contents_of(repository)
    fitting = [
        each for each in contents.catalog.names if bool(contents.is_ensemble(each)) is is_ensemble
    ]
    return fitting[0] if fitting else name


def _check_model(property: str, repository: TritonModelRepository, model: str) -> None:
    """Check that a repository has a model of this name.

    Raises:
        InvalidValueError: it has none, or the name is not a string.
    """
    _check_repository(repository)
    if not isinstance(model, str):
        raise InvalidValueError(
            f"{property}: must be a string, got {shown(model)}; "
            "write the name of a model of the repository"
        )
    try:
        contents_of(repository).folder_of(model)
    except InvalidValueError as error:
        if is_token(model):
            raise InvalidValueError(
                f"{property}: must be known at synth, because the models are packed then, "
                f"got {shown(model)}; write the name of a model of the repository"
            ) from None
        raise InvalidValueError(f"{property}: {error}") from None
