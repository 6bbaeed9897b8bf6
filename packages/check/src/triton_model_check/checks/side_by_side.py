"""Checks the models of a large repository in several processes, one for each core.

A copy of this process (``fork``) checks its share of the models and sends what it found through a
pipe. The parent checks a share too. A copy that does not finish, for lack of memory or for a fault
of ours, changes no result: the parent then checks its share itself, and meets the same error.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from constructs_triton_core.processes.children import fork_process
from triton_model_check.untrusted import elsewhere

if TYPE_CHECKING:
    from triton_model_check.checks.model_under_check import ModelUnderCheck

_FEWEST_MODELS_OF_A_PROCESS = 50
_MOST_PROCESSES = 8
# The parent checks some models before, so that not each copy imports the rules.
_FIRST_MODELS = 10

Result = TypeVar("Result")


def check_all(
    models: Sequence[ModelUnderCheck], check: Callable[[ModelUnderCheck], Result]
) -> list[Result]:
    """Return what ``check`` finds in each model, in the order of the models.

    Other threads of this process must hold no lock that a check needs.

    Args:
        models: The models of one repository.
        check: Its result can be pickled.
    """
    processes = _count_processes(models)
    if processes < 2:
        return [check(model) for model in models]

    # From the whole alphabet, because names often begin with the kind of a model.
    first = models[:: -(-len(models) // _FIRST_MODELS)]
    found = _check_share(first, check)
    others = [model for model in models if model.name not in found]
    own, *of_copies = _shares(others, processes)
    with ExitStack() as stack:
        stack.enter_context(_shared_memory())
        pipes = [stack.enter_context(_copy(share, check)) for share in of_copies]
        found |= _check_share(own, check)
        for share, pipe in zip(of_copies, pipes, strict=True):
            found |= _received(pipe) or _check_share(share, check)
    return [found[model.name] for model in models]


def _count_processes(models: Sequence[ModelUnderCheck]) -> int:
    """Return how many processes check these models, with this one."""
    # A fork of a process with threads is reliable only there.
    if sys.platform != "linux":
        return 1
    cores = len(os.sched_getaffinity(0))
    return min(cores, len(models) // _FEWEST_MODELS_OF_A_PROCESS, _MOST_PROCESSES)


def _check_share(
    models: Sequence[ModelUnderCheck], check: Callable[[ModelUnderCheck], Result]
) -> dict[str, Result]:
    return {model.name: check(model) for model in models}


def _shares(models: Sequence[ModelUnderCheck], count: int) -> list[list[ModelUnderCheck]]:
    """Divide the models so that an ensemble is in one share with its steps, whose files it reads
    too.
    """
    user_of: dict[str, str] = {}
    for model in models:
        for step in model.folder.step_models:
            user_of.setdefault(step, model.name)

    groups: dict[str, list[ModelUnderCheck]] = {}
    for model in models:
        groups.setdefault(_top_user(model.name, user_of), []).append(model)

    shares: list[list[ModelUnderCheck]] = [[] for _ in range(count)]
    for group in groups.values():
        min(shares, key=len).extend(group)
    return shares


def _top_user(name: str, user_of: Mapping[str, str]) -> str:
    """Return the ensemble at the top of those that use a model."""
    seen = set()
    while name in user_of and name not in seen:  # a damaged repository can have a circle
        seen.add(name)
        name = user_of[name]
    return name


@contextmanager
def _shared_memory() -> Iterator[None]:
    """Keep the collector away from what exists, whose memory it would copy by visiting it."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _copy(
    models: Sequence[ModelUnderCheck], check: Callable[[ModelUnderCheck], Result]
) -> Iterator[int]:
    """Let a copy of this process check models; yield the pipe for :func:`_received`."""
    pipe, copys_end = os.pipe()
    try:
        pid = fork_process()
    except OSError:  # the system has no room for another process: the pipe is empty
        pid = None
    if pid == 0:
        _send_and_exit(copys_end, models, check)
    os.close(copys_end)
    try:
        yield pipe
    finally:
        os.close(pipe)
        if pid is not None:
            os.kill(pid, signal.SIGKILL)  # it has sent everything, or nothing is wanted any more
            os.waitpid(pid, 0)


def _send_and_exit(
    pipe: int, models: Sequence[ModelUnderCheck], check: Callable[[ModelUnderCheck], Result]
) -> None:
    """Check models, send the results, and end this copy without what a program does at its end."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        before = elsewhere.noted()
        found = _check_share(models, check)
        with open(pipe, "wb") as stream:
            pickle.dump((found, elsewhere.noted_since(before)), stream)
    finally:
        # The parent finds out why a result is missing.
        os._exit(0)


def _received(pipe: int) -> dict[str, Any] | None:
    """Return what a copy found, or ``None`` if it ended before."""
    with open(pipe, "rb", closefd=False) as stream:
        try:
            received: tuple[dict[str, Any], elsewhere.Notes] = pickle.load(stream)
        except (EOFError, pickle.UnpicklingError):
            return None
    found, notes = received
    elsewhere.note_again(notes)
    return found
