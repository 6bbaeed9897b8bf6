"""Keeps the results of checks as small values, by a digest of everything they depend on.

For an unchanged repository a synth then neither parses nor checks anything (``benchmarks/check.py``).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from constructs_triton_core.untrusted.cache_contract import own_folder, read_value, write_value
from triton_model_check.model_repository.temporary_folders import remove_abandoned

_FOLDER = "reports"
_MOST_REPORTS = 500


class ReportCache:
    """The JSON values below ``directory``; the least recently used are deleted first.

    A cache that cannot be read or written counts as empty; this is no error.
    """

    def __init__(self, directory: Path) -> None:
        self._root = directory
        self._directory = directory / _FOLDER

    def find(self, key: str) -> Any:
        """Return the value of ``key``, or ``None``."""
        path = self._path(key)
        try:
            own_folder(self._root, _FOLDER)
            found_key, value = read_value(path)
            os.utime(path)
        except (OSError, ValueError):
            return None
        return value if found_key == key else None

    def add(self, key: str, value: Any) -> None:
        """Keep ``value`` under ``key``."""
        with suppress(OSError):
            own_folder(self._root, _FOLDER, create=True)
            remove_abandoned(self._directory)
            write_value(self._path(key), [key, value])
            self._evict()

    def _evict(self) -> None:
        with os.scandir(self._directory) as entries:
            reports = [(entry.stat().st_mtime_ns, entry.path) for entry in entries if entry.is_file()]
        for _, path in sorted(reports)[:-_MOST_REPORTS]:
            Path(path).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.json"
