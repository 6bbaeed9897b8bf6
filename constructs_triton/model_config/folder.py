"""A plain description of one model's folder: what lies in it, its versions, its configuration."""

# os is several times faster than pathlib, and a thousand folders a second are wanted.
# ruff: noqa: PTH110, PTH113, PTH118, PTH123, PTH202

from __future__ import annotations

import os
import re
from functools import cached_property
from pathlib import Path
from typing import Any

from constructs_triton.model_config.locations import FieldPath, Locations
from constructs_triton.model_config.packed_environment import packed_python
from constructs_triton.model_config.text import TextFault, decode, read_text_fault

__all__ = ["CONFIG_FILE", "ModelFolder"]

CONFIG_FILE = "config.pbtxt"
_NO_VERSIONS = frozenset({"warmup", "initial_state", "configs"})
_STOLL = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_INT64 = range(-(2**63), 2**63)


class ModelFolder:
    """One model of a repository, read from disk as far as somebody asks.

    ``path`` is the folder relative to the repository in posix form, ``"."`` where the repository's root is
    itself the model. Everything read is kept: make a new object to see a change on disk.
    """

    def __init__(self, name: str, directory: str | Path, path: str | None = None) -> None:
        self.name = name
        self._directory = os.fspath(directory)
        self.path = name if path is None else path

    def __repr__(self) -> str:
        return f"ModelFolder({self.name!r}, {self._directory!r})"

    @property
    def directory(self) -> Path:
        """The folder on disk."""
        return Path(self._directory)

    @property
    def config_path(self) -> str:
        """``config.pbtxt`` relative to the repository, whether it is there or not."""
        return self.relative(CONFIG_FILE)

    def relative(self, *parts: str) -> str:
        """A path inside the folder, relative to the repository."""
        return "/".join(parts) if self.path == "." else "/".join((self.path, *parts))

    @cached_property
    def entries(self) -> dict[str, bool]:
        """Names in the folder, and whether each is a directory (links are followed); empty if unreadable."""
        try:
            with os.scandir(self._directory) as entries:
                return {entry.name: _is_directory(entry) for entry in entries}
        except OSError:
            return {}

    def list(self, *parts: str) -> dict[str, bool]:
        """Names in a folder below, and whether each is a directory; empty where there is none."""
        try:
            with os.scandir(os.path.join(self._directory, *parts)) as entries:
                return {entry.name: _is_directory(entry) for entry in entries}
        except (OSError, ValueError):
            return {}

    def size_of(self, *parts: str) -> int | None:
        """Bytes of a file below, or ``None`` where there is no such file."""
        path = os.path.join(self._directory, *parts)
        try:
            return os.path.getsize(path) if os.path.isfile(path) else None
        except (OSError, ValueError):
            return None

    def read(self, *parts: str) -> bytes | None:
        """The content of a file below, or ``None`` where it cannot be read."""
        try:
            with open(os.path.join(self._directory, *parts), "rb") as file:
                return file.read()
        except (OSError, ValueError):
            return None

    def exists(self, *parts: str) -> bool:
        """Whether a file or folder below is there."""
        return os.path.exists(os.path.join(self._directory, *parts))

    @cached_property
    def total_bytes(self) -> int:
        """Bytes of all files of the model."""
        total = 0
        for root, _, files in os.walk(self._directory):
            for file in files:
                path = os.path.join(root, file)
                total += os.path.getsize(path) if os.path.exists(path) else 0
        return total

    def packed_python(self, *parts: str) -> str | None:
        """The Python of a packed or unpacked environment below, such as ``"3.12"``; ``None`` where untold."""
        return packed_python(os.path.join(self._directory, *parts))

    # --- versions ---------------------------------------------------------------------------------------

    @cached_property
    def version_directories(self) -> dict[str, int | None]:
        """Directories that Triton takes for versions, with the number it reads from each name.

        As the server does: ``warmup``, ``initial_state`` and ``configs`` are no versions, a leading zero or
        a name that does not start like a number is skipped, a name that only *starts* like one (``1abc``)
        counts, and ``None`` stands for a number beyond 64 bits. Source: triton core, VersionsToLoad.
        """
        found: dict[str, int | None] = {}
        for name, is_directory in self.entries.items():
            if not is_directory or name in _NO_VERSIONS or (len(name) > 1 and name[0] == "0"):
                continue
            match = _STOLL.match(name)
            if match:
                number = int(match.group(1)) if len(match.group(1)) < 25 else 2**63
                found[name] = number if number in _INT64 else None
        return found

    @cached_property
    def versions(self) -> tuple[int, ...]:
        """The versions that can be loaded, ascending."""
        return tuple(
            sorted(
                int(name)
                for name, number in self.version_directories.items()
                if name == str(number) and name[0] != "-"
            )
        )

    # --- configuration ----------------------------------------------------------------------------------

    @property
    def has_config(self) -> bool:
        """Whether there is a ``config.pbtxt``; Triton does without where the backend can tell everything."""
        return CONFIG_FILE in self.entries

    @cached_property
    def config_text(self) -> str | None:
        """The text of ``config.pbtxt``, or ``None`` where it is absent or no file."""
        content = self.read(CONFIG_FILE)
        return None if content is None else decode(content)

    @cached_property
    def _read(self) -> tuple[Any, TextFault | None]:
        if self.config_text is None:
            return None, None
        return read_text_fault(self.config_text)

    @property
    def config(self) -> Any:
        """The ``inference.ModelConfig``, or ``None`` where the file is absent or does not parse."""
        return self._read[0]

    @property
    def config_fault(self) -> TextFault | None:
        """Why the text does not parse."""
        return self._read[1]

    @property
    def is_ensemble(self) -> bool:
        """Whether the configuration schedules other models."""
        config = self.config
        return config is not None and (
            config.platform == "ensemble" or config.HasField("ensemble_scheduling")
        )

    @cached_property
    def step_models(self) -> tuple[str, ...]:
        """The models that an ensemble's steps name, in the order of the steps, each once."""
        if not self.is_ensemble:
            return ()
        return tuple(dict.fromkeys(step.model_name for step in self.config.ensemble_scheduling.step))

    @cached_property
    def _locations(self) -> Locations | None:
        return None if self.config_text is None else Locations(self.config_text)

    def locate(self, field: FieldPath) -> tuple[int, int] | None:
        """Line and column of a field of ``config.pbtxt``, or of what stands around it."""
        return self._locations.find(field) if self._locations and field else None


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
