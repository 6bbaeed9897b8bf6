"""Checks of the properties of a model repository, before it is added to the construct tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from constructs_triton.cdk.repository.model_source import ModelSource
from constructs_triton.cdk.repository.target_model import TargetModelNaming
from constructs_triton.cdk.validation.limit_checks import whole_seconds
from constructs_triton.cdk.validation.property_types import BUCKET, KEY, check_has, check_type
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding
from constructs_triton_core.spelling import did_you_mean
from constructs_triton_core.tokens import is_token


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
    from triton_model_check.model_config.check_run import RULES

    for code in sorted(codes - RULES.keys()):
        hint = did_you_mean(code, RULES, "write a code that `constructs-triton check` prints")
        raise InvalidValueError(f'acknowledge: no check has this code, got "{code}"; {hint}')


DEFAULT_PREFIX = "models/"


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
            f"target_model_naming: must be {known}, got {naming!r}; use one of them"
        ) from None


def check_bucket(bucket: s3.IBucket | None, encryption_key: kms.IKey | None, versioned: bool) -> None:
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
    if prune_after is None or is_token(prune_after):
        return
    retention = whole_seconds("prune_after", prune_after)
    if retention < 24 * 60 * 60:
        raise InvalidValueError(
            f"prune_after: must be at least 1 day, got {retention:.0f} seconds; write "
            "Duration.days(1) or more, because an endpoint that is rolled back may still load old archives"
        )
