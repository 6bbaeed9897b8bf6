"""How requests are distributed among variants."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constructs_triton_tools.local.gateway.running_endpoint import ShadowShare, TrafficShare
from constructs_triton_tools.local.sources.specs import ContainerSpec, VariantSpec

CONTAINER = ContainerSpec("model", "image", "s3://bucket/key")


def _variants(weights: list[float]) -> list[VariantSpec]:
    return [VariantSpec(f"v{number}", CONTAINER, weight) for number, weight in enumerate(weights)]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any), st.integers(1, 60))
def test_every_run_of_requests_follows_the_weights(weights: list[int], count: int) -> None:
    """No variant is ever more than one request away from its share, and weight 0 receives none."""
    share = TrafficShare(_variants([float(weight) for weight in weights]))
    served = Counter(share.next() for _ in range(count))
    for number, weight in enumerate(weights):
        exact = count * weight / sum(weights)
        assert abs(served[f"v{number}"] - exact) < len(weights)
        assert weight or not served[f"v{number}"]


def test_all_weights_zero_still_answers() -> None:
    """The first variant receives the request."""
    assert TrafficShare(_variants([0, 0])).next() == "v0"


@pytest.mark.parametrize(
    ("production", "shadow", "copied"), [(1.0, 1.0, 8), (1.0, 0.5, 4), (1.0, 2.0, 8), (0.0, 1.0, 0)]
)
def test_a_shadow_gets_its_share_of_production(
    production: float, shadow: float, copied: int
) -> None:
    """The share of copied requests is the shadow's weight relative to production's."""
    first, second = _variants([production, shadow])
    share = ShadowShare(first, second)
    assert sum(share.takes_next() for _ in range(8)) == copied
