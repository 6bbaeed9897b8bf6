"""The models of a repository that single-model endpoints load as files."""

from __future__ import annotations

from collections.abc import Sequence

from constructs import Construct

from constructs_triton.cdk.repository.archive_assets import asset_directory
from constructs_triton.cdk.repository.downloads import downloads_weights, environment_bytes
from constructs_triton.cdk.repository.file_sync import FileSync
from constructs_triton.cdk.repository.loaded_models import (
    LoadedModels,
    LocalModels,
    ModelLocation,
)
from constructs_triton.cdk.repository.model_bucket import read_statements
from constructs_triton.cdk.repository.properties import PrefixOptions
from constructs_triton.cdk.repository.served_prefix import ServedPrefix
from constructs_triton.cdk.repository.staged_files import StagedModel, list_files, stage
from constructs_triton_core.errors import ArchiveError
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token
from constructs_triton_functions.model_sync.properties import FILES_FOLDER
from triton_model_check.model_repository.uncompressed.names import name_problems

_DIGEST_FOLDER = "0" * 32 + "/"
_LISTED_FILES = 5


class PlacedFiles:
    """Places models below ``files/`` of the repository's prefix, each at its first use by an
    endpoint.

    ``scope`` is the repository, the parent of the custom resources.
    """

    def __init__(self, scope: Construct, prefix: ServedPrefix, options: PrefixOptions) -> None:
        self._scope = scope
        self._prefix = prefix
        self._options = options
        self._placed: dict[str, tuple[FileSync, StagedModel]] = {}

    def check(self, name: str, loaded: LoadedModels, model: str) -> list[Finding]:
        """Check the names of a model's files, and return warnings.

        Raises:
            ArchiveError: SageMaker could not place a file; the message lists all of them.
        """
        assert isinstance(loaded, LocalModels)
        files = list_files(loaded.repository, loaded.contents_of(model))
        prefix = self._prefix_of(name)
        problems = name_problems(
            files.paths, "" if is_token(prefix) else f"{prefix}{_DIGEST_FOLDER}"
        )
        if problems:
            raise ArchiveError(
                "\n".join(f"{loaded.description}: {problem}" for problem in problems)
            )
        return [_not_executable(files.executables)] if files.executables else []

    def locate(
        self, name: str, loaded: LoadedModels, model: str, reader: Construct
    ) -> ModelLocation:
        """Return the place of a model's files, and create the custom resource that places them.

        Raises:
            InvalidValueError: ``reader`` is in another stack, and the repository deletes old
                models.
        """
        assert isinstance(loaded, LocalModels)
        self._prefix.refuse_pruning_for(reader)
        if name not in self._placed:
            staged = stage(
                loaded.repository, loaded.contents_of(model), asset_directory(self._scope)
            )
            self._placed[name] = (self._sync(name, staged), staged)
        sync, staged = self._placed[name]
        bucket = self._prefix.bucket
        return ModelLocation(
            f"s3://{bucket.bucket_name}/{sync.prefix}",
            tuple(read_statements(bucket, sync.prefix, self._prefix.keys)),
            is_compressed=False,
            size_bytes=staged.size_bytes,
            unpacked_size_bytes=staged.size_bytes
            + environment_bytes(loaded.repository, loaded.contents_of(model)),
            downloads_weights=downloads_weights(loaded.repository, loaded.contents_of(model)),
            dependencies=(sync,),
            encryptions=(sync.resource,) if self._prefix.keys.all else (),
        )

    def _prefix_of(self, name: str) -> str:
        # A name may contain slashes; no model's prefix must be below that of another.
        return f"{self._options.prefix}{FILES_FOLDER}{name.replace('/', '--')}/"

    def _sync(self, name: str, staged: StagedModel) -> FileSync:
        """Create the custom resource that places the files of a model in the bucket."""
        options = self._options
        return FileSync(
            self._scope,
            f"Files-{name}",
            bucket=self._prefix.bucket,
            prefix=self._prefix_of(name),
            staged=staged,
            keys=self._prefix.keys,
            asset_encryption_key=options.asset_encryption_key,
            prune_after=options.prune_after,
            # A bucket that is not empty cannot be deleted. A bucket of the user is never emptied.
            remove_on_delete=self._prefix.is_deleted_with_stack,
        )


def _not_executable(files: Sequence[str]) -> Finding:
    """Return the warning that files lose their execute permission in S3."""
    listed = ", ".join(files[:_LISTED_FILES]) + (", ..." if len(files) > _LISTED_FILES else "")
    return Finding(
        "files-not-executable",
        Severity.WARNING,
        "compression_type",
        f"objects in S3 have no execute permission, so these files lose theirs: {listed}",
        "use CompressionType.GZIP if the model runs one of them; otherwise run chmod -x on them",
        source="SageMaker API reference: S3ModelDataSource",
    )
