"""The two content types of a request or response, and the JSON size that one of them contains.

Source: triton server ``src/sagemaker_server.cc`` and the KServe v2 binary tensor data extension: a
body is JSON, or JSON of ``json-header-size`` bytes followed by the tensors' bytes in order.
"""

from __future__ import annotations

import re

from constructs_triton_core.errors import ResponseDecodingError

__all__ = ["BINARY_CONTENT_TYPE", "JSON_CONTENT_TYPE", "format_content_type", "parse_header_size"]

JSON_CONTENT_TYPE = "application/json"
BINARY_CONTENT_TYPE = "application/vnd.sagemaker-triton.binary+json"

_HEADER_SIZE = re.compile(r";\s*json-header-size\s*=\s*([^;\s]*)", re.IGNORECASE)
# No body has more digits; int() of more would take quadratic time.
_SIZE = re.compile("[0-9]{1,18}")


def format_content_type(header_size: int | None) -> str:
    """Return the content type of a body that starts with JSON.

    Args:
        header_size: Bytes of JSON at the start of the body. ``None`` means that the whole body is
            JSON.
    """
    if header_size is None:
        return JSON_CONTENT_TYPE
    return f"{BINARY_CONTENT_TYPE};json-header-size={header_size}"


def parse_header_size(content_type: str) -> int | None:
    """Return the number of bytes of JSON at the start of the body, or ``None`` if all of it is
    JSON.

    Args:
        content_type: ``Content-Type`` of a request or response.

    Raises:
        ResponseDecodingError: the content type is the binary one, without a valid
            ``json-header-size``.
    """
    if not content_type.strip().lower().startswith(BINARY_CONTENT_TYPE):
        return None
    sizes = _HEADER_SIZE.findall(content_type)
    if len(sizes) != 1 or not _SIZE.fullmatch(sizes[0]):
        raise ResponseDecodingError(
            f"content type: json-header-size must be one integer, got {content_type[:200]!r}; "
            f"the endpoint must return {BINARY_CONTENT_TYPE};json-header-size=<bytes of JSON>"
        )
    return int(sizes[0])
