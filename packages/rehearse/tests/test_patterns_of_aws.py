"""Values of foreign templates and the patterns of AWS."""

from __future__ import annotations

import pytest

from cdk_rehearse.services.patterns_of_aws import PatternError, is_match

#: The pattern of ``GitConfigUrl`` of SageMaker.
HOSTILE = r"https://([.\-_a-zA-Z0-9]+/?){3,1016}"


@pytest.mark.parametrize("is_whole", [True, False])
def test_pattern_that_takes_too_long_refuses_nothing(is_whole: bool) -> None:
    """What is not known is no error, and the pattern is not asked a second time."""
    pattern = HOSTILE if is_whole else f"^{HOSTILE}$"
    assert not is_match(pattern, "http://host", is_whole=is_whole)
    assert is_match(pattern, "https://host/a/b", is_whole=is_whole)
    assert is_match(pattern, "https://" + "." * 200 + "!", is_whole=is_whole)
    assert is_match(pattern, "http://host", is_whole=is_whole)


def test_pattern_for_java_is_an_error() -> None:
    """The caller decides what becomes of it."""
    with pytest.raises(PatternError):
        is_match("[z-a]", "b", is_whole=True)
