"""Where the caches of digests and archives lie, and how large they may grow."""

from __future__ import annotations

import os
from pathlib import Path

from constructs_triton.errors import InvalidValueError

__all__ = ["CACHE_BYTES_VARIABLE", "CACHE_DIRECTORY_VARIABLE", "cache_bytes", "cache_directory"]

CACHE_DIRECTORY_VARIABLE = "CONSTRUCTS_TRITON_CACHE_DIR"
CACHE_BYTES_VARIABLE = "CONSTRUCTS_TRITON_CACHE_BYTES"

_DEFAULT_CACHE_BYTES = 20 << 30


def cache_directory() -> Path:
    """The user's cache directory of this library; ``CONSTRUCTS_TRITON_CACHE_DIR`` puts it elsewhere."""
    chosen = os.environ.get(CACHE_DIRECTORY_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_cache_path  # noqa: PLC0415 - only a pack needs it

    return user_cache_path("constructs-triton", appauthor=False)


def cache_bytes() -> int:
    """How many bytes of finished archives to keep: ``CONSTRUCTS_TRITON_CACHE_BYTES``, by default 20 GiB.

    Raises:
        InvalidValueError: the variable is no whole number of bytes.
    """
    text = os.environ.get(CACHE_BYTES_VARIABLE, "").strip()
    if not text:
        return _DEFAULT_CACHE_BYTES
    if not text.isdecimal():
        raise InvalidValueError(
            f"{CACHE_BYTES_VARIABLE}: must be a number of bytes, got {text!r}; 0 keeps none"
        )
    return int(text)
