"""What is true of every simulation, whatever the policy, the fleet and the traffic."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_simulations import Case, check, draw

from constructs_triton_tools.planning import simulate


@settings(deadline=None, max_examples=300)
@given(seed=st.integers(0, 2**32))
def test_invariants_of_a_random_simulation(seed: int) -> None:
    """Counts stay in bounds, no request is lost or invented,
    and the same input gives the same output.
    """
    case = draw(random.Random(seed))
    result = simulate(case.traffic, case.scaling, case.fleet, case.assumptions)
    check(case, result)
    assert result == simulate(case.traffic, case.scaling, case.fleet, case.assumptions)


@pytest.mark.parametrize("seed", range(20))
def test_policies_that_only_add_instances_never_remove_one(seed: int) -> None:
    """With ``disable_scale_in`` on every policy and no schedule, the desired count only grows."""
    case: Case = draw(random.Random(seed), only_out=True)
    result = simulate(case.traffic, case.scaling, case.fleet, case.assumptions)
    desired = [minute.desired for minute in result.minutes]
    assert desired == sorted(desired)
