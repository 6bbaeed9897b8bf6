"""Loads the models of a multi-model endpoint before users call them.

SageMaker loads a model when it is called. Each call goes to one instance, so several calls are
needed until several instances have the model. A loaded model can be unloaded again when memory is
needed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constructs_triton_client.transports.transport import Invocation
from constructs_triton_core.errors import InvocationError, ModelNotReadyError
from constructs_triton_tools.operations.diagnosis import Message, recognize

if TYPE_CHECKING:
    from constructs_triton_client.transports.transport import Transport

#: A request without inputs. A model that has been loaded rejects it, unless it has no required
#: inputs.
_EMPTY_REQUEST = b'{"inputs": []}'
#: What a loaded model, and only a loaded one, says about the empty request.
_LOADED = (
    "input-count-request",
    "input-name",
    "input-dtype",
    "input-shape",
    "byte-size",
    "py-execute",
    "decoupled",
)
_LOADING_SECONDS = 360.0
_PAUSE_SECONDS = 5.0
_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class WarmedModel:
    """A model that was called.

    Args:
        target_model: Archive of the model.
        calls: Calls that succeeded.
        error: The error of the last call; ``None`` if the model was loaded.
    """

    target_model: str
    calls: int
    error: InvocationError | None


def expected_instances(calls: int, instances: int) -> float:
    """Return how many instances receive at least one of several calls on average.

    The default routing strategy of SageMaker, ``RANDOM``, chooses a random instance for each call.
    The other strategy chooses the least busy instance, which is about the same for calls one after
    the other.
    """
    return float(instances * (1 - (1 - 1 / instances) ** calls))


def calls_for_most_instances(instances: int) -> int:
    """Return the number of calls that reach 95 percent of the instances on average."""
    if instances <= 1:
        return 1
    return math.ceil(math.log(1 - _SHARE) / math.log(1 - 1 / instances))


def warm_model(
    transport: Transport,
    target_model: str,
    calls: int,
    *,
    pause: Callable[[float], None] = time.sleep,
) -> WarmedModel:
    """Call a model several times, and wait up to 360 seconds while it is loading.

    It stops at the first error that another call would not change.

    Args:
        transport: Transport of the endpoint.
        target_model: Archive of the model.
        calls: How often to call it. Each call goes to one instance.
        pause: Waits for a number of seconds, for tests. Default: ``time.sleep``.
    """
    deadline = time.monotonic() + _LOADING_SECONDS
    done = 0
    while done < calls:
        error = _call(transport, target_model)
        if isinstance(error, ModelNotReadyError) and time.monotonic() < deadline:
            pause(_PAUSE_SECONDS)
            continue
        if error is not None:
            return WarmedModel(target_model, done, error)
        done += 1
    return WarmedModel(target_model, done, None)


def _call(transport: Transport, target_model: str) -> InvocationError | None:
    options: dict[str, Any] = {"TargetModel": target_model}
    try:
        transport.invoke(Invocation(_EMPTY_REQUEST, "application/json", options))
    except InvocationError as error:
        return None if _is_loaded(error) else error
    return None


def _is_loaded(error: InvocationError) -> bool:
    found = recognize(Message(error.model_message or "", "response"))
    return found is not None and found.id in _LOADED
