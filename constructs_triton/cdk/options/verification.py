"""``Verification``: recorded requests that a deployment sends to the endpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton.errors import InvalidValueError

if TYPE_CHECKING:
    from constructs_triton_client.recorded_requests import RecordedRequests

__all__ = ["Verification"]

#: What the function reads into its memory, and how many requests it can send in its time.
_MAXIMUM_BYTES, _MAXIMUM_REQUESTS = 20 * 2**20, 100


@dataclass(frozen=True, slots=True)
class Verification:
    """Recorded requests that each deployment sends to the endpoint, when it is in service.

    A response that differs from the recorded one fails the deployment, and CloudFormation rolls it back.
    Traffic has shifted to the new instances by then. To compare before traffic shifts, use a shadow variant,
    or a canary deployment with alarms.

    Args:
        requests: File that ``constructs-triton invoke --record`` writes, with at most 100 requests and 20 MiB
            of tensors.

    Raises:
        InvalidValueError: the file cannot be read, or is too large.
    """

    requests: str | Path

    def __post_init__(self) -> None:
        self.compiled()

    def compiled(self) -> str:
        """Return the requests as the JSON that the function reads."""
        recorded = self._recorded()
        text = json.dumps(recorded.compile())
        if len(recorded.requests) > _MAXIMUM_REQUESTS or len(text) > _MAXIMUM_BYTES:
            raise InvalidValueError(
                f"verification: {self.requests} may have at most {_MAXIMUM_REQUESTS} requests and "
                f"{_MAXIMUM_BYTES} bytes, got {len(recorded.requests)} and {len(text)}; record fewer requests"
            )
        return text

    def target_models(self) -> tuple[str | None, ...]:
        """Return the target model of each request."""
        return tuple(each.target_model for each in self._recorded().requests)

    def _recorded(self) -> RecordedRequests:
        from constructs_triton_client.recorded_requests import RecordedRequests

        return RecordedRequests.from_file(self.requests)
