"""The two content types of a request or response, and the header size one of them carries.

Source: triton server ``src/sagemaker_server.cc`` and the KServe v2 binary tensor data extension: a body is
JSON, or JSON of ``json-header-size`` bytes followed by the tensors' bytes in order.
"""

from __future__ import annotations

import re

from constructs_triton.errors import ResponseDecodingError

__all__ = ["BINARY_CONTENT_TYPE", "JSON_CONTENT_TYPE", "format_content_type", "parse_header_size"]

JSON_CONTENT_TYPE = "application/json"
BINARY_CONTENT_TYPE = "application/vnd.sagemaker-triton.binary+json"

_HEADER_SIZE = re.compile(r";\s*json-header-size\s*=\s*([^;\s]*)", re.IGNORECASE)
# More digits than any body has bytes; int() of a longer run would cost quadratic time.
_MAXIMUM_DIGITS = 18


def format_content_type(header_size: int | None) -> str:
    """The content type of a body with ``header_size`` bytes of JSON in front; ``None`` is all JSON."""
    if header_size is None:
        return JSON_CONTENT_TYPE
    return f"{BINARY_CONTENT_TYPE};json-header-size={header_size}"


def parse_header_size(content_type: str) -> int | None:
    """Bytes of JSON at the front of the body, or ``None`` where the whole body is JSON.

    Raises ``ResponseDecodingError`` when the binary content type comes without a usable size.
    """
    if not content_type.strip().lower().startswith(BINARY_CONTENT_TYPE):
        return None
    sizes = _HEADER_SIZE.findall(content_type)
    if len(sizes) != 1 or not _is_size(sizes[0]):
        raise ResponseDecodingError(
            f"content type: json-header-size must be one whole number of bytes, got {content_type[:200]!r}; "
            f"the endpoint must answer {BINARY_CONTENT_TYPE};json-header-size=<bytes of JSON>"
        )
    return int(sizes[0])


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAXIMUM_DIGITS
