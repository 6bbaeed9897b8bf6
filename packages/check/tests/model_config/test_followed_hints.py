"""The hints of the checks, followed literally on their examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_examples import EXAMPLES, code_of
from hint_cases import CASES, REASONS, left_after

from triton_model_check.model_config.checks import RULES


@pytest.mark.parametrize("key", sorted(CASES))
def test_followed_hint_leads_to_success(key: str, tmp_path: Path) -> None:
    """After the steps of the hint the check reports neither this finding nor another error."""
    assert left_after(key, tmp_path) == []


def test_every_check_has_a_followed_hint_or_a_reason() -> None:
    """A check without a case says why its hint cannot be followed on one machine, and no other check does."""
    followed = {code_of(key) for key in CASES}
    assert set(RULES) - followed == set(REASONS)
    assert set(CASES) <= set(EXAMPLES)
