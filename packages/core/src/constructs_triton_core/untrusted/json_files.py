"""Reads JSON files that other people wrote, within bounds."""

from __future__ import annotations

import os
from typing import Any

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.untrusted.regular_files import read_regular

__all__ = ["read_json"]


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the value in a JSON file.

    Raises:
        OSError: the file cannot be read, is no regular file, or has more than 64 MiB.
        ValueError: it is not JSON or not UTF-8, has more than a million values, is nested more than 100 deep,
            or has a number that is not finite.
    """
    return parse_bounded_json(read_regular(path))
