"""Checks parts of keys in an S3 bucket: names of models, and prefixes of archives."""

from __future__ import annotations

import json
import re

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.limit_checks import check_string
from constructs_triton_core.tokens import is_token

__all__ = [
    "archive_pattern",
    "check_folder_prefix",
    "check_has_no_bucket",
    "check_model_name",
    "pattern_owner",
]

_MODEL_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_URI = re.compile(r"s3://[^/]*/?(.*)", re.DOTALL)
_LONGEST_NAME = 512
_ARCHIVE_SUFFIX = ".tar.gz"
_ANY_DIGEST = "?" * 8  # as long as the digest in content_name of the function model_sync


def archive_pattern(name: str) -> str:
    """Return the pattern of a model's archives, whatever their content: ``resnet-????????.tar.gz``.

    ``?`` stands for one character, as in IAM policies.
    """
    return f"{name}-{_ANY_DIGEST}{_ARCHIVE_SUFFIX}"


def pattern_owner(target_model: str) -> str | None:
    """Return the name of the model whose pattern matches an archive,
    or ``None`` if there is none.
    """
    stem = target_model.removesuffix(_ARCHIVE_SUFFIX)
    name = stem[: -len(_ANY_DIGEST) - 1]
    rest = stem[-len(_ANY_DIGEST) - 1 :]
    return name if name and rest.startswith("-") and stem != target_model else None


def check_model_name(property: str, name: str) -> None:
    """Check a name that becomes part of the key of an archive.

    Raises:
        InvalidValueError: it is longer than 512 characters, has characters other than letters,
            digits, "_", "-", "." and "/", has an empty part, or is a token.
    """
    if is_token(name) or not _MODEL_NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        got = "a token" if is_token(name) else json.dumps(name[:100], ensure_ascii=False)
        raise InvalidValueError(
            f'{property}: must be letters, digits, "_", "-" and ".", with "/" between folders, and '
            f'at most {_LONGEST_NAME} characters, got {got}; write for example "resnet"'
        )


def check_has_no_bucket(property: str, prefix: str, end: str = "") -> None:
    """Check that a prefix, which belongs to a bucket, is no URI with a bucket of its own.

    ``end`` is what a prefix ends with.

    Raises:
        InvalidValueError: it begins with "s3://".
    """
    uri = _URI.fullmatch(prefix)
    if uri is not None:
        inner = uri[1].strip("/") or "models"
        raise InvalidValueError(
            f'{property}: must not contain the bucket, got "{prefix}"; write "{inner}{end}"'
        )


def check_folder_prefix(property: str, prefix: str, example: str = "models/") -> None:
    """Check a prefix that object names are appended to: it ends with "/" and does not begin with
    it.

    SageMaker appends a target model to the prefix without adding a slash. CDK tokens pass.

    Raises:
        InvalidValueError: not a string, or the prefix does not end with "/" or begins with it.
    """
    if is_token(prefix):
        check_string(property, prefix)
        return
    if not isinstance(prefix, str):
        raise InvalidValueError(
            f'{property}: must be of type str, got {prefix!r}; write "{example}"'
        )
    check_has_no_bucket(property, prefix, "/")
    if prefix.endswith("/") and not prefix.startswith("/"):
        return
    inner = prefix.strip("/")
    raise InvalidValueError(
        f'{property}: must end with "/" and not begin with it, got "{prefix}"; '
        f'write "{f"{inner}/" if inner else example}"'
    )
