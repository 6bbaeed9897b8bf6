"""What the process that rehearses does with a pickled request: it returns a pickled answer.

The state of the services, and what replaces a part of them, belong to a process, which is therefore
not the user's. It starts once and rehearses as often as it is asked to.
"""

from __future__ import annotations

import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from importlib import import_module

import cdk_rehearse
from constructs_triton_core.errors import ConstructsTritonError

from ..errors import StackError


def answer(request: bytes, send: Callable[[bytes], None] = lambda _: None) -> bytes:
    """Return the rehearsal of a ``Request``, or the error that is to be raised.

    Args:
        request: The pickled request.
        send: Called before with each pickled ``Progress``.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that temporary files are deleted
    return pickle.dumps(_answer(pickle.loads(request), lambda each: send(pickle.dumps(each))))


def _answer(request: object, notify: Callable[[object], None]) -> object:
    """Return the rehearsal of a request, or the error that the caller raises."""
    try:
        _ = cdk_rehearse.SimulatedAccount  # raises MissingDependencyError without moto
        import_module("cdk_rehearse.services.service_api").share_service_models()
        return import_module("cdk_rehearse.updates.simulation").simulate(request, notify)
    except ConstructsTritonError as error:
        return error
    except StackError as error:
        return ConstructsTritonError(f"the rehearsal stopped: {error}")
    except MemoryError:
        raise
    except Exception:  # a traceback cannot be pickled
        return RuntimeError(traceback.format_exc())
