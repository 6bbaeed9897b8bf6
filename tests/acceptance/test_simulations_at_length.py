"""Ten thousand random simulations; budget: 3 minutes."""

from __future__ import annotations

import random

import pytest
from random_simulations import check, draw

from constructs_triton_tools.planning import simulate


@pytest.mark.parametrize("part", range(10))
def test_thousand_random_simulations_keep_the_invariants(part: int) -> None:
    """Instances stay in bounds, every request is served, failed or waiting, and a repetition is the same."""
    rng = random.Random(part)
    for _ in range(1000):
        case = draw(rng)
        result = simulate(case.traffic, case.scaling, case.fleet, case.assumptions)
        check(case, result)
        assert result.minutes == simulate(case.traffic, case.scaling, case.fleet, case.assumptions).minutes
