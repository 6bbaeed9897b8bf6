"""``verify_responses``: the recorded requests and responses of an endpoint, read from a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton.cdk.options.async_inference import AsyncInferenceConfig
from constructs_triton.cdk.validation.property_types import shown
from constructs_triton_core.errors import InvalidValueError, MissingDependencyError
from constructs_triton_core.tokens import is_lookup_dummy, is_token

if TYPE_CHECKING:
    from constructs_triton_client.recorded_requests import RecordedRequests

#: What the function reads into its memory, and how many requests it can send in its time.
_MAXIMUM_BYTES, _MAXIMUM_REQUESTS = 20 * 2**20, 100


def read_recorded(
    path: str | Path | None, async_inference: AsyncInferenceConfig | None, *, serves_many: bool
) -> str | None:
    """Read recorded requests that an endpoint can answer, as the JSON that the function reads.

    Raises:
        InvalidValueError: the file cannot be read or is too large, or its requests are for another
            type of endpoint.
    """
    if path is None:
        return None
    if async_inference is not None:
        raise InvalidValueError(
            "verify_responses: not supported together with async_inference, whose responses are "
            "queued; remove one of them"
        )
    if is_lookup_dummy(path):
        return None
    if is_token(path):
        raise InvalidValueError(
            "verify_responses: must be a path that is known at synth, because the file is read "
            f"then, got {shown(path)}; write the path of a file"
        )
    recorded = _recorded_requests().from_file(path)
    compiled = json.dumps(recorded.compile())
    if len(recorded.requests) > _MAXIMUM_REQUESTS or len(compiled) > _MAXIMUM_BYTES:
        raise InvalidValueError(
            f"verify_responses: {path} may have at most {_MAXIMUM_REQUESTS} requests and "
            f"{_MAXIMUM_BYTES} bytes, got {len(recorded.requests)} "
            f"and {len(compiled)}; record fewer requests"
        )
    _check_target_models(
        path, [each.target_model for each in recorded.requests], serves_many=serves_many
    )
    return compiled


def _recorded_requests() -> type[RecordedRequests]:
    # Here because it loads NumPy, which synthesis does not need otherwise.
    try:
        from constructs_triton_client.recorded_requests import RecordedRequests
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"verify_responses: {error.name} is not installed, which reads recorded requests; "
            "run `pip install 'constructs-triton[testing]'`"
        ) from None
    return RecordedRequests


def _check_target_models(
    path: str | Path, target_models: Sequence[str | None], *, serves_many: bool
) -> None:
    """Check that recorded requests name their models exactly where each request has to."""
    for number, target_model in enumerate(target_models, start=1):
        if serves_many and target_model is None:
            raise InvalidValueError(
                f"verify_responses: request {number} needs a target_model on a multi-model "
                f"endpoint; add it to {path}"
            )
        if not serves_many and target_model is not None:
            raise InvalidValueError(
                f"verify_responses: request {number} must not have a target_model on an endpoint "
                f'of one model, got "{target_model}"; remove it from {path}'
            )
