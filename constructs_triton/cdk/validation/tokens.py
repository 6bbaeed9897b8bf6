"""Tells values that are known at synth from those that CloudFormation fills in later."""

from __future__ import annotations

from constructs_triton.tokens import is_token

__all__ = ["is_concrete"]


def is_concrete(value: object) -> bool:
    """Whether ``value`` is known now: neither a token nor a string that contains one."""
    return not is_token(value)
