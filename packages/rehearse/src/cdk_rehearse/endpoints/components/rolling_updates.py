"""How many copies of a component a rolling update replaces together.

Source: SageMaker API reference, InferenceComponentRollingUpdatePolicy and
InferenceComponentCapacitySize; the messages are those that the service has been seen to send.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...moto_account.refusals import ValidationError

_LEAST_PERCENT = 5
_MOST_PERCENT = 50


def batch_size(copies: int, deployment: Mapping[str, Any] | None) -> int:
    """Return how many copies are replaced together: all without a rolling update.

    Raises:
        ValidationError: the policy does not fit the number of copies.
    """
    if deployment is None:
        return copies

    size = deployment["RollingUpdatePolicy"]["MaximumBatchSize"]
    value = size["Value"]
    if size["Type"] == "COPY_COUNT":
        if value > copies > 0:
            raise ValidationError(f"MaximumBatchSize {value} is more than the {copies} copies.")
        return min(int(value), copies)

    if not _LEAST_PERCENT <= value <= _MOST_PERCENT:
        raise ValidationError("MaximumBatchSize must be between 5% to 50% of the copy count.")
    share = copies * int(value) // 100
    return min(copies, max(1, share))


def steps_of(copies: int, batch: int) -> int:
    """Return in how many steps copies are replaced."""
    return max(1, math.ceil(copies / batch)) if batch else 1
