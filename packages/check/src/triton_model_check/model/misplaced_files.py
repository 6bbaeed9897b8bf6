"""Finds the file of a model where Triton does not look, for the hint that says where to move it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from constructs_triton_core.spelling import quoted
from triton_model_check.model.backends import MODEL_FILES, Backend
from triton_model_check.model.folder import ModelFolder

__all__ = ["hint_of_misplaced", "hint_of_root", "is_autoserialized"]

_ENGINES = {".engine": "model.plan", ".trt": "model.plan", ".pth": "model.pt", ".pt2": "model.pt"}
_FILE_OF_SUFFIX = {
    **{PurePath(file).suffix: file for file in MODEL_FILES if file != "model.py"},
    **_ENGINES,
    ".dali": "model.dali",
}
"""The name that Triton expects, by the suffix of a file that is certainly a model."""
# Files of other kinds have other names. A suffix such as .py or .json says nothing.
_WHOLE_NAMES = frozenset(
    ("model.py", "xgboost.json", "xgboost.ubj", "xgboost.model", "checkpoint.tl", "dali.py")
)


def hint_of_misplaced(folder: ModelFolder, backend: Backend, version: str = "1") -> str | None:
    """Return the hint that names the model's file outside the version folder, and its place.

    The file is beside the version folder, or in the only folder in its place.
    """
    beside = _models_among(folder.entries, backend)
    if beside:
        return _moved(beside, backend, version)
    is_there = version in folder.entries
    parent = (version,) if is_there else ()
    content = folder.list(*parent)
    folders = [name for name, is_folder in content.items() if is_folder]
    if len(folders) != 1 or _models_among(content, backend):
        return None
    inside = _models_among(folder.list(*parent, folders[0]), backend)
    if len(inside) != 1:
        return None
    if not is_there:
        return f'rename the folder "{folders[0]}" to {version}'
    place = f"{version}/{folders[0]}/{inside[0]}"
    return f'move "{place}" to "{version}/{_expected(inside[0], backend)}"'


def hint_of_root(files: Iterable[str]) -> str | None:
    """Return the hint for a repository that has model files and no folder of a model."""
    found = _models_among(dict.fromkeys(files, False), Backend("", "", ""))
    if not found:
        return None
    stem = PurePath(found[0]).stem
    name = stem if stem != "model" else "my_model"
    place = f"{name}/1/{_expected(found[0], Backend('', '', ''))}"
    return f'move "{found[0]}" to "{place}", where "{name}" is the name of the model'


def _moved(names: Sequence[str], backend: Backend, version: str) -> str:
    if len(names) == 1:
        return f'move "{names[0]}" to "{version}/{_expected(names[0], backend)}"'
    return f"move the model's file into the folder {version}: one of {quoted(names)}"


def _models_among(content: dict[str, bool], backend: Backend) -> list[str]:
    """The names that a model of the backend can have; of an unknown backend, of any."""
    wanted = backend.model_file
    if wanted in content:
        return [wanted]
    return [
        name
        for name in sorted(content)
        if _is_model(name) and (not wanted or _expected(name, backend) == wanted)
    ]


def _is_model(name: str) -> bool:
    return name in _WHOLE_NAMES or PurePath(name).suffix in _FILE_OF_SUFFIX


def _expected(name: str, backend: Backend) -> str:
    """The name under which the backend loads a file of this suffix."""
    wanted = backend.model_file
    suffix = PurePath(name).suffix
    default = name if name in _WHOLE_NAMES else _FILE_OF_SUFFIX.get(suffix, name)
    is_alike = _FILE_OF_SUFFIX.get(PurePath(wanted).suffix, wanted) == default
    return wanted if wanted and is_alike else default


def is_autoserialized(content: bytes | None) -> bool:
    """Whether a Python file defines a pipeline that the DALI backend serializes itself."""
    return content is not None and b"autoserialize" in content
