"""Builds the error for bytes that are not a valid request or response."""

from __future__ import annotations

from constructs_triton_core.errors import ResponseDecodingError

__all__ = ["build_decoding_error"]

_HINT = "the body is corrupt or incomplete, so send the request again"


def build_decoding_error(where: str, what: str, got: str = "") -> ResponseDecodingError:
    """Build the error of ``where``, a tensor or a byte; ``got`` is the value that was found, if it helps."""
    value = f", got {got:.200}" if got else ""
    return ResponseDecodingError(f"{where}: {what}{value}; {_HINT}")
