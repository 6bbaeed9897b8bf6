"""``TritonModelRepository``: the construct of a Triton model repository."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from aws_cdk import Annotations, Duration, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys, check_regions
from constructs_triton.cdk.permissions.nag_findings import mark_as_own
from constructs_triton.cdk.repository.contents import RepositoryContents, check_source_models
from constructs_triton.cdk.repository.loaded_models import (
    ArchivePrefix,
    LoadedModels,
    LocalModels,
    StoredModels,
)
from constructs_triton.cdk.repository.looked_up_models import LookedUpModels
from constructs_triton.cdk.repository.model_catalog import stand_in_name
from constructs_triton.cdk.repository.model_source import ModelSource, load_source
from constructs_triton.cdk.repository.properties import (
    DEFAULT_PREFIX,
    PrefixOptions,
    RepositoryCheck,
    TargetModelNaming,
    check_source,
)
from constructs_triton.cdk.repository.target_model import TargetModel, TargetModels
from constructs_triton.cdk.validation.arguments import check_known_string
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton.cdk.validation.unique_names import check_id
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding
from constructs_triton_core.tokens import is_lookup_dummy
from constructs_triton_functions.model_sync.properties import INDEX_FILE
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.composition import CompositionOptions


class TritonModelRepository(Construct):
    """Checked Triton models, ready to be served.

    The models are checked when they are added, as strictly as Triton checks them: errors raise
    ``RepositoryError`` with all findings before anything is added to the stack, and warnings become
    annotations that can be acknowledged by ``constructs-triton:<code>``.

    Archives are created when an endpoint needs them. A single-model endpoint loads its archive from
    the asset bucket of the CDK. A multi-model endpoint needs all archives under one prefix. The
    first use of :attr:`model_data_url` creates a bucket, unless ``bucket`` is set, and a custom
    resource that copies the archives there and writes ``index.json`` beside them.

    ``source``
        Where the models come from, for example ``ModelSource.from_directory("models")``. On a
        multi-model endpoint each ensemble with its steps is one archive, and so is every other
        model. Add further models with :meth:`add_model`.
    ``calls``
        Models that a Python model calls (business logic scripting), by the caller:
        ``{"pipeline": ["scale"]}``. They are packed and loaded with the caller. Needed only where
        ``InferenceRequest(model_name=...)`` does not contain the name as a string.
    ``also_served``
        Models that others need, such as steps of an ensemble, and that get an archive of their own
        too.
    ``check``
        ``RepositoryCheck.on(acknowledge=[...])`` accepts findings by their codes.
        ``RepositoryCheck.off()`` checks nothing. Default: check everything.
    ``bucket``
        Your own bucket for multi-model endpoints. By default a bucket is created: encrypted, TLS
        only, no public access, retained when the stack is deleted. Endpoints with
        ``CompressionType.NONE`` use it too.
    ``prefix``
        Key prefix of the models in that bucket, ``"models/"`` by default; ends with ``/``.
    ``target_model_naming``
        ``CONTENT`` by default: ``resnet-3f9c2a1b.tar.gz``, a new name for new content.
    ``prune_after``
        A duration of at least one day. A deployment deletes archives and files that it has placed
        and that have been out of use for this time. Default: they are never deleted.
    ``encryption_key``
        KMS key of the bucket that is created. Default: S3-managed keys. A deployment with another
        key encrypts the models again. An endpoint of one model then needs
        ``compression_type=CompressionType.NONE``, which places its files in that bucket.
    ``previous_encryption_keys``
        Further KMS keys that models in the bucket may have. The roles that read them may decrypt
        with these keys too. Needed only where a change of the key is not complete in one
        deployment. Default: none.
    ``asset_encryption_key``
        Your own KMS key of the CDK's asset bucket (``cdk bootstrap --bootstrap-kms-key-id``), for
        the roles that load or copy archives. Not required for a key of ``cdk bootstrap
        --bootstrap-customer-key``.
    ``versioned``
        Whether the bucket that is created is versioned. Default: no.
    ``removal_policy``
        Removal policy of the bucket that is created. ``DESTROY`` also deletes the archives.
        Default: ``RETAIN``.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        source: ModelSource | None = None,
        calls: Mapping[str, Sequence[str]] | None = None,
        also_served: Sequence[str] = (),
        check: RepositoryCheck | None = None,
        bucket: s3.IBucket | None = None,
        prefix: str = DEFAULT_PREFIX,
        target_model_naming: TargetModelNaming = TargetModelNaming.CONTENT,
        prune_after: Duration | None = None,
        encryption_key: kms.IKey | None = None,
        previous_encryption_keys: Sequence[kms.IKey] = (),
        asset_encryption_key: kms.IKey | None = None,
        versioned: bool = False,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN,
    ) -> None:
        check_id(scope, id)
        check_source(source)
        check_type("check", check, (RepositoryCheck, "RepositoryCheck.off()"))
        prefix_options = PrefixOptions(
            prefix=prefix,
            target_model_naming=target_model_naming,
            bucket=bucket,
            prune_after=prune_after,
            encryption_key=encryption_key,
            previous_encryption_keys=previous_encryption_keys,
            asset_encryption_key=asset_encryption_key,
            versioned=versioned,
            removal_policy=removal_policy,
        ).checked()
        repository_check = RepositoryCheck.on() if check is None else check
        loaded = (
            None
            if source is None
            else load_source(source, CompositionOptions.of(calls, also_served))
        )
        if isinstance(loaded, ArchivePrefix):
            prefix_options.refuse_with_archive_prefix()
        warnings = [] if loaded is None else check_source_models(loaded, None, repository_check)
        warnings += check_regions(scope, [*prefix_options.data(), *_source_data(loaded)])
        super().__init__(scope, id)
        mark_as_own(self)
        self._contents = RepositoryContents(self, loaded, repository_check, prefix_options)
        self._warn(warnings)

    # Models.

    def add_model(
        self, name: str, source: ModelSource, *, calls: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        """Add one model, with the models that it needs.

        Add all models before you create a multi-model endpoint that serves the repository. If an
        error is raised, nothing is added.

        Args:
            name: Name of the model; it must be new.
            source: Where the model is.
            calls: As the repository's property, for the models of this source. Default: none.

        Raises:
            InvalidValueError: the name is used already, the source contains several models, other
                programs fill the prefix, or a multi-model endpoint serves the repository already.
            RepositoryError: the checks found errors; it has all of them.
        """
        if is_lookup_dummy(name):
            name = stand_in_name(name)
        check_known_string("name", name, "resnet")
        contents = self._contents
        if contents.prefix.is_filled_by_others:
            raise InvalidValueError(
                f'{self.node.path}: model "{name}" cannot be added, because other programs fill '
                "the prefix; add it with constructs_triton_tools.operations.ModelLibrary, "
                "or use another repository"
            )
        if contents.prefix.is_synced:
            raise InvalidValueError(
                f'{self.node.path}: model "{name}" is added after a multi-model endpoint that '
                "serves the repository; call add_model before you create the endpoint"
            )
        check_source(source)
        contents.catalog.refuse_name(name)
        loaded = load_source(source, CompositionOptions.of(calls))
        loaded.only_model(name)
        warnings = check_regions(self, _source_data(loaded))
        warnings += check_source_models(loaded, None, contents.repository_check)
        contents.catalog.add(name, loaded)
        self._warn(warnings)

    @property
    def models(self) -> ModelRepository:
        """The models of ``source``, as read from disk, without those of :meth:`add_model`.

        Raises:
            InvalidValueError: there is no source, or it is in S3.
        """
        source = self._contents.catalog.source
        if isinstance(source, LocalModels):
            return source.repository
        got = "no source" if source is None else source.description
        raise InvalidValueError(
            f"{self.node.path}: its models cannot be read at synth, got {got}; set source to a "
            "folder or an archive on your machine"
        )

    def called_models(self, model_name: str) -> tuple[str, ...]:
        """Return the models that Python models call when a model is served. The server must load
        them too.

        Args:
            model_name: Name of the model that is served.

        Raises:
            InvalidValueError: there is no such model.
        """
        if is_lookup_dummy(model_name):
            return ()  # the next synthesis has the name
        check_known_string("model_name", model_name, "ensemble")
        return self._contents.called_models(model_name)

    # For multi-model endpoints.

    @property
    def target_models(self) -> Mapping[str, TargetModel]:
        """The ``TargetModel`` of each model of a multi-model endpoint, by the model's name.

        Empty for ``ModelSource.from_archive_prefix``, whose archives are not known.
        """
        are_known = not isinstance(self._contents.catalog.source, LookedUpModels)
        found = TargetModels(self._contents.prefix.target_models, are_known=are_known)
        return MappingProxyType(found)

    @property
    def bucket(self) -> s3.IBucket:
        """The bucket that multi-model endpoints load models from. The first use may create it."""
        return self._contents.prefix.bucket

    @property
    def prefix(self) -> str:
        """The key prefix of the archives in the bucket; it ends with ``/``."""
        return self._contents.prefix.prefix

    @property
    def model_data_url(self) -> str:
        """``s3://<bucket>/<prefix>``: the ``ModelDataUrl`` of a multi-model endpoint."""
        return self._contents.prefix.url

    @property
    def index_url(self) -> str:
        """``s3://<bucket>/<prefix>index.json``: a file from which clients read
        each model's target model.
        """
        return f"{self.model_data_url}{INDEX_FILE}"

    def grant_read_index(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to read ``index.json``, which ``TritonClient`` finds the archive of a
        model in.

        The grant includes the decryption with the bucket's KMS key.

        Args:
            grantee: Who gets the permission.
        """
        return self._contents.prefix.grant_read_index(grantee)

    def grant_manage_models(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to list, add and remove models, for example the role of a training job.

        ``constructs_triton_tools.operations.ModelLibrary`` and ``constructs-triton models`` need
        this. The grant includes the bucket's KMS key.

        Args:
            grantee: Who gets the permission.
        """
        return self._contents.prefix.grant_manage(grantee)

    def _warn(self, warnings: Sequence[Finding]) -> None:
        self._contents.warnings += warnings
        annotate(self, warnings)


def contents_of(repository: TritonModelRepository) -> RepositoryContents:
    """Return the part of a repository that endpoints use."""
    return repository._contents


def annotate(construct: Construct, findings: Iterable[Finding]) -> None:
    """Add an annotation for each finding, which can be acknowledged by its code."""
    annotations = Annotations.of(construct)
    for finding in findings:
        annotations.add_warning_v2(f"constructs-triton:{finding.code}", finding.one_line)


def _source_data(loaded: LoadedModels | None) -> list[DataUnderKeys]:
    """The models of a source that is in S3, which keep the key of their bucket."""
    if not isinstance(loaded, StoredModels):
        return []
    return [DataUnderKeys("models", [("source", loaded.bucket.encryption_key)])]
