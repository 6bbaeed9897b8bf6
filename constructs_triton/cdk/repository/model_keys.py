"""The KMS keys of a repository's models: the current one, and those that models may still have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys
from constructs_triton_functions.model_sync.properties import SyncProperties

__all__ = ["ModelKeys"]


@dataclass(frozen=True, slots=True)
class ModelKeys:
    """The keys that roles need to read models; ``current`` is ``None`` if it is not known or there is none.

    ``creates_bucket`` is whether the bucket belongs to the repository.
    """

    current: kms.IKey | None
    previous: Sequence[kms.IKey]
    creates_bucket: bool

    @property
    def all(self) -> list[kms.IKey]:
        """The current key first."""
        return [*([] if self.current is None else [self.current]), *self.previous]

    @property
    def data(self) -> DataUnderKeys:
        """The models with their keys."""
        return DataUnderKeys("models", [("bucket", self.current)], self.previous)

    def read_statements(self) -> list[iam.PolicyStatement]:
        """Return the permission of an endpoint's role to decrypt models; none without a key."""
        return self.data.read_statements("DecryptModels")

    def with_keys(self, properties: SyncProperties) -> SyncProperties:
        """Add the keys to the properties of a custom resource."""
        return replace(
            properties,
            encryption_key=None if self.current is None else self.current.key_arn,
            previous_encryption_keys=[key.key_arn for key in self.previous],
            creates_bucket=self.creates_bucket,
        )
