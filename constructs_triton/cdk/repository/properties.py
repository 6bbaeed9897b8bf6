"""Checks of the properties of a model repository, before it is added to the construct tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys, check_previous_keys
from constructs_triton.cdk.repository.loaded_models import (
    LoadedModels,
    PackagedModel,
    PackedModels,
    StoredModels,
    UncompressedModels,
)
from constructs_triton.cdk.repository.looked_up_models import LookedUpModels
from constructs_triton.cdk.repository.model_source import ModelSource
from constructs_triton.cdk.validation.limit_checks import whole_seconds
from constructs_triton.cdk.validation.property_types import (
    BUCKET,
    KEY,
    check_has,
    check_type,
    shown,
)
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding
from constructs_triton_core.spelling import did_you_mean
from constructs_triton_core.tokens import is_token
from triton_model_check.model_repository.s3_keys import check_folder_prefix

DEFAULT_PREFIX = "models/"
_OF_EVERY_PREFIX = ("previous_encryption_keys", "asset_encryption_key")


class CompressionType(StrEnum):
    """How the models of a single-model endpoint are stored in S3."""

    GZIP = "Gzip"
    """One ``.tar.gz`` archive, which SageMaker unpacks on each instance."""

    NONE = "None"
    """One object for each file. After a change, only the changed files are uploaded."""


class TargetModelNaming(StrEnum):
    """How the archives of a multi-model endpoint are named."""

    CONTENT = "content"
    """``resnet-3f9c2a1b.tar.gz``: new content has a new name,
    and ``index.json`` names the current one.
    """

    PLAIN = "plain"
    """``resnet.tar.gz``: an instance that has loaded it keeps serving the old
    content after a change.
    """


@dataclass(frozen=True, slots=True)
class RepositoryCheck:
    """Whether a repository is checked, and which findings are accepted.

    Create one with :meth:`on` or :meth:`off`.

    Args:
        is_enabled: Whether anything is checked.
        acknowledged: Codes of findings that are neither raised nor shown.
    """

    is_enabled: bool = True
    acknowledged: frozenset[str] = frozenset()

    @classmethod
    def on(cls, *, acknowledge: Iterable[str] = ()) -> RepositoryCheck:
        """Check everything, except for findings that are acknowledged.

        Args:
            acknowledge: Codes of findings, as ``constructs-triton check`` prints them.

        Raises:
            InvalidValueError: an unknown code.
        """
        if is_token(acknowledge) or not isinstance(acknowledge, Iterable):
            raise InvalidValueError(
                f"acknowledge: must be a list that is known at synth, got {shown(acknowledge)}; "
                'write for example ["unused-file"]'
            )
        codes = frozenset([acknowledge] if isinstance(acknowledge, str) else acknowledge)
        if codes:
            _refuse_unknown(codes)
        return cls(acknowledged=codes)

    @classmethod
    def off(cls) -> RepositoryCheck:
        """Check nothing. Mistakes in the models are found when the endpoint starts."""
        return cls(is_enabled=False)


def kept_findings(check: RepositoryCheck, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that are raised or shown."""
    return [each for each in findings if check.is_enabled and each.code not in check.acknowledged]


def _refuse_unknown(codes: frozenset[str]) -> None:
    from triton_model_check.checks.check_run import RULES

    for code in sorted(codes - RULES.keys()):
        hint = did_you_mean(code, RULES, "write a code that `constructs-triton check` prints")
        raise InvalidValueError(f'acknowledge: no check has this code, got "{code}"; {hint}')


def check_source(source: ModelSource | None) -> None:
    """Check that the source is a ``ModelSource`` and not a path."""
    check_type("source", source, (ModelSource, 'ModelSource.from_directory("models")'))


def known_naming(naming: TargetModelNaming) -> TargetModelNaming:
    """Return the naming, which may also be a string.

    Raises:
        InvalidValueError: an unknown naming.
    """
    try:
        return TargetModelNaming(naming)
    except ValueError:
        known = " or ".join(f'"{each}"' for each in TargetModelNaming)
        raise InvalidValueError(
            f"target_model_naming: must be {known}, got {shown(naming)}; use one of them"
        ) from None


def check_bucket(
    bucket: s3.IBucket | None, encryption_key: kms.IKey | None, versioned: bool
) -> None:
    """Check the bucket, and the properties of the bucket that the construct creates."""
    check_has("bucket", bucket, *BUCKET)
    check_type("versioned", versioned, (bool, "True"))
    check_has("encryption_key", encryption_key, *KEY)
    given = {"encryption_key": encryption_key is not None, "versioned": versioned}
    for name in (name for name, is_given in given.items() if is_given and bucket is not None):
        raise InvalidValueError(
            f"{name}: cannot be combined with bucket; remove it here, and set it on the bucket"
        )


def check_retention(prune_after: Duration | None) -> None:
    """Check that archives are not deleted while a deployment may still roll back to them."""
    check_type("prune_after", prune_after, (Duration, "Duration.days(30)"))
    if prune_after is None:
        return
    if is_token(prune_after):
        raise InvalidValueError(
            "prune_after: must be known at synth, because a short time deletes archives that a "
            "rollback loads, got a value that is known only at deployment; write Duration.days(30)"
        )
    retention = whole_seconds("prune_after", prune_after)
    if retention < 24 * 60 * 60:
        raise InvalidValueError(
            f"prune_after: must be at least 1 day, got {retention:.0f} seconds; write "
            "Duration.days(1) or more, because an endpoint that "
            "is rolled back may still load old archives"
        )


def check_compression_type(loaded: LoadedModels, given: CompressionType | None) -> bool:
    """Return whether a deployment places the models as files.

    Raises:
        InvalidValueError: the source cannot be stored in that way.
    """
    if isinstance(loaded, PackedModels):
        return given is CompressionType.NONE
    if given is None or given is _type_of(loaded):
        return False
    fix = "remove compression_type"
    if _type_of(loaded) is CompressionType.GZIP:
        fix = "use ModelSource.from_directory, or remove compression_type"
    raise InvalidValueError(
        f"compression_type: cannot be changed for {loaded.description}, got "
        f"CompressionType.{given.name}; {fix}"
    )


def check_key_has_effect(
    repository: str, loaded: LoadedModels, *, is_placed: bool, publishes_metrics: bool
) -> None:
    """Check that a model of a repository with an ``encryption_key`` is encrypted with it.

    The key is that of the repository's bucket. A multi-model endpoint loads from that bucket. A
    single-model endpoint does so only if a deployment places the model's files there.

    Args:
        repository: Path of the construct, for the message.
        loaded: The source of the model.
        is_placed: Whether a deployment places the model's files in the repository's bucket.
        publishes_metrics: Whether the archive gets the model that publishes Triton's metrics.

    Raises:
        InvalidValueError: the model is read from another place, under another key.
    """
    # The next synthesis knows the models.
    if is_placed or isinstance(loaded, LookedUpModels):
        return

    raise InvalidValueError(
        f"model_repository: encryption_key of {repository} encrypts the repository's bucket, but "
        f"the models of this endpoint stay in {_place_of(loaded)}; "
        f"{_fix_of_unused_key(loaded, publishes_metrics=publishes_metrics)}"
    )


def _place_of(loaded: LoadedModels) -> str:
    """Where a single-model endpoint reads models that no deployment places."""
    if isinstance(loaded, StoredModels):
        return "a bucket of their own"
    if isinstance(loaded, PackagedModel):
        return "a model package"
    return "the CDK's asset bucket"


def _fix_of_unused_key(loaded: LoadedModels, *, publishes_metrics: bool) -> str:
    """Return how to fix an ``encryption_key`` that has no effect."""
    if isinstance(loaded, StoredModels):
        return "remove encryption_key, and encrypt that bucket"
    if isinstance(loaded, PackagedModel):
        return "remove encryption_key"

    place = (
        "set compression_type=CompressionType.NONE, which places files in the repository's bucket"
    )
    remove = (
        "remove encryption_key, and encrypt the asset bucket with "
        "`cdk bootstrap --bootstrap-kms-key-id`"
    )
    if not isinstance(loaded, PackedModels):
        # An archive of others is uploaded as it is.
        return f"use ModelSource.from_directory and {place}, or {remove}"
    if publishes_metrics:
        # The model that publishes metrics is added to an archive only.
        return f"{remove}, or remove container_metrics and {place}"
    return f"{place}, or {remove}"


def _type_of(loaded: LoadedModels) -> CompressionType | None:
    """How models are stored that were packed or uploaded by others; ``None`` for a package."""
    if isinstance(loaded, PackagedModel):
        return None
    return CompressionType.NONE if isinstance(loaded, UncompressedModels) else CompressionType.GZIP


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixOptions:
    """The properties of a repository that concern the prefix."""

    bucket: s3.IBucket | None = None
    prefix: str = DEFAULT_PREFIX
    prune_after: Duration | None = None
    encryption_key: kms.IKey | None = None
    versioned: bool = False
    target_model_naming: TargetModelNaming = TargetModelNaming.CONTENT
    removal_policy: RemovalPolicy = RemovalPolicy.RETAIN
    previous_encryption_keys: Sequence[kms.IKey] = ()
    asset_encryption_key: kms.IKey | None = None

    @property
    def asset_keys(self) -> list[kms.IKey]:
        """The keys that objects of the CDK's asset bucket may have."""
        current = self.asset_encryption_key
        return [*([] if current is None else [current]), *self.previous_encryption_keys]

    def data(self) -> list[DataUnderKeys]:
        """What is encrypted for the repository, in its bucket and in the CDK's asset bucket."""
        bucket_key = None if self.bucket is None else self.bucket.encryption_key
        keys = [("encryption_key", self.encryption_key), ("bucket", bucket_key)]
        asset_keys = [("asset_encryption_key", self.asset_encryption_key)]
        return [
            DataUnderKeys("models", keys, self.previous_encryption_keys),
            DataUnderKeys("uploaded archives", asset_keys),
        ]

    def checked(self) -> PrefixOptions:
        """Check the properties, and return them with the naming as ``TargetModelNaming``."""
        check_bucket(self.bucket, self.encryption_key, self.versioned)
        check_previous_keys(self.previous_encryption_keys)
        check_has("asset_encryption_key", self.asset_encryption_key, *KEY)
        check_type("removal_policy", self.removal_policy, (RemovalPolicy, "RemovalPolicy.DESTROY"))
        if self.removal_policy is RemovalPolicy.SNAPSHOT:
            raise InvalidValueError(
                "removal_policy: buckets have no snapshots, got SNAPSHOT; use RETAIN or DESTROY"
            )
        if self.removal_policy is RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE:
            raise InvalidValueError(
                "removal_policy: after a failed creation, CloudFormation could not delete a bucket "
                "that contains models already, "
                "got RETAIN_ON_UPDATE_OR_DELETE; use RETAIN or DESTROY"
            )
        check_folder_prefix("prefix", self.prefix)
        check_retention(self.prune_after)
        return replace(self, target_model_naming=known_naming(self.target_model_naming))

    def refuse_with_archive_prefix(self) -> None:
        """Check that no property is set that only a prefix that a deployment fills can have."""
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name not in _OF_EVERY_PREFIX and value is not None and value != each.default:
                raise InvalidValueError(
                    f"{each.name}: not supported with ModelSource.from_archive_prefix, whose "
                    "prefix other programs fill; remove it"
                )
