"""Names of models and prefixes as parts of S3 keys."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.model_repository.s3_keys import (
    archive_pattern,
    check_folder_prefix,
    check_model_name,
    pattern_owner,
)


def test_pattern_matches_archives_of_one_model() -> None:
    """The owner of a pattern's archives is the model of the pattern; other names have no owner."""
    assert archive_pattern("team/resnet") == "team/resnet-????????.tar.gz"
    assert pattern_owner("team/resnet-0a1b2c3d.tar.gz") == "team/resnet"
    assert pattern_owner("scorer-backbone.tar.gz") == "scorer"
    for other in (
        "resnet.tar.gz",
        "resnet-0a1b2c3d.zip",
        "-0a1b2c3d.tar.gz",
        "resnet_0a1b2c3d.tar.gz",
    ):
        assert pattern_owner(other) is None


@pytest.mark.parametrize("name", ["resnet", "team/res-net.v2", "_a", "a" * 512])
def test_valid_names_of_models(name: str) -> None:
    """Letters, digits, three punctuation marks and folders are allowed."""
    check_model_name("name", name)


@pytest.mark.parametrize(
    ("check", "prefix", "hint"),
    [
        (check_folder_prefix, "models", 'write "models/"'),
        (check_folder_prefix, "/models/", 'write "models/"'),
        (check_folder_prefix, "/", 'write "models/"'),
        (check_folder_prefix, "s3://bucket/a/b", 'must not contain the bucket, .*; write "a/b/"'),
        *(
            (check_model_name, name, "prefix: must be letters, digits,")
            for name in ("", "a b", "/a", "a//b", "a/", "../a", "-a", "ä", "a" * 513)
        ),
    ],
)
def test_prefix_that_would_give_another_key(
    check: Callable[[str, str], None], prefix: str, hint: str
) -> None:
    """A wrong slash is an error with the prefix to write, and so is a name that no key can have."""
    with pytest.raises(InvalidValueError, match=hint):
        check("prefix", prefix)


def test_valid_prefixes() -> None:
    """The prefix of a folder ends with a slash."""
    check_folder_prefix("prefix", "a/b/")
