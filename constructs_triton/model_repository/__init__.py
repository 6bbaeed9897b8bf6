"""A folder of Triton models: what is in it, whether it would load, and the archives made of it.

Names resolve on first use (PEP 562), so that checking pays for no archive code and packing for no rules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constructs_triton.model_repository.archive import Archive as Archive
    from constructs_triton.model_repository.archive import pack as pack
    from constructs_triton.model_repository.layout import ModelRepository as ModelRepository

_HOMES = {"Archive": "archive", "ModelRepository": "layout", "pack": "archive"}

__all__ = ["Archive", "ModelRepository", "pack"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
