"""Facts that AWS and NVIDIA publish: JSON files with their sources, and typed functions that look them up."""

from __future__ import annotations

from constructs_triton_core.facts import facts_of

__all__ = ["load"]


load = facts_of(__package__)
