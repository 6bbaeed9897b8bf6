"""What the properties of a model repository must satisfy before it joins the tree."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from constructs_triton.cdk.repository.model_source import ModelSource
from constructs_triton.cdk.repository.target_model import TargetModelNaming
from constructs_triton.cdk.validation.property_types import BUCKET, KEY, check_has, check_type
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError
from constructs_triton.s3_prefix import check_folder_prefix

__all__ = ["check_bucket", "check_prefix", "check_retention", "check_source", "known_naming"]


def check_source(source: ModelSource | None) -> None:
    """Refuse a bare path."""
    check_type("source", source, (ModelSource, 'ModelSource.from_directory("models")'))


def known_naming(naming: TargetModelNaming) -> TargetModelNaming:
    """The naming, which may be given as its text."""
    try:
        return TargetModelNaming(naming)
    except ValueError:
        known = " or ".join(f'"{each}"' for each in TargetModelNaming)
        raise InvalidValueError(f"target_model_naming: must be {known}, got {naming!r}; use one") from None


def check_prefix(prefix: str) -> None:
    """Check the prefix that the archives are stored under.

    Raises:
        InvalidValueError: not a string, or a prefix that SageMaker would not join with a target model.
    """
    check_type("prefix", prefix, (str, '"models/"'))
    check_folder_prefix("prefix", prefix)


def check_bucket(bucket: s3.IBucket | None, encryption_key: kms.IKey | None, versioned: bool) -> None:
    """Refuse what is no bucket or key, and properties of a bucket that is not made here."""
    check_has("bucket", bucket, *BUCKET)
    check_has("encryption_key", encryption_key, *KEY)
    given = {"encryption_key": encryption_key is not None, "versioned": versioned}
    for name in (name for name, is_given in given.items() if is_given and bucket is not None):
        raise InvalidValueError(
            f"{name}: belongs to the bucket that is made here, got a bucket as well; set it on that bucket"
        )


def check_retention(prune_after: Duration | None) -> None:
    """Refuse to prune what a deployment may still roll back to."""
    check_type("prune_after", prune_after, (Duration, "Duration.days(30)"))
    if prune_after is not None and is_concrete(prune_after) and prune_after.to_seconds() < 24 * 60 * 60:
        raise InvalidValueError(
            f"prune_after: must be a day at least, got {prune_after.to_seconds():.0f} seconds; an endpoint "
            "that is being updated or rolled back may still load what has just lost its name"
        )
