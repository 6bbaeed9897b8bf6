"""Which links of a foreign folder lead to files that belong to it.

A model of others may have a link to a file of the user in the place of its weights.
What is copied from there would be uploaded with the model.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError

__all__ = ["expect_own_file", "own_folders"]


def own_folders(folder: Path) -> tuple[Path, ...]:
    """Return where the links of a folder may lead to.

    That is the folder itself, and in the cache of Hugging Face the folder ``blobs`` beside
    ``snapshots``, to which all files of a snapshot are links.
    """
    real = Path(os.path.realpath(folder))
    snapshots = [each for each in (real, *real.parents) if each.name == "snapshots"]
    return (real, *(each.parent / "blobs" for each in snapshots))


def expect_own_file(path: Path, folders: Iterable[Path]) -> None:
    """Raise an error for a file that is in none of these folders when links are followed.

    Raises:
        InvalidValueError: it is a link to another folder.
    """
    real = Path(os.path.realpath(path))
    if not any(real.is_relative_to(folder) for folder in folders):
        raise InvalidValueError(
            f"{path}: is a link out of the folder of the model, got {real}; "
            "copy the file into that folder"
        )
