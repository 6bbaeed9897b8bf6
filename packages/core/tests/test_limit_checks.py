"""Limits of the API: both ends are allowed, tokens pass, and messages contain the fix."""

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.limit_checks import check_count, check_name, check_range
from constructs_triton_core.tokens import is_token

TEXT_TOKEN = "${Token[TOKEN.12]}"
NUMBER_TOKEN = -1.8881545897087533e289


def test_bad_variant_name_is_refused() -> None:
    """A name with a space and an exclamation mark raises an error."""
    with pytest.raises(
        InvalidValueError, match=r'^variant_name: must match .*, got "bad name!"; use letters'
    ):
        check_name("variant_name", "bad name!", limits.VARIANT_NAME)


def test_overlong_endpoint_name_is_refused() -> None:
    """A name of 100 characters raises an error with its length."""
    with pytest.raises(
        InvalidValueError,
        match=r"^endpoint_name: must have 1 to 63 .*\(100 char.*shorten it to 63$",
    ):
        check_name("endpoint_name", "e" * 100, limits.ENDPOINT_NAME)


@pytest.mark.parametrize("name", ["a", "a-b", "a--b", "A1", "e" * 63])
def test_good_names_pass(name: str) -> None:
    """Letters, digits, inner hyphens and the maximum length are allowed."""
    check_name("endpoint_name", name, limits.ENDPOINT_NAME)


@pytest.mark.parametrize("name", ["", "-a", "a-", "a_b", "a.b", "é", "e" * 64, "a\n"])
def test_bad_names_are_refused(name: str) -> None:
    """Empty names, hyphens at an end, other characters, long names and a newline raise errors."""
    with pytest.raises(InvalidValueError):
        check_name("endpoint_name", name, limits.ENDPOINT_NAME)


def test_both_ends_of_a_range_are_allowed() -> None:
    """1 and 512 GB are allowed; 0 and 513 raise errors with the nearest allowed value."""
    check_range("volume_size", 1, limits.VOLUME_SIZE_GB)
    check_range("volume_size", 512, limits.VOLUME_SIZE_GB)
    with pytest.raises(
        InvalidValueError, match=r"^volume_size: must be from 1 to 512 GB, got 0; raise it to 1$"
    ):
        check_range("volume_size", 0, limits.VOLUME_SIZE_GB)
    with pytest.raises(InvalidValueError, match=r"got 513; lower it to 512$"):
        check_range("volume_size", 513, limits.VOLUME_SIZE_GB)


def test_not_a_number_is_refused() -> None:
    """NaN is outside of every range."""
    with pytest.raises(InvalidValueError, match="got nan; write a number"):
        check_range("weight", float("nan"), limits.VARIANT_WEIGHT)


def test_counts_are_checked_like_numbers() -> None:
    """Five security groups pass, six raise an error, and a list token is not counted."""
    check_count("security_groups", ["sg"] * 5, limits.SECURITY_GROUPS)
    check_count("security_groups", ["#{Token[TOKEN.3]}"], limits.RangeLimit(2, 5))
    with pytest.raises(InvalidValueError, match="must have 1 to 5 security groups, got 6"):
        check_count("security_groups", ["sg"] * 6, limits.SECURITY_GROUPS)


def test_tokens_pass_every_check() -> None:
    """String and number tokens do not match lengths, patterns or ranges, and pass."""
    check_name("endpoint_name", TEXT_TOKEN, limits.ENDPOINT_NAME)
    check_range("volume_size", NUMBER_TOKEN, limits.VOLUME_SIZE_GB)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (TEXT_TOKEN, True),
        (f"prefix-{TEXT_TOKEN}", True),
        (NUMBER_TOKEN, True),
        (["#{Token[TOKEN.3]}"], True),
        ("$Token", False),
        (-1, False),
        (["plain"], False),
        (None, False),
    ],
)
def test_token_is_recognized_in_every_form(value: object, expected: bool) -> None:
    """A string that contains a token, a number and a list are tokens; plain values are not."""
    assert is_token(value) is expected
