"""Where SageMaker offers instance pools. The list and its source are in ``instance_pools.json``."""

from __future__ import annotations

from triton_model_check.facts.published import load

__all__ = ["instance_pool_regions"]


def instance_pool_regions() -> tuple[str, ...]:
    """Return the Regions that AWS named for instance pools; others may have been added since."""
    return tuple(load("instance_pools")["regions"])
