"""Writes files whole: a full disk or Ctrl-C leaves what was there before."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterable
from pathlib import Path

__all__ = ["csv_text", "write_whole"]


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as the text of a CSV file."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def write_whole(path: Path, text: str) -> None:
    """Write a text file. A device or a pipe, such as ``/dev/stdout``, is written in place.

    Raises:
        OSError: it cannot be written.
    """
    place = path.resolve()
    if place.exists() and not place.is_file():
        place.write_text(text, encoding="utf-8")
        return
    partial = place.with_name(f"{place.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8", newline="")
        if place.exists():
            shutil.copymode(place, partial)
        partial.replace(place)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
