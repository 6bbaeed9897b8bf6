"""The prefix of what SageMaker writes."""

from __future__ import annotations

import pytest

from constructs_triton.cdk.options.s3_destination import check_prefix
from constructs_triton_core.errors import InvalidValueError


@pytest.mark.parametrize(
    ("prefix", "hint"),
    [
        ("", 'write "captured"'),
        ("/", 'write "captured"'),
        ("out/", 'write "out"'),
        ("/out", 'write "out"'),
        ("s3://bucket/out", 'must not contain the bucket, .*write "out"'),
    ],
)
def test_prefix_that_would_give_another_key(prefix: str, hint: str) -> None:
    """A slash at an end is an error with the prefix to write, and so is an empty prefix."""
    with pytest.raises(InvalidValueError, match=hint):
        check_prefix("prefix", prefix)


def test_valid_prefix() -> None:
    """Folders are separated by slashes."""
    check_prefix("prefix", "a/b")
