"""Unpacks a model archive as SageMaker does: a gzip-compressed tar, its root becoming the model folder."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any, cast

from constructs_triton.errors import ArchiveError

__all__ = ["unpack"]

#: Refuses what would land outside the folder. Pythons before 3.11.4 have no filters.
_FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def unpack(archive: Path, directory: Path) -> None:
    """Unpack ``archive`` into ``directory``, which must not exist yet.

    Raises ``ArchiveError`` for what is no gzip-compressed tar or reaches outside the folder; nothing is
    left behind then.
    """
    from isal import igzip, isal_zlib  # noqa: PLC0415 - only the local run unpacks

    directory.mkdir(parents=True)
    try:
        with (
            igzip.IGzipFile(archive) as stream,  # type: ignore[no-untyped-call]  # isal has no annotations
            tarfile.open(fileobj=stream, mode="r|") as tar,
        ):
            tar.extractall(directory, **_FILTER)
    except (OSError, EOFError, tarfile.TarError, cast("type[Exception]", isal_zlib.error)) as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise ArchiveError(
            f"{archive}: is no gzip-compressed tar that SageMaker unpacks, got {error}; pack it again"
        ) from error
