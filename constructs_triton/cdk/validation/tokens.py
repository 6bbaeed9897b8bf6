"""Tells values that are known at synth from those that CloudFormation fills in later.

A token looks like an ordinary string, number or list, so that every comparison with it lies: each check of a
range, a length or a pattern asks :func:`is_concrete` first.
"""

from __future__ import annotations

from typing import Any

from aws_cdk import Token

__all__ = ["is_concrete"]


def is_concrete(value: Any) -> bool:
    """Whether ``value`` is known now: neither a token nor a string that holds one."""
    return not Token.is_unresolved(value)
