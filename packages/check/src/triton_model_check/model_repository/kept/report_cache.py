"""The folder of what checks found: small JSON values,
each under a key of everything that it depends on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from constructs_triton_core.findings import Edit, Finding, Fix, Place, Severity
from constructs_triton_core.untrusted.cache_contract import own_folder, read_value, write_value
from constructs_triton_core.untrusted.drafts import remove_abandoned

_FOLDER = "reports"
_MOST_REPORTS = 500
# How the fields of a finding that are not JSON values are read.
_READ: dict[str, Callable[[Any], Any]] = {
    "severity": Severity,
    "place": lambda row: Place(*row),
    "fix": lambda row: Fix(row[0], tuple(Edit(*each) for each in row[1])),
}


class ReportCache:
    """The JSON values below ``directory``; the least recently used are deleted first.

    A cache that cannot be read or written counts as empty; this is no error.
    """

    def __init__(self, directory: Path) -> None:
        self._root, self._directory = directory, directory / _FOLDER

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
        reports = [each for each in os.scandir(self._directory) if each.is_file()]
        if len(reports) > _MOST_REPORTS:  # then more than needed, because their times take longest
            oldest = sorted(reports, key=lambda each: each.stat().st_mtime_ns)
            for report in oldest[: -_MOST_REPORTS * 4 // 5]:
                Path(report.path).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._directory / f"{key}.json"


def as_json(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return findings as JSON values."""
    return [asdict(finding) for finding in findings]


def finding_of(row: Mapping[str, Any]) -> Finding:
    """Return the finding of a value of :func:`as_json`."""
    read = {
        name: _READ[name](value)
        for name, value in row.items()
        if name in _READ and value is not None
    }
    return Finding(**{**row, **read})
