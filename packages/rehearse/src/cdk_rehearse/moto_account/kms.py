"""AWS Key Management Service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.kms import models

from .differences import Difference, Replacement

_PRIVATE_KEY = Difference(
    models,
    "generate_private_key",
    "(speed) a symmetric key has no private key, which takes a tenth of a second and signs nothing",
    since="5.0.0",
)


def patches() -> list[Replacement]:
    """What needs nothing but moto itself."""
    return [_PRIVATE_KEY.wrapped_by(_private_key)]


def _private_key(original: Callable[[str], Any], key_spec: str) -> Any:
    return None if key_spec == "SYMMETRIC_DEFAULT" else original(key_spec)
