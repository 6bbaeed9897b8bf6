"""The types of custom resources that the reader of templates knows."""

from __future__ import annotations

from constructs_triton_core.cloud_assembly import scaling, shapes
from constructs_triton_functions import adoption, scaling_guard


def test_types_are_those_of_the_functions() -> None:
    """The functions import nothing of core, so both declare the types, and with the same values."""
    assert shapes.ADOPTED_TYPE == adoption.ADOPTED_TYPE
    assert scaling._TARGETS[1] == scaling_guard.TARGET_TYPE
    assert scaling._POLICIES[1] == scaling_guard.POLICY_TYPE
