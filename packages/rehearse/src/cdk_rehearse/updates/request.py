"""What to rehearse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from .versions import Version

__all__ = ["Failures", "Request"]

Failures = Literal["each", "none"]


@dataclass(frozen=True)
class Request:
    """What to rehearse.

    Args:
        old: The deployed version.
        new: The version to deploy.
        fleets: Instances of endpoints before the update, by name or logical ID.
        failures: Whether each step fails once.
        orders: 1 for a calm account, 2 for another order of independent resources too.
    """

    old: Version
    new: Version
    fleets: Mapping[str, int] = field(default_factory=dict)
    failures: Failures = "each"
    orders: int = 1
