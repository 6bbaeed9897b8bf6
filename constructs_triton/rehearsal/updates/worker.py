"""The process that rehearses: reads pickled requests on standard input, and writes pickled answers.

moto's state and this package's changes to its classes belong to a process, which is therefore not the user's.
It starts once and rehearses as often as it is asked to.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from importlib import import_module

from constructs_triton import rehearsal
from constructs_triton.errors import ConstructsTritonError

from ..errors import StackError

__all__ = ["serve"]


def serve() -> None:
    """Answer requests until standard input is closed. What is printed goes to standard error."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that temporary files are deleted
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_answer(request), answers)
        answers.flush()


def _answer(request: object) -> object:
    try:
        _ = rehearsal.SimulatedAccount  # raises MissingDependencyError without moto
        import_module("constructs_triton.rehearsal.services.shared_models").share_service_models()
        return import_module("constructs_triton.rehearsal.updates.simulation").simulate(request)
    except ConstructsTritonError as error:
        return error
    except StackError as error:
        return ConstructsTritonError(f"the rehearsal stopped: {error}")


if __name__ == "__main__":
    serve()
