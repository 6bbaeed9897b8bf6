"""``TritonModelRepository``: the construct of a Triton model repository."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from aws_cdk import Annotations, Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk.repository.archive_assets import ArchiveAsset, StackAssets, asset_directory
from constructs_triton.cdk.repository.compression_type import CompressionType
from constructs_triton.cdk.repository.loaded_models import (
    ArchivePrefix,
    LoadedModels,
    LocalModels,
    ModelLocation,
    PackagedModel,
    decrypt_statements,
)
from constructs_triton.cdk.repository.model_catalog import ModelCatalog
from constructs_triton.cdk.repository.model_source import ModelSource
from constructs_triton.cdk.repository.placed_files import PlacedFiles, check_compression_type
from constructs_triton.cdk.repository.prefixed_construct import PrefixedConstruct
from constructs_triton.cdk.repository.properties import (
    DEFAULT_PREFIX,
    check_source,
    refuse_with_archive_prefix,
)
from constructs_triton.cdk.repository.repository_check import RepositoryCheck
from constructs_triton.cdk.repository.served_prefix import PrefixOptions, ServedPrefix
from constructs_triton.cdk.repository.target_model import TargetModelNaming
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton.errors import InvalidValueError, RepositoryError
from constructs_triton.findings import Finding
from constructs_triton.model_config.target import Target
from constructs_triton.model_repository import ModelRepository
from constructs_triton.model_repository.composition import CompositionOptions

__all__ = ["TritonModelRepository", "annotate"]


class TritonModelRepository(PrefixedConstruct):
    """Checked Triton models, ready to be served.

    The models are checked when they are added, as strictly as Triton checks them: errors raise
    ``RepositoryError`` with all findings before anything is added to the stack, and warnings become
    annotations that can be acknowledged by ``constructs-triton:<code>``.

    Archives are created when an endpoint needs them. A single-model endpoint loads its archive from the
    asset bucket of the CDK (:meth:`archive_of`). A multi-model endpoint needs all archives under one prefix.
    The first use of :attr:`model_data_url` creates a bucket, unless ``bucket`` is set, and a custom resource
    that copies the archives there and writes ``index.json`` beside them.

    ``source``
        Where the models come from, for example ``ModelSource.from_directory("models")``. On a multi-model
        endpoint each ensemble with its steps is one archive, and so is every other model. Add further models
        with :meth:`add_model`.
    ``calls``
        Models that a Python model calls (business logic scripting), by the caller:
        ``{"pipeline": ["scale"]}``. They are packed and loaded with the caller. Needed only where
        ``InferenceRequest(model_name=...)`` does not contain the name as a string.
    ``also_serve``
        Models that others need, such as steps of an ensemble, and that get an archive of their own too.
    ``check``
        ``RepositoryCheck.on(acknowledge=[...])`` accepts findings by their codes. ``RepositoryCheck.off()``
        checks nothing. Default: check everything.
    ``bucket``
        Your own bucket for multi-model endpoints. By default a bucket is created: encrypted, TLS only, no
        public access, retained when the stack is deleted. Endpoints with ``CompressionType.NONE`` use it too.
    ``prefix``
        Key prefix of the models in that bucket, ``"models/"`` by default; ends with ``/``.
    ``target_model_naming``
        ``CONTENT`` by default: ``resnet-3f9c2a1b.tar.gz``, a new name for new content.
    ``prune_after``
        A duration of at least one day. A deployment deletes archives and files that it has placed and that
        have been out of use for this time. Default: they are never deleted.
    ``encryption_key``
        KMS key of the bucket that is created. Default: S3-managed keys.
    ``asset_encryption_key``
        Your own KMS key of the CDK's asset bucket (``cdk bootstrap --bootstrap-kms-key-id``), for the roles
        that load or copy archives. Not required for a key of ``cdk bootstrap --bootstrap-customer-key``.
    ``versioned``
        Whether the bucket that is created is versioned. Default: no.
    ``removal_policy``
        Removal policy of the bucket that is created. ``DESTROY`` also deletes the archives. Default:
        ``RETAIN``.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        source: ModelSource | None = None,
        calls: Mapping[str, Sequence[str]] | None = None,
        also_serve: Sequence[str] = (),
        check: RepositoryCheck | None = None,
        bucket: s3.IBucket | None = None,
        prefix: str = DEFAULT_PREFIX,
        target_model_naming: TargetModelNaming = TargetModelNaming.CONTENT,
        prune_after: Duration | None = None,
        encryption_key: kms.IKey | None = None,
        asset_encryption_key: kms.IKey | None = None,
        versioned: bool = False,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN,
    ) -> None:
        check_source(source)
        check_type("check", check, (RepositoryCheck, "RepositoryCheck.off()"))
        prefix_options = PrefixOptions(
            prefix=prefix,
            naming=target_model_naming,
            bucket=bucket,
            prune_after=prune_after,
            encryption_key=encryption_key,
            asset_encryption_key=asset_encryption_key,
            versioned=versioned,
            removal_policy=removal_policy,
        ).checked()
        self.repository_check = RepositoryCheck.on() if check is None else check
        loaded = None if source is None else source.load(CompositionOptions.of(calls, also_serve))
        if isinstance(loaded, ArchivePrefix):
            _refuse_options_of_created_prefix(prefix_options)
        warnings = [] if loaded is None else self._check(loaded, None)
        super().__init__(scope, id)
        self._catalog = ModelCatalog(loaded)
        self._prefix = ServedPrefix(self, self._catalog, prefix_options)
        self._files = PlacedFiles(self, self._prefix, prefix_options)
        self.asset_encryption_key = asset_encryption_key
        self._warnings = warnings
        annotate(self, warnings)

    # Models.

    def add_model(
        self, name: str, source: ModelSource, *, calls: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Add one model, with the models that it needs.

        Add all models before you create a multi-model endpoint that serves the repository. If an error is
        raised, nothing is added.

        Args:
            name: Name of the model; it must be new.
            source: Where the model is.
            calls: As the repository's property, for the models of this source. Default: none.

        Raises:
            InvalidValueError: the name is used already, the source contains several models, other programs
                fill the prefix, or a multi-model endpoint serves the repository already.
            RepositoryError: the checks found errors; it has all of them.
        """
        if self._prefix.is_filled_by_others:
            raise InvalidValueError(
                f'{self.node.path}: model "{name}" cannot be added, because other programs fill the prefix; '
                "add it with constructs_triton.operations.ModelLibrary, or use another repository"
            )
        if self._prefix.is_synced:
            raise InvalidValueError(
                f'{self.node.path}: model "{name}" is added after a multi-model endpoint that serves the '
                "repository; call add_model before you create the endpoint"
            )
        check_source(source)
        self._catalog.refuse_name(name)
        loaded = source.load(CompositionOptions.of(calls))
        loaded.only_model(name)
        warnings = self._check(loaded, None)
        self._catalog.add(name, loaded)
        self._warnings = [*self._warnings, *warnings]
        annotate(self, warnings)

    @property
    def models(self) -> ModelRepository:
        """The models of ``source``, as read from disk, without those of :meth:`add_model`.

        Raises:
            InvalidValueError: there is no source, or it is in S3.
        """
        source = self._catalog.source
        if isinstance(source, LocalModels):
            return source.repository
        got = "no source" if source is None else source.description
        raise InvalidValueError(
            f"{self.node.path}: its models cannot be read at synth, got {got}; set source to a folder or an "
            "archive on your machine"
        )

    @property
    def is_model_package(self) -> bool:
        """Whether the source is a model package, which contains the image too."""
        return isinstance(self._catalog.source, PackagedModel)

    def called_models(self, model_name: str) -> tuple[str, ...]:
        """Return the models that Python models call when a model is served. The server must load them too.

        Args:
            model_name: Name of the model that is served.

        Raises:
            InvalidValueError: there is no such model.
        """
        loaded, model = self._catalog.find(model_name)
        return loaded.called_models(model)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The warnings about the models that do not depend on an endpoint."""
        return tuple(self._warnings)

    def check(self, target: Target, model_name: str | None = None) -> list[Finding]:
        """Check the models for an endpoint, and return the warnings.

        Args:
            target: The endpoint.
            model_name: Model that a single-model endpoint serves; only its source is checked. Default: all.

        Raises:
            InvalidValueError: there is no model ``model_name``.
            RepositoryError: the checks found errors; it has all of them.
        """
        if model_name is not None:
            return self._check(self._catalog.find(model_name)[0], target)
        return [finding for loaded in self._catalog.sources() for finding in self._check(loaded, target)]

    def served_model(self, model_name: str) -> str:
        """Return the folder of a model in its source.

        Args:
            model_name: Name of the model.

        Raises:
            InvalidValueError: there is no such model.
        """
        return self._catalog.find(model_name)[1]

    def only_model(self) -> str:
        """Return the name of the only model, or raise ``InvalidValueError`` if there is not exactly one."""
        return self._catalog.only_name()

    def refuse_no_ensemble(self, model_name: str) -> None:
        """Check that a model is an ensemble, if its configuration can be read.

        Args:
            model_name: Name of the model.

        Raises:
            InvalidValueError: the model is not an ensemble, or there is no such model.
        """
        loaded, model = self._catalog.find(model_name)
        if isinstance(loaded, LocalModels) and not loaded.repository.model(model).is_ensemble:
            raise InvalidValueError(
                f'ensemble: must be a model with platform "ensemble", got "{model_name}"; '
                "serve it with TritonEndpoint(model=...)"
            )

    # For single-model endpoints.

    def archive_of(self, model_name: str, *, scope: Construct | None = None) -> ArchiveAsset:
        """Add the archive of a model, or of an ensemble with its steps, as a CDK asset, and return it.

        The asset belongs to the stack of ``scope``, by default the stack of this repository.

        Args:
            model_name: Name of the model.

        Raises:
            InvalidValueError: the repository has no such model, or the model is in S3 already.
        """
        loaded, model = self._catalog.find(model_name)
        if not isinstance(loaded, LocalModels):
            raise InvalidValueError(
                f'{self.node.path}: model "{model_name}" is in S3 already, got {loaded.description}; '
                "use location_of"
            )
        assets = StackAssets(scope or self)
        return assets.add_archive(loaded.archive(model, asset_directory(self)), loaded.contents_of(model))

    def check_files(self, model_name: str, compression_type: CompressionType | None) -> list[Finding]:
        """Check how a model is stored, and return warnings about its files with ``CompressionType.NONE``.

        Args:
            model_name: Name of the model.
            compression_type: How the model is to be stored. Default: what the source has.

        Raises:
            InvalidValueError: the source cannot be stored in that way.
            ArchiveError: SageMaker could not place a file; the message lists all of them.
        """
        loaded, model = self._catalog.find(model_name)
        if not check_compression_type(loaded, compression_type):
            return []
        return self._files.check(model_name, loaded, model)

    def location_of(
        self,
        model_name: str,
        *,
        scope: Construct | None = None,
        compression_type: CompressionType | None = None,
    ) -> ModelLocation:
        """Return where a single-model endpoint loads a model from, and the permissions to read it.

        Args:
            model_name: Name of the model.
            compression_type: With ``CompressionType.NONE`` a deployment places the model's files below
                ``prefix`` of the bucket. Default: an archive, or what the source has in S3 already.

        Raises:
            InvalidValueError: the repository has no such model, or its source cannot be stored in that way.
        """
        loaded, model = self._catalog.find(model_name)
        if check_compression_type(loaded, compression_type):
            return self._files.locate(model_name, loaded, model)
        location = loaded.locate(model, scope or self)
        if not isinstance(loaded, LocalModels):
            return location
        decrypt = decrypt_statements("DecryptModel", self.asset_encryption_key)
        return replace(location, read_statements=(*location.read_statements, *decrypt))

    def _check(self, loaded: LoadedModels, target: Target | None) -> list[Finding]:
        if not self.repository_check.is_enabled:
            return []
        found = loaded.check(target)
        errors = [error for error in found.errors if self.repository_check.keeps(error)]
        if errors:
            raise RepositoryError(loaded.description, errors)
        return [warning for warning in found.warnings if self.repository_check.keeps(warning)]


def annotate(construct: Construct, findings: Iterable[Finding]) -> None:
    """Add an annotation for each finding, which can be acknowledged by its code."""
    annotations = Annotations.of(construct)
    for finding in findings:
        annotations.add_warning_v2(f"constructs-triton:{finding.code}", finding.one_line)


def _refuse_options_of_created_prefix(options: PrefixOptions) -> None:
    """Refuse what cannot be set on a prefix that other programs fill."""
    refuse_with_archive_prefix(
        bucket=options.bucket,
        prefix=options.prefix,
        prune_after=options.prune_after,
        encryption_key=options.encryption_key,
        versioned=options.versioned,
        target_model_naming=options.naming,
        removal_policy=options.removal_policy,
    )
