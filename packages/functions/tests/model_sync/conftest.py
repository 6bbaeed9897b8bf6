"""The fixtures of the function's tests, which ``sync_requests`` defines."""

from __future__ import annotations

from sync_requests import cloudformation, faults, s3, small_parts

__all__ = ["cloudformation", "faults", "s3", "small_parts"]
