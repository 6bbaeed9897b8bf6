"""Runs a synthesized SageMaker endpoint on this machine with the real Triton server.

What it shares with the constructs is the synthesized template, never an import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constructs_triton.local.endpoint import LocalEndpoint

__all__ = ["LocalEndpoint"]


def __getattr__(name: str) -> object:
    if name == "LocalEndpoint":
        from constructs_triton.local.endpoint import LocalEndpoint  # noqa: PLC0415 - only who asks pays

        return LocalEndpoint
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
