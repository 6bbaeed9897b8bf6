"""The rules, a module a group; importing the package registers them all."""

from __future__ import annotations

from constructs_triton.model_config.checks import layout, text

__all__ = ["layout", "text"]
