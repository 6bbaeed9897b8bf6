"""Copies a repository to try fixes on it, without a name that leads to a file of the user.

The copy has the same folders, links and names, so that a check finds the same in it. Files that a
fix can change are copied. Links within the repository lead to the same place of the copy, also if
they are absolute. Everything else is a link to what it is in the repository: nothing is written
through links, and a fix changes only files of the copy itself.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from constructs_triton_core.untrusted.regular_files import open_regular
from triton_model_check.untrusted.limits import MAX_TEXT_BYTES

__all__ = ["copy_to_fix"]


def copy_to_fix(repository: Path, copy: Path) -> None:
    """Copy a repository to a folder that does not exist.

    Raises:
        OSError: something cannot be read, or the copy cannot be written.
    """
    root = repository.resolve()
    for folder, folders, files in os.walk(root, onerror=_raise):
        target = copy / Path(folder).relative_to(root)
        target.mkdir(parents=True)
        for name in (*folders, *files):
            place = Path(folder, name)
            if place.is_symlink():
                _copy_link(place, target / name, root, copy)
            elif name in files:
                _copy_file(place, target / name)


def _raise(error: OSError) -> None:
    raise error


def _copy_link(link: Path, target: Path, root: Path, copy: Path) -> None:
    """Copy a link; one into the copied folder leads into the copy."""
    try:
        real = link.resolve()
    except (OSError, RuntimeError):  # links that lead to each other
        real = link
    if real != link and real.is_relative_to(root):
        target.symlink_to(copy / real.relative_to(root))
    else:
        target.symlink_to(link)


def _copy_file(file: Path, target: Path) -> None:
    """Copy a file that a fix may change; a larger one, a pipe or a device gets a link."""
    status = file.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_TEXT_BYTES:
        target.symlink_to(file)
        return
    with open_regular(file) as source, target.open("xb") as copied:
        shutil.copyfileobj(source, copied)
