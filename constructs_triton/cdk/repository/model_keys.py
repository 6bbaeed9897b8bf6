"""The KMS keys of a repository's models: the current one, and those that models may still have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from constructs_triton.cdk.validation.property_types import KEY, check_has, check_type
from constructs_triton.custom_resource_handlers.model_sync.properties import SyncProperties

__all__ = ["ModelKeys", "check_previous_keys"]


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
    def arns(self) -> list[str]:
        return [key.key_arn for key in self.all]

    def read_statements(self) -> list[iam.PolicyStatement]:
        """Return the permission of an endpoint's role to decrypt models; none without a key."""
        if not self.all:
            return []
        return [iam.PolicyStatement(sid="DecryptModels", actions=["kms:Decrypt"], resources=self.arns)]

    def with_keys(self, properties: SyncProperties) -> SyncProperties:
        """Add the keys to the properties of a custom resource."""
        return replace(
            properties,
            encryption_key=None if self.current is None else self.current.key_arn,
            previous_encryption_keys=[key.key_arn for key in self.previous],
            creates_bucket=self.creates_bucket,
        )


def check_previous_keys(keys: Sequence[kms.IKey]) -> None:
    """Check the keys that models may still have.

    Raises:
        InvalidValueError: not a list of keys.
    """
    check_type("previous_encryption_keys", keys, ((list, tuple), "[key]"))
    for number, key in enumerate(keys):
        check_has(f"previous_encryption_keys[{number}]", key, *KEY)
