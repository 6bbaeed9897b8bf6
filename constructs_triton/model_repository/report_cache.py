"""Keeps the results of checks as small JSON files, by a digest of everything they depend on.

For an unchanged repository a synth then neither parses nor checks anything (``benchmarks/check.py``).
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from constructs_triton.model_repository.temporary_folders import partial_folder, remove_abandoned

__all__ = ["ReportCache"]

_MOST_REPORTS = 500


class ReportCache:
    """The JSON values below ``directory``; the least recently used are deleted first.

    A cache that cannot be read or written counts as empty; this is no error.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "reports"

    def find(self, key: str) -> Any:
        """Return the value of ``key``, or ``None``."""
        path = self._path(key)
        try:
            value = json.loads(path.read_bytes())
            os.utime(path)
        except (OSError, ValueError, RecursionError):
            return None
        return value

    def add(self, key: str, value: Any) -> None:
        """Keep ``value`` under ``key``."""
        with suppress(OSError):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            remove_abandoned(self._directory)
            with partial_folder(self._directory) as folder:
                draft = folder / "report.json"
                draft.write_text(json.dumps(value))
                draft.replace(self._path(key))
            self._evict()

    def _evict(self) -> None:
        with os.scandir(self._directory) as entries:
            reports = [(entry.stat().st_mtime_ns, entry.path) for entry in entries if entry.is_file()]
        for _, path in sorted(reports)[:-_MOST_REPORTS]:
            Path(path).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.json"
