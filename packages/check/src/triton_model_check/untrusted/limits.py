"""The limits on what is read of a repository, and the variable that changes one of them."""

from __future__ import annotations

MAX_TEXT_BYTES = 1 << 20
"""The largest configuration or Python source of a model that is read."""

MAX_DEPTH = 100
"""Folders in folders that are looked into; more exist only to exhaust memory or the stack."""

UNPACK_BYTES_VARIABLE = "CONSTRUCTS_TRITON_UNPACK_BYTES"
"""The environment variable with the number of bytes to unpack of an archive."""
