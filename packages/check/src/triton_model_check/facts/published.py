"""Reads the JSON files of this folder."""

from __future__ import annotations

from constructs_triton_core.facts import facts_of

__all__ = ["load"]

load = facts_of(__package__)
