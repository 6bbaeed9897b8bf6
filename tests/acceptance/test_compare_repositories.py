"""``compare_repositories`` with the Triton server,
on a model whose rate is known by construction.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from triton_server import needs_server
from tuned_models import write_model

from constructs_triton_core.errors import InvalidValueError, LocalEndpointError
from constructs_triton_tools.measuring.tuning import compare_repositories
from constructs_triton_tools.measuring.tuning.comparison import ComparisonVerdict

BUDGET_MINUTES = 2
#: A machine that is busy with other tests blurs the rates, and the comparison says so.
ATTEMPTS = 2
pytestmark = [needs_server, pytest.mark.xdist_group("tune")]


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A repository whose model has one instance, which uses one of two slots for 5 ms per item."""
    write_model(tmp_path / "one", "short slots")
    return tmp_path / "one"


def test_second_instance_is_faster(one: Path, tmp_path: Path) -> None:
    """A configuration with two instances, which use both slots, holds about twice the rate.

    A machine with twice as many programs as processors may tell nothing, or the reverse.
    """
    write_model(tmp_path / "two", "short slots", instances=2)
    for _ in range(ATTEMPTS):
        try:
            found = compare_repositories(
                one, tmp_path / "two", latency_ms=60, rounds=3, step_seconds=1
            )
        except (InvalidValueError, LocalEndpointError) as error:
            if "too busy" in str(error) or "holds no rate" in str(error):
                pytest.skip(f"the machine is too busy: {error}")
            raise
        is_busy = os.getloadavg()[0] > 2 * (os.cpu_count() or 1)
        assert is_busy or found.verdict is not ComparisonVerdict.SLOWER, found
        if found.verdict is ComparisonVerdict.FASTER:
            assert 1.2 < found.ratio < 3.5, found
            return
    pytest.skip(f"the machine is too busy: {found}")
