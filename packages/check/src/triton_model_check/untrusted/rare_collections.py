"""Collects garbage less often while a repository is checked."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS, _OTHERS = 50_000, 10


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let the collector look at objects only after many new ones.

    A check creates millions of objects, which live until its end or are in no cycle. By default the
    collector visits them after every 700 new ones, which takes a sixth of the time of the check.
    """
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, _OTHERS, _OTHERS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
