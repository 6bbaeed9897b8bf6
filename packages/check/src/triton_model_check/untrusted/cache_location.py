"""The directory and the maximum size of the caches."""

from __future__ import annotations

import os
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError

__all__ = ["CACHE_DIRECTORY_VARIABLE", "cache_bytes", "cache_directory"]

CACHE_DIRECTORY_VARIABLE = "CONSTRUCTS_TRITON_CACHE_DIR"
CACHE_BYTES_VARIABLE = "CONSTRUCTS_TRITON_CACHE_BYTES"

_DEFAULT_CACHE_BYTES = 20 << 30


def cache_directory() -> Path:
    """Return the directory of the caches: ``CONSTRUCTS_TRITON_CACHE_DIR``,
    or the user's cache directory.
    """
    chosen = os.environ.get(CACHE_DIRECTORY_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("constructs-triton", appauthor=False)


def cache_bytes() -> int:
    """Return how many bytes of archives to keep: ``CONSTRUCTS_TRITON_CACHE_BYTES``. Default: 20
    GiB.

    Raises:
        InvalidValueError: the variable is not a whole number of bytes.
    """
    text = os.environ.get(CACHE_BYTES_VARIABLE, "").strip()
    if not text:
        return _DEFAULT_CACHE_BYTES
    if not text.isdecimal():
        raise InvalidValueError(
            f"{CACHE_BYTES_VARIABLE}: must be a whole number of bytes, got {text!r}; "
            "set 21474836480 for 20 GiB, or 0 to keep no archives"
        )
    return int(text)
