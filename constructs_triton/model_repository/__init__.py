"""A folder of Triton models: what is in it, whether it would load, and the archives made of it.

Names resolve on first use (PEP 562), so that checking pays for no archive code and packing for no rules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constructs_triton.model_repository.inspection import ArchiveContents as ArchiveContents
    from constructs_triton.model_repository.inspection import inspect_archive as inspect_archive
    from constructs_triton.model_repository.layout import ModelRepository as ModelRepository
    from constructs_triton.model_repository.packing import Archive as Archive
    from constructs_triton.model_repository.packing import errors_left_by_packing as errors_left_by_packing
    from constructs_triton.model_repository.packing import fingerprint as fingerprint
    from constructs_triton.model_repository.packing import pack as pack

_HOMES = {
    "Archive": "packing",
    "ArchiveContents": "inspection",
    "ModelRepository": "layout",
    "errors_left_by_packing": "packing",
    "fingerprint": "packing",
    "inspect_archive": "inspection",
    "pack": "packing",
}

__all__ = [
    "Archive",
    "ArchiveContents",
    "ModelRepository",
    "errors_left_by_packing",
    "fingerprint",
    "inspect_archive",
    "pack",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
