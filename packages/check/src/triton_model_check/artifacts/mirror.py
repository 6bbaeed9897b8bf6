"""A copy of a model repository that links to the user's files, to which other files are added."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.ignore import IGNORE_FILE
from triton_model_check.model_repository.members import members_of

__all__ = ["mirror"]


def mirror(repository: ModelRepository, names: Collection[str], directory: Path) -> set[str]:
    """Link every file of the named models that is packed into ``directory``;
    return the files' real paths.
    """
    linked = set()
    for member in members_of(repository, names) if names else ():
        place = directory / member.name
        if member.is_directory:
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        real = os.path.realpath(member.source)
        place.symlink_to(real)
        linked.add(real)
    # They also allow files that packing would refuse otherwise.
    for path in repository.path.rglob(IGNORE_FILE):
        place = directory / path.relative_to(repository.path)
        if place.parent.is_dir():
            place.symlink_to(path.resolve())
            linked.add(str(path.resolve()))
    return linked
