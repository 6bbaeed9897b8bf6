"""A folder of Triton models: what is in it, whether it would load, and the archives made of it.

Names resolve on first use (PEP 562), so that checking pays for no archive code and packing for no rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constructs_triton.lazy_names import lazy_names

if TYPE_CHECKING:
    from constructs_triton.model_repository.builder import ModelRepositoryBuilder as ModelRepositoryBuilder
    from constructs_triton.model_repository.inspection import ArchiveContents as ArchiveContents
    from constructs_triton.model_repository.inspection import inspect_archive as inspect_archive
    from constructs_triton.model_repository.layout import ModelRepository as ModelRepository
    from constructs_triton.model_repository.packing import Archive as Archive
    from constructs_triton.model_repository.packing import errors_left_by_packing as errors_left_by_packing
    from constructs_triton.model_repository.packing import fingerprint as fingerprint
    from constructs_triton.model_repository.packing import pack as pack

_HOMES = {
    "Archive": ".packing",
    "ArchiveContents": ".inspection",
    "ModelRepository": ".layout",
    "ModelRepositoryBuilder": ".builder",
    "errors_left_by_packing": ".packing",
    "fingerprint": ".packing",
    "inspect_archive": ".inspection",
    "pack": ".packing",
}

__all__ = [
    "Archive",
    "ArchiveContents",
    "ModelRepository",
    "ModelRepositoryBuilder",
    "errors_left_by_packing",
    "fingerprint",
    "inspect_archive",
    "pack",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
