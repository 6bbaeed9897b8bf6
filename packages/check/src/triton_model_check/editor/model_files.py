"""Which model of which repository a file in an editor belongs to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from triton_model_check.model.folder import CONFIG_FILE, CONFIGS

_MODEL_SOURCE = "model.py"


class ModelFile(NamedTuple):
    """A file of a model: the repository, the name of the model, and the path of the file."""

    repository: Path
    model: str
    path: Path

    @property
    def name(self) -> str:
        """The path relative to the repository, as findings have it."""
        return self.path.relative_to(self.repository).as_posix()


def model_file(path: Path, is_file: Callable[[Path], bool] = Path.is_file) -> ModelFile | None:
    """Return the model of a file, or ``None`` if it belongs to none.

    A configuration need not be saved, nor have a version folder beside it. A Python file in a
    version folder belongs to a model if it is ``model.py``, or if the model has a configuration.

    Args:
        path: Path of the file.
        is_file: Whether a file exists, on disk or in the editor.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() follows links
    folder = _model_folder(path, is_file)
    # The root of the file system is in no folder.
    if folder is None or not folder.name:
        return None
    return ModelFile(folder.parent, folder.name, path)


def _model_folder(path: Path, is_file: Callable[[Path], bool]) -> Path | None:
    if path.name == CONFIG_FILE:
        return path.parent
    if path.suffix == ".pbtxt" and path.parent.name == CONFIGS:
        return path.parent.parent
    if path.suffix != ".py":
        return None

    is_in_version = path.parent.name.isdecimal()
    folder = path.parent.parent
    if is_in_version and (path.name == _MODEL_SOURCE or is_file(folder / CONFIG_FILE)):
        return folder
    return None


def is_config(path: Path) -> bool:
    """Return whether a file is a model configuration, by its name."""
    return path.name == CONFIG_FILE or (path.suffix == ".pbtxt" and path.parent.name == CONFIGS)
