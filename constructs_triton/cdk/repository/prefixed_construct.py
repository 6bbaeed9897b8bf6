"""A construct whose models multi-model endpoints load from an S3 prefix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk.repository.model_bucket import read_statements
from constructs_triton.cdk.repository.model_sync import ModelSync
from constructs_triton.cdk.repository.served_prefix import ServedPrefix
from constructs_triton.cdk.repository.target_model import TargetModel
from constructs_triton.custom_resource_handlers.model_sync.properties import INDEX_FILE

__all__ = ["PrefixedConstruct"]


class PrefixedConstruct(Construct):
    """The part of a model repository that concerns multi-model endpoints."""

    _prefix: ServedPrefix

    @property
    def target_models(self) -> Mapping[str, TargetModel]:
        """The ``TargetModel`` of each model of a multi-model endpoint, by the model's name.

        Empty for ``ModelSource.from_archive_prefix``, whose archives are not known.
        """
        return MappingProxyType(self._prefix.target_models)

    @property
    def bucket(self) -> s3.IBucket:
        """The bucket that multi-model endpoints load models from. The first use may create it."""
        return self._prefix.bucket

    @property
    def creates_bucket(self) -> bool:
        """Whether the repository creates its bucket, instead of using one that was given."""
        return self._prefix.creates_bucket

    @property
    def prefix(self) -> str:
        """The key prefix of the archives in the bucket; it ends with ``/``."""
        return self._prefix.prefix

    @property
    def model_data_url(self) -> str:
        """``s3://<bucket>/<prefix>``: the ``ModelDataUrl`` of a multi-model endpoint."""
        return f"s3://{self.bucket.bucket_name}/{self.prefix}"

    @property
    def index_url(self) -> str:
        """``s3://<bucket>/<prefix>index.json``: a file from which clients read each model's target model."""
        return f"{self.model_data_url}{INDEX_FILE}"

    def sync(self) -> ModelSync | None:
        """Return the custom resource that copies the archives; models that load them must depend on it.

        ``None`` for ``ModelSource.from_archive_prefix``.

        Raises:
            InvalidValueError: there are no models, models that are not in archives, or archives that a grant
                for another model would allow.
        """
        return self._prefix.sync()

    # Permissions.

    def grant_read_index(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to read ``index.json``, which ``TritonClient`` finds the archive of a model in.

        The grant includes the decryption with the bucket's KMS key.

        Args:
            grantee: Who gets the permission.
        """
        return self._prefix.grant_read_index(grantee)

    def grant_manage_models(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow a principal to list, add and remove models, for example the role of a training job.

        This is what ``constructs_triton.operations.ModelLibrary`` and ``constructs-triton models`` need. The
        grant includes the bucket's KMS key.

        Args:
            grantee: Who gets the permission.
        """
        return self._prefix.grant_manage(grantee)

    def grant_patterns(self, target_models: Sequence[str]) -> list[str]:
        """Return the ``TargetModel`` patterns that a grant for models, archives or patterns allows.

        A model is covered whatever its content, so that the grant also allows its next archive.

        Args:
            target_models: Names of models, archives, or patterns with ``*`` and ``?``.

        Raises:
            InvalidValueError: the repository has no archive of that name, so the grant would allow nothing.
        """
        return self._prefix.grant_patterns(target_models)

    def read_statements(self) -> list[iam.PolicyStatement]:
        """Return the permissions of a multi-model endpoint's role: read and list the archives."""
        return read_statements(self.bucket, self.prefix)
