"""The models of a repository as endpoints use them: names, checks, archives,
files and permissions.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from constructs import Construct

from constructs_triton.cdk.permissions.s3_conditions import decrypt_statements
from constructs_triton.cdk.repository.asset_bucket_key import asset_keys
from constructs_triton.cdk.repository.loaded_models import (
    LoadedModels,
    LocalModels,
    ModelLocation,
    PackagedModel,
    PackedModels,
)
from constructs_triton.cdk.repository.looked_up_models import LookedUpModels
from constructs_triton.cdk.repository.metrics_publisher import add_publisher
from constructs_triton.cdk.repository.model_catalog import ModelCatalog
from constructs_triton.cdk.repository.properties import (
    CompressionType,
    PrefixOptions,
    RepositoryCheck,
    check_compression_type,
    check_key_has_effect,
    kept_findings,
)
from constructs_triton_core.errors import InvalidValueError, RepositoryError
from constructs_triton_core.findings import Finding
from triton_model_check.artifacts.container_metrics import PUBLISHER
from triton_model_check.model_config.target import OTHER_NAME, Target
from triton_model_check.model_repository.temporary_folders import scratch_directory

if TYPE_CHECKING:
    from constructs_triton.cdk.repository.placed_files import PlacedFiles
    from constructs_triton.cdk.repository.served_prefix import ServedPrefix


class RepositoryContents:
    """The models of a repository as endpoints use them.

    ``scope`` is the repository, the parent of its bucket and its custom resources. ``warnings`` are
    those about the models that do not depend on an endpoint. ``asset_keys`` are the keys that the
    objects of the CDK's asset bucket may have, for the roles that read assets.
    """

    def __init__(
        self,
        scope: Construct,
        source: LoadedModels | None,
        check: RepositoryCheck,
        options: PrefixOptions,
    ) -> None:
        self.catalog = ModelCatalog(source)
        self.warnings: list[Finding] = []
        self._scope = scope
        self._options = options
        self.repository_check = check
        self.asset_keys = options.asset_keys

    @cached_property
    def prefix(self) -> ServedPrefix:
        """The prefix that multi-model endpoints load from."""
        from constructs_triton.cdk.repository.served_prefix import ServedPrefix

        return ServedPrefix(self._scope, self.catalog, self._options)

    @cached_property
    def _files(self) -> PlacedFiles:
        from constructs_triton.cdk.repository.placed_files import PlacedFiles

        return PlacedFiles(self._scope, self.prefix, self._options)

    @property
    def is_model_package(self) -> bool:
        """Whether the source is a model package, which contains the image too."""
        return isinstance(self.catalog.source, PackagedModel)

    def is_ensemble(self, model_name: str) -> bool | None:
        """Return whether a model is an ensemble; ``None`` if its configuration cannot be read."""
        loaded, model = self.catalog.find(model_name)
        if not isinstance(loaded, LocalModels) or isinstance(loaded, LookedUpModels):
            return None
        return loaded.repository.model(model).is_ensemble

    def folder_of(self, model_name: str) -> str:
        """Return the folder of a model in its source."""
        return self.catalog.find(model_name)[1]

    def called_models(self, model_name: str) -> tuple[str, ...]:
        """Return the models that Python models call when a model is served."""
        loaded, model = self.catalog.find(model_name)
        return loaded.called_models(model)

    def packed_models(self, model_name: str) -> tuple[str, ...] | None:
        """Return the models in the archive of a model; ``None`` if they are not known."""
        loaded, model = self.catalog.find(model_name)
        return loaded.contents_of(model) if isinstance(loaded, LocalModels) else None

    def sequence_models(self, model_name: str | None = None) -> tuple[str, ...]:
        """Return the models whose requests belong to sequences,
        of one model's archive or of all sources.
        """
        if model_name is None:
            found: list[str] = []
            for source in self.catalog.sources():
                if isinstance(source, LocalModels):
                    found += source.cached.sequence_models
            return tuple(found)

        loaded, model = self.catalog.find(model_name)
        if not isinstance(loaded, LocalModels):
            return ()
        return tuple(
            name for name in loaded.contents_of(model) if name in loaded.cached.sequence_models
        )

    # Checks.

    def check(self, target: Target, model_name: str | None = None) -> list[Finding]:
        """Check the models for an endpoint, and return the warnings.

        ``model_name`` is the model of a single-model endpoint; only its source is checked.

        Raises:
            InvalidValueError: there is no model ``model_name``.
            RepositoryError: the checks found errors; it has all of them.
        """
        if model_name is not None:
            loaded, _ = self.catalog.find(model_name)
            return check_source_models(loaded, target, self.repository_check)

        findings: list[Finding] = []
        for loaded in self.catalog.sources():
            findings += check_source_models(loaded, target, self.repository_check)
        return findings

    def host_bytes(self, model_name: str, target: Target) -> int:
        """Return what a model takes of the main memory with the models that it needs, at least.

        0 if it is not known, or if the checks are off.
        """
        if not self.repository_check.is_enabled:
            return 0
        return self.catalog.find(model_name)[0].host_bytes(target)

    def check_files(
        self, model_name: str, compression_type: CompressionType | None
    ) -> list[Finding]:
        """Check how a model is stored, and return warnings about its files with
        ``CompressionType.NONE``.

        Raises:
            InvalidValueError: the source cannot be stored in that way.
            ArchiveError: SageMaker could not place a file; the message lists all of them.
        """
        loaded, model = self.catalog.find(model_name)
        if not check_compression_type(loaded, compression_type):
            return []
        return self._files.check(model_name, loaded, model)

    def check_publisher(self, model_name: str, compression_type: CompressionType | None) -> None:
        """Check that the archive of a model can get the model that publishes Triton's metrics."""
        loaded, _ = self.catalog.find(model_name)
        if not isinstance(loaded, PackedModels) or check_compression_type(loaded, compression_type):
            kept = "uncompressed files" if isinstance(loaded, PackedModels) else loaded.description
            raise InvalidValueError(
                "container_metrics: adds a model to the archive that is packed at synth, got "
                f"{kept}; use ModelSource.from_directory without compression_type, "
                "or remove container_metrics"
            )
        if loaded.holds(PUBLISHER):
            raise InvalidValueError(
                f'container_metrics: adds a model "{PUBLISHER}", but {loaded.description} has one '
                "of that name; rename it"
            )

    def check_key(
        self,
        model_name: str,
        compression_type: CompressionType | None,
        *,
        publishes_metrics: bool,
    ) -> None:
        """Check that ``encryption_key``, if the repository has one, encrypts a model.

        Raises:
            InvalidValueError: a single-model endpoint would load the model from another bucket.
        """
        if self._options.encryption_key is not None:
            check_key_has_effect(
                self._scope.node.path,
                self.catalog.find(model_name)[0],
                is_placed=self.is_placed(model_name, compression_type),
                publishes_metrics=publishes_metrics,
            )

    def is_placed(self, model_name: str, compression_type: CompressionType | None) -> bool:
        """Return whether a deployment places a model as files in the repository's bucket."""
        return check_compression_type(self.catalog.find(model_name)[0], compression_type)

    # Places that endpoints load models from.

    def locate(
        self, model_name: str, scope: Construct, compression_type: CompressionType | None = None
    ) -> ModelLocation:
        """Return where the single-model endpoint ``scope`` loads a model from.

        With ``CompressionType.NONE`` a deployment places the files below the prefix of the bucket.

        Raises:
            InvalidValueError: the repository has no such model, or its source cannot be stored in
                that way.
        """
        loaded, model = self.catalog.find(model_name)
        if check_compression_type(loaded, compression_type):
            return self._files.locate(model_name, loaded, model, scope)
        return self._with_key(loaded, loaded.locate(model, scope))

    def locate_with_publisher(self, model_name: str, scope: Construct) -> ModelLocation:
        """Return the archive of a model to which the model that publishes Triton's metrics is
        added.

        Raises:
            InvalidValueError: the repository has no such model.
        """
        loaded, model = self.catalog.find(model_name)
        if not isinstance(loaded, PackedModels):
            raise TypeError(f"{loaded.description} is not packed")  # check_publisher has refused it
        copy = add_publisher(loaded.repository, loaded.contents_of(model), scratch_directory())
        return self._with_key(loaded, PackedModels(copy, named=loaded.named).locate(model, scope))

    def _with_key(self, loaded: LoadedModels, location: ModelLocation) -> ModelLocation:
        if not isinstance(loaded, LocalModels):
            return location
        bucket_name = location.url.removeprefix("s3://").partition("/")[0]
        self.asset_keys = asset_keys(self._scope, bucket_name, self.asset_keys)
        decrypt = decrypt_statements("DecryptModel", *self.asset_keys)
        return replace(location, read_statements=(*location.read_statements, *decrypt))

    def locate_all(self, scope: Construct) -> ModelLocation:
        """Return the prefix that the multi-model endpoint ``scope`` loads models from.

        Raises:
            InvalidValueError: there are no models, models that are not in archives, or archives
                that a grant for another model would allow; or the repository deletes models that
                this endpoint may serve.
        """
        from constructs_triton.cdk.repository.model_bucket import read_statements

        prefix = self.prefix
        prefix.refuse_pruning_for(scope)
        sync = prefix.sync()
        location = ModelLocation(
            prefix.url, tuple(read_statements(prefix.bucket, prefix.prefix, prefix.keys))
        )
        if sync is None:
            return location  # other programs fill the prefix
        return replace(
            location,
            dependencies=(sync,),
            encryptions=(sync.resource,) if prefix.keys.all else (),
        )


def check_source_models(
    loaded: LoadedModels, target: Target | None, check: RepositoryCheck
) -> list[Finding]:
    """Check the models of a source for an endpoint, or for all, and return the warnings.

    Raises:
        RepositoryError: the checks found errors; it has all of them.
    """
    if not check.is_enabled:
        return []
    found = loaded.check(target)
    errors = kept_findings(check, found.errors)
    if target is None:
        # Each endpoint checks its models again, and a multi-model one takes these.
        errors = [error for error in errors if error.code != OTHER_NAME]
    if errors:
        raise RepositoryError(loaded.description, errors)
    return kept_findings(check, found.warnings)
