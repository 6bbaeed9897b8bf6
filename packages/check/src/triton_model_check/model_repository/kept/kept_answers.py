"""Answers to questions about a folder, kept on disk until a file of it, or this program, changes.

An answer is kept only if no file has changed while it was computed, and if nothing else was looked
at.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection
from functools import cache
from importlib.util import find_spec
from typing import Any

from blake3 import blake3

from constructs_triton_core.untrusted.cache_contract import is_settled
from triton_model_check import __version__
from triton_model_check.model_repository.kept.folder_state import folder_state
from triton_model_check.model_repository.kept.report_cache import ReportCache
from triton_model_check.untrusted.cache_location import cache_directory
from triton_model_check.untrusted.elsewhere import limits_exceeded, looked_elsewhere
from triton_model_check.untrusted.limits import UNPACK_BYTES_VARIABLE
from triton_model_check.untrusted.rare_collections import rare_collections

_BYTECODE = "__pycache__"
# What answers depend on besides the folder. `onnx` and `ruff` are optional.
_OWN = ("triton_model_check", "constructs_triton_core")
_OTHERS = ("google.protobuf", "onnx", "pathspec", "ruff")


class KeptAnswers:
    """The answers about the files that a folder has now."""

    def __init__(self, directory: str | os.PathLike[str], *, without: Collection[str] = ()) -> None:
        self._directory = os.fspath(directory)
        self._without = without
        self._begun_ns = time.time_ns()
        self._limits = limits_exceeded()
        self._before = folder_state(self._directory, without=without)
        self._cache = ReportCache(cache_directory())
        self._new: dict[str, Any] = {}

    def find(self, question: str) -> Any:
        """Return the answer to a question if it is known, else ``None``."""
        return self._cache.find(self._key(question)) if self._before.is_complete else None

    def answer(self, question: str, compute: Callable[[], Any], *, is_last: bool = True) -> Any:
        """Return the answer to a question, a JSON value, which is computed if it is not known.

        It is kept with the answer to the next question that ``is_last``: to look for changes takes
        time.
        """
        known = self.find(question)
        if known is None:
            with rare_collections():
                known = self._new[question] = compute()
        if is_last and self._new and self._can_be_kept():
            for new_question, value in self._new.items():
                self._cache.add(self._key(new_question), value)
            self._new = {}
        return known

    def _can_be_kept(self) -> bool:
        """Whether what was computed depends on nothing but the files, and they are as before."""
        depends = limits_exceeded() > self._limits or looked_elsewhere(self._directory)
        return not depends and self._is_unchanged()

    def _is_unchanged(self) -> bool:
        """Whether nothing has changed since this was created.

        A change that times may not show is read.
        """
        before = self._before
        if not before.is_complete or not is_settled(before.newest_large_ns, self._begun_ns):
            return False
        if is_settled(before.newest_ns, self._begun_ns):
            return before.has_same_times()
        return folder_state(self._directory, without=self._without) == before

    def _key(self, question: str) -> str:
        given = f"{os.path.abspath(self._directory)} {os.environ.get(UNPACK_BYTES_VARIABLE)}"  # noqa: PTH100
        everything = f"{self._before.content} {_program()} {given} {question}"
        return blake3(everything.encode("utf-8", "surrogateescape")).hexdigest()


@cache
def _program() -> str:
    """Changes with another release, an edited rule or fact, another Python, and other libraries."""
    identity = blake3(f"{__version__} {sys.version}".encode())
    for name in (*_OWN, *_OTHERS):
        spec = find_spec(name)
        file = spec.origin if spec is not None and spec.origin is not None else os.devnull
        state = os.stat(file)  # noqa: PTH116
        identity.update(f"{file} {state.st_ino} {state.st_mtime_ns} {state.st_ctime_ns}\0".encode())
        if name in _OWN:
            found = folder_state(os.path.dirname(file), without=(_BYTECODE,), reads=False)  # noqa: PTH120
            identity.update(repr(found.times).encode())
    return identity.hexdigest()
