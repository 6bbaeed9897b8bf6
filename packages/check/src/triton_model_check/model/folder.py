"""The folder of one model: its files, versions and configuration."""

# os is several times faster than pathlib; the aim is a thousand folders per second.
# ruff: noqa: PTH110, PTH113, PTH118, PTH202

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.untrusted.regular_files import file_type, open_regular, read_regular
from triton_model_check.untrusted.elsewhere import note_path
from triton_model_check.untrusted.limits import MAX_TEXT_BYTES
from triton_model_check.untrusted.unsaved_files import unsaved_content, unsaved_names

if TYPE_CHECKING:
    from triton_model_check.model.packed_environment import PackedEnvironment
    from triton_model_check.model_config.locations import FieldPath, Locations, Range
    from triton_model_check.model_config.text import TextFault

__all__ = ["CONFIGS", "CONFIG_FILE", "ModelFolder"]

CONFIG_FILE = "config.pbtxt"
CONFIGS = "configs"
"""The folder of the configurations that ``--model-config-name`` chooses."""
HEAD_BYTES = 1024
"""The length of a file's beginning that checks of all files read."""
_NO_VERSIONS = frozenset({"warmup", "initial_state", CONFIGS})
_STOLL = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_INT64 = range(-(2**63), 2**63)
# These load with an empty version directory: they have no file, or a parameter names it.
_BACKENDS_WITHOUT_FILES = frozenset({"identity", "repeat", "square", "tensorrtllm"})


class ModelFolder:
    """One model of a repository, read from disk when needed.

    The object caches what it reads. Create a new object to see a change on disk.

    Args:
        name: Name of the model.
        directory: Folder on disk.
        path: Folder relative to the repository in POSIX form, or ``"."`` if the root of the
            repository is the model. Default: the name.
        config_name: Name of the file in ``configs`` that replaces ``config.pbtxt`` if it exists.
    """

    def __init__(
        self,
        name: str,
        directory: str | Path,
        path: str | None = None,
        config_name: str | None = None,
    ) -> None:
        self.name = name
        self._config_name = config_name
        self._directory = os.fspath(directory)
        self.path = name if path is None else path
        self._environments: dict[tuple[str, ...], PackedEnvironment] = {}
        self._content: dict[tuple[str, ...], dict[str, bool | None]] = {}
        self._heads: dict[tuple[str, ...], bytes] = {}

    def __repr__(self) -> str:
        return f"ModelFolder({self.name!r}, {self._directory!r})"

    @cached_property
    def directory(self) -> Path:
        """The folder on disk."""
        return Path(self._directory)

    @property
    def config_path(self) -> str:
        """``config.pbtxt`` relative to the repository, whether or not it exists."""
        return self.relative(*self.config_parts)

    @cached_property
    def config_parts(self) -> tuple[str, ...]:
        """The file of the configuration in the folder: ``config.pbtxt``,
        or that of the chosen name.
        """
        chosen = f"{self._config_name}.pbtxt"
        is_there = self._config_name is not None and self.list(CONFIGS).get(chosen) is False
        return (CONFIGS, chosen) if is_there else (CONFIG_FILE,)

    def with_config_name(self, name: str | None) -> ModelFolder:
        """Return the folder as a server with ``--model-config-name`` reads it."""
        return self if name is None else ModelFolder(self.name, self._directory, self.path, name)

    def relative(self, *parts: str) -> str:
        """Return a path inside the folder, relative to the repository."""
        return "/".join(parts) if self.path == "." else "/".join((self.path, *parts))

    @cached_property
    def entries(self) -> dict[str, bool]:
        """Names in the folder, and whether each is a directory, following links;
        empty if unreadable.
        """
        return self.list()

    def _at(self, *parts: str) -> str:
        """The path of a file or folder; with a ``..`` it may be that of
        another model, or outside.
        """
        path = os.path.join(self._directory, *parts)
        note_path(path, path[len(self._directory) :])
        return path

    def list(self, *parts: str) -> dict[str, bool]:
        """Return the names in a sub-folder, and whether each is a directory;
        empty if there is none.
        """
        return {name: bool(is_folder) for name, is_folder in self._content_of(*parts).items()}

    def _content_of(self, *parts: str) -> dict[str, bool | None]:
        """The names in a sub-folder; whether each is a directory,
        or ``None`` if it is no file either.
        """
        if parts not in self._content:
            path = self._at(*parts)
            try:
                with os.scandir(path) as entries:
                    found = {
                        each.name: is_directory(each) or (False if _is_file(each) else None)
                        for each in entries
                    }
            except (OSError, ValueError):
                found = {}
            found |= unsaved_names(path)
            self._content[parts] = found
        return self._content[parts]

    def size_of(self, *parts: str) -> int | None:
        """Return the size of a file in bytes, or ``None`` if it does not exist."""
        path = self._at(*parts)
        unsaved = unsaved_content(path)
        if unsaved is not None:
            return len(unsaved)
        try:
            return os.path.getsize(path) if os.path.isfile(path) else None
        except (OSError, ValueError):
            return None

    def read(self, *parts: str) -> bytes | None:
        """Return the content of a text file, or ``None`` if it cannot be read
        or is larger than 1 MiB.
        """
        path = self._at(*parts)
        content = unsaved_content(path)
        if content is not None and len(content) > MAX_TEXT_BYTES:
            return None
        if content is None:
            try:
                content = read_regular(path, MAX_TEXT_BYTES)
            except (OSError, ValueError):
                return None
        self._heads[parts] = content[:HEAD_BYTES]
        return content

    def head(self, *parts: str, smaller_than: int | None = None) -> bytes:
        """Return the first ``HEAD_BYTES`` of a file, which is read once.

        It is empty if the file cannot be read, or is not ``smaller_than`` that many bytes.
        """
        if parts not in self._heads:
            path = self._at(*parts)
            unsaved = unsaved_content(path)
            if unsaved is not None:
                return unsaved[:HEAD_BYTES]

            content = b""
            with suppress(OSError, ValueError):
                if smaller_than is None or os.stat(path).st_size < smaller_than:  # noqa: PTH116 - as above
                    with open_regular(path) as file:
                        content = file.read(HEAD_BYTES) or b""
            self._heads[parts] = content
        return self._heads[parts]

    @cached_property
    def inner_models(self) -> tuple[str, ...]:
        """Sub-folders that look like models, if the folder itself does not."""
        if self.has_config or self.version_directories:
            return ()
        found = (ModelFolder(name, os.path.join(self._directory, name)) for name in self.list())
        return tuple(
            sorted(
                each.name
                for each in found
                if each.name[0] != "." and (each.has_config or each.versions)
            )
        )

    def exists(self, *parts: str) -> bool:
        """Return whether a file or folder exists."""
        path = self._at(*parts)
        return unsaved_content(path) is not None or os.path.exists(path)

    def environment(self, *parts: str) -> PackedEnvironment:
        """Return the packed environment at a path in the folder; it is read once."""
        if parts not in self._environments:
            from triton_model_check.model.packed_environment import read_environment

            self._environments[parts] = read_environment(self._at(*parts))
        return self._environments[parts]

    # --- versions ---------------------------------------------------------------------------------

    @cached_property
    def version_directories(self) -> dict[str, int | None]:
        """Directories that Triton regards as versions, with the number that it reads from each
        name.

        Triton ignores ``warmup``, ``initial_state`` and ``configs``, names with a leading zero, and
        names that do not start with a number. A name that only starts with a number (``1abc``)
        counts. ``None`` is a number of more than 64 bits. Source: triton core, VersionsToLoad.
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
        """The versions that can be loaded, in ascending order."""
        return tuple(
            sorted(
                int(name)
                for name, number in self.version_directories.items()
                if name == str(number) and name[0] != "-"
            )
        )

    @cached_property
    def versions_to_load(self) -> tuple[str, ...]:
        """Names of the version directories that the version policy loads, newest first."""
        numbers: dict[int, str] = {}
        for name, number in self.version_directories.items():
            # "1abc" also counts as 1, but Triton looks for the folder "1".
            if number is not None and (number not in numbers or name == str(number)):
                numbers[number] = name
        newest_first = sorted(numbers, reverse=True)
        return tuple(numbers[number] for number in self._chosen(newest_first))

    def _chosen(self, newest_first: Sequence[int]) -> Sequence[int]:
        """Return the versions that the version policy chooses."""
        if self.config is None or not self.config.HasField("version_policy"):
            return newest_first[:1]
        policy = self.config.version_policy
        choice = policy.WhichOneof("policy_choice")
        if choice == "specific":
            wanted = set(policy.specific.versions)
            return [number for number in newest_first if number in wanted]
        # An empty version_policy selects all versions; an empty "latest" selects none.
        return newest_first[: policy.latest.num_versions] if choice == "latest" else newest_first

    @property
    def versions_to_create(self) -> tuple[str, ...]:
        """The version directories that packing creates,
        where there is none and an empty one is enough.
        """
        config = self.config
        if self.versions or config is None:
            return ()
        if not (self.is_ensemble or config.backend in _BACKENDS_WITHOUT_FILES):
            return ()
        wanted = (
            config.version_policy.specific.versions if config.HasField("version_policy") else ()
        )
        versions = tuple(str(version) for version in wanted) or ("1",)
        return tuple(version for version in versions if version not in self.entries)

    # --- configuration ----------------------------------------------------------------------------

    @property
    def has_config(self) -> bool:
        """Whether there is a ``config.pbtxt``, which some backends do not need."""
        return CONFIG_FILE in self.entries or len(self.config_parts) > 1

    @cached_property
    def special_files(self) -> dict[str, str]:
        """Named pipes, devices and sockets, with what they are: ``{"1/model.py": "a named pipe"}``.

        Only ``config.pbtxt`` and the files in version directories are looked at.
        """
        found = {}
        for parts in ((), *((version,) for version in self.version_directories)):
            for name, is_folder in self._content_of(*parts).items():
                if is_folder is None and (parts or name == CONFIG_FILE):
                    path = "/".join((*parts, name))
                    what = file_type(self._mode(path))
                    if what is not None:
                        found[path] = what
        return found

    def _mode(self, path: str) -> int:
        try:
            return os.stat(self._at(path)).st_mode  # noqa: PTH116 - as above
        except OSError:  # a broken link
            return 0

    @cached_property
    def config_text(self) -> str | None:
        """The content of ``config.pbtxt``, or ``None`` if it is too large
        or not a readable file.
        """
        from triton_model_check.model_config.text import decode

        content = self.read(*self.config_parts)
        return None if content is None else decode(content)

    @cached_property
    def _read(self) -> tuple[Any, TextFault | None]:
        from triton_model_check.model_config.text import read_text_fault, size_fault

        if (self.size_of(*self.config_parts) or 0) > MAX_TEXT_BYTES:
            return None, size_fault()
        if self.config_text is None:
            return None, None
        return read_text_fault(self.config_text)

    @property
    def config(self) -> Any:
        """The ``inference.ModelConfig`` message, or ``None`` if the file is
        absent or does not parse.
        """
        return self._read[0]

    @property
    def config_fault(self) -> TextFault | None:
        """Why ``config.pbtxt`` does not parse."""
        return self._read[1]

    @property
    def is_ensemble(self) -> bool:
        """Whether the configuration schedules other models."""
        config = self.config
        return config is not None and (
            config.platform == "ensemble" or config.HasField("ensemble_scheduling")
        )

    @property
    def keeps_sequences(self) -> bool:
        """Whether requests that belong together must reach the same instance of the model."""
        config = self.config
        return (
            config is not None
            and config.HasField("sequence_batching")
            and not config.sequence_batching.iterative_sequence
        )

    @cached_property
    def step_models(self) -> tuple[str, ...]:
        """The models of an ensemble's steps, in the order of the steps, without duplicates."""
        if not self.is_ensemble:
            return ()
        return tuple(
            dict.fromkeys(step.model_name for step in self.config.ensemble_scheduling.step)
        )

    @cached_property
    def locations(self) -> Locations | None:
        """The places of the fields of ``config.pbtxt``, or ``None`` if there is no text."""
        from triton_model_check.model_config.locations import Locations

        return None if self.config_text is None else Locations(self.config_text)

    def locate(self, field: FieldPath) -> Range | None:
        """Return the place of a field of ``config.pbtxt``, or of its nearest enclosing field.

        Args:
            field: Names and indexes from the top of the configuration, such as ``("input", 0,
                "dims")``.
        """
        return self.locations.find(field) if field and self.locations else None


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def is_directory(entry: os.DirEntry[str]) -> bool:
    """Return whether it is a folder; ``False`` if it cannot be read."""
    try:
        return entry.is_dir()
    except OSError:
        return False
