"""Unpacks a model archive as SageMaker does: a gzip-compressed tar file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import cast

from constructs_triton.errors import ArchiveError

__all__ = ["unpack"]


def unpack(archive: Path, directory: Path) -> None:
    """Unpack ``archive`` into ``directory``, which must not exist yet.

    Raises:
        ArchiveError: it is not a gzip-compressed tar, or an entry is outside ``directory``. Nothing is left.
    """
    # Only a local run needs these packages.
    from backports import tarfile  # noqa: PLC0415
    from isal import igzip, isal_zlib  # noqa: PLC0415

    directory.mkdir(parents=True)
    try:
        with (
            igzip.IGzipFile(archive) as stream,  # type: ignore[no-untyped-call]  # isal has no annotations
            tarfile.open(fileobj=stream, mode="r|") as tar,
        ):
            tar.extractall(directory, filter="data")
    except (OSError, EOFError, tarfile.TarError, cast("type[Exception]", isal_zlib.error)) as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise ArchiveError(
            f"{archive}: is not a gzip-compressed tar file ({error}); write it with `constructs-triton pack`"
        ) from error
