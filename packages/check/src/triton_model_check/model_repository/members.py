"""Collects the files and folders of an archive from a repository on disk."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Collection, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from constructs_triton_core.errors import ArchiveError
from constructs_triton_core.untrusted.regular_files import file_type, open_regular
from triton_model_check.model_repository.ignore import IGNORE_FILE, IgnoreRules
from triton_model_check.untrusted.limits import MAX_DEPTH

if TYPE_CHECKING:
    from triton_model_check.model_repository.repository import ModelRepository

__all__ = [
    "DIRECTORY_MODE",
    "EXECUTABLE_MODE",
    "PLAIN_MODE",
    "FileState",
    "Member",
    "changed_error",
    "collect_members",
    "fold_mode",
    "members_of",
    "open_member",
    "unreadable_error",
]

DIRECTORY_MODE = 0o755
EXECUTABLE_MODE = 0o755
PLAIN_MODE = 0o644

# Triton and Python only read these files; some file systems and checkouts set an execute bit for
# all files.
_NEVER_EXECUTED = frozenset(
    [
        *(
            ".bin",
            ".csv",
            ".data",
            ".engine",
            ".gguf",
            ".graphdef",
            ".gz",
            ".h5",
            ".ini",
            ".jpeg",
            ".jpg",
        ),
        *(".json", ".jsonl", ".md", ".model", ".npy", ".npz", ".onnx", ".ort", ".parquet", ".pb"),
        *(".pbtxt", ".pkl", ".plan", ".png", ".pt", ".pth", ".py", ".safetensors", ".tar", ".tgz"),
        *(".toml", ".tsv", ".txt", ".vocab", ".xml", ".yaml", ".yml", ".zip"),
    ]
)


class FileState(NamedTuple):
    """What identifies an unchanged file."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileState:
        return cls(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        )


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of an archive.

    ``name`` is its path in the archive, with ``/`` as separator and not at the end. ``mode`` is
    0644 or 0755. A file has a ``source`` path to read and its ``state`` when it was listed; a
    folder has neither.
    """

    name: str
    mode: int
    source: str = ""
    state: FileState | None = None

    @property
    def is_directory(self) -> bool:
        return self.state is None

    @property
    def size(self) -> int:
        """Size of the content in bytes; 0 for a folder."""
        return 0 if self.state is None else self.state.size


def fold_mode(name: str, mode: int) -> int:
    """Return 0755 for a file that its owner may execute, else 0644: the same for every umask.

    The execute bit counts only for files that a model may start, such as
    ``triton_python_backend_stub`` or a tool without a suffix. It does not count for models, code
    and data, such as ``model.py``: a checkout that sets it would otherwise replace every archive.
    """
    suffix = os.path.splitext(name)[1].lower()  # noqa: PTH122 - a plain string, thousands of times
    is_executable = mode & stat.S_IXUSR and suffix not in _NEVER_EXECUTED
    return EXECUTABLE_MODE if is_executable else PLAIN_MODE


def is_utf8(name: str) -> bool:
    """Whether a file name is valid UTF-8; not every name on disk is."""
    return _printable(name) == name


def changed_error(member: Member) -> ArchiveError:
    """Return the error for a file that was changed while it was read."""
    return ArchiveError(
        f"{member.source}: changed while it was read; pack again when no program writes to it"
    )


def unreadable_error(path: str, error: OSError) -> ArchiveError:
    """Return the error for a file or folder that the operating system does not allow to read."""
    return ArchiveError(
        f"{path}: cannot be read ({(error.strerror or str(error)).lower()}); change its permissions"
    )


@contextmanager
def open_member(member: Member) -> Iterator[io.FileIO]:
    """Open the file of a member, which must not change until it is closed.

    Raises:
        ArchiveError: it cannot be read, or changed since it was listed.
    """
    try:
        with open_regular(member.source) as file:
            yield file
            state = FileState.of(os.fstat(file.fileno()))
    except OSError as error:
        raise unreadable_error(member.source, error) from error
    if state != member.state:
        raise changed_error(member)


def members_of(repository: ModelRepository, model_names: Collection[str]) -> list[Member]:
    """Return the files and folders of these models that packing includes."""
    models = [repository.models[name] for name in sorted(set(model_names))]
    directories = [
        f"{model.name}/{version}"
        for model in models
        for version in map(str, model.versions or model.versions_to_create)
    ]
    return collect_members(
        repository.path, [model.name for model in models], directories, repository.linked_files
    )


def collect_members(
    repository: Path,
    models: Iterable[str],
    version_directories: Iterable[str] = (),
    linked_files: Collection[str] = (),
) -> list[Member]:
    """Return every member of the named model directories of ``repository``, sorted by name.

    ``version_directories`` (``"ocr/1"``) are included even if they are empty or missing. Other
    folders are included unless their whole content is left out. Links to the real paths
    ``linked_files`` may lead out of the repository.

    Raises:
        ArchiveError: files or folders cannot or must not be archived; the message lists all of
            them.
    """
    root = Path(os.path.realpath(repository))
    walk = _Walk(
        str(root),
        IgnoreRules.from_directory(root),
        frozenset(version_directories),
        frozenset(linked_files),
    )
    members = [member for model in sorted(models) for member in walk.model(model)]
    if walk.problems:
        raise ArchiveError("\n".join(walk.problems))
    return sorted(members, key=lambda member: member.name)


@dataclass
class _Walk:
    """One pass over a repository that collects every problem before raising them."""

    root: str
    rules: IgnoreRules
    version_directories: frozenset[str]
    linked_files: frozenset[str] = frozenset()
    problems: list[str] = field(default_factory=list)

    @cached_property
    def _versions_of_models(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for path in self.version_directories:
            found.setdefault(path.split("/")[0], set()).add(path)
        return found

    def model(self, name: str) -> Iterator[Member]:
        """Yield the members of one model."""
        wanted = set(self._versions_of_models.get(name, ()))
        source = f"{self.root}/{name}"
        if not self._is_inside(source):
            self._report_link_out(source)
            return
        for member in self._directory(source, name, (), self.rules):
            wanted.discard(member.name)
            yield member
        yield from (Member(path, DIRECTORY_MODE) for path in wanted)

    def _directory(
        self, source: str, name: str, above: tuple[str, ...], rules: IgnoreRules
    ) -> Iterator[Member]:
        """Yield the members of a folder, with those of the folders in it."""
        real = os.path.realpath(source)
        if len(above) > MAX_DEPTH:
            self._report(source, "is nested too deeply", f"{len(above)} folders", "move it up")
            return
        if real in above:
            self._report(source, "is a link to a folder above itself", real, "remove the link")
            return
        entries = self._entries(source)
        rules = self._rules_within(entries, name, rules)
        names = {entry.name for entry in entries}
        inside = [
            member
            for entry in entries
            for member in self._entry(entry, name, (*above, real), rules, names)
        ]
        if inside or not entries or name in self.version_directories or not above:
            yield Member(name, DIRECTORY_MODE)
        yield from inside

    def _entries(self, source: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(source) as entries:
                return list(entries)
        except OSError as error:
            self.problems.append(str(unreadable_error(source, error)))
            return []

    def _rules_within(
        self, entries: list[os.DirEntry[str]], name: str, above: IgnoreRules
    ) -> IgnoreRules:
        try:
            own = (entry.path for entry in entries if entry.name == IGNORE_FILE)
            return next((above.below(Path(path), name) for path in own), above)
        except ArchiveError as error:
            self.problems.append(str(error))
            return above

    def _entry(
        self,
        entry: os.DirEntry[str],
        parent: str,
        above: tuple[str, ...],
        rules: IgnoreRules,
        beside: Container[str],
    ) -> Iterator[Member]:
        """Yield the members of one entry of a folder."""
        name = f"{parent}/{entry.name}"
        status = self._status(entry)
        if status is None:
            if not rules.leaves_out(_printable(name)):
                self._report(
                    entry.path,
                    "is a broken link",
                    str(Path(entry.path).readlink()),
                    "remove or correct the link",
                )
            return
        is_directory = stat.S_ISDIR(status.st_mode)
        if rules.leaves_out(_printable(f"{name}/" if is_directory else name), beside):
            return
        if not self._accepts(entry, name, status, rules):
            return
        if is_directory:
            yield from self._directory(entry.path, name, above, rules)
        else:
            # The digest of a linked file is cached under its real path; the link is new each time.
            source = os.path.realpath(entry.path) if self._is_linked(entry) else entry.path
            yield Member(name, fold_mode(name, status.st_mode), source, FileState.of(status))

    def _status(self, entry: os.DirEntry[str]) -> os.stat_result | None:
        """Return the status of a file; ``None`` for a link that leads nowhere."""
        try:
            return entry.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                return None
            raise unreadable_error(entry.path, error) from error

    def _accepts(
        self, entry: os.DirEntry[str], name: str, status: os.stat_result, rules: IgnoreRules
    ) -> bool:
        """Whether an entry can be packed; reports why not."""
        if not is_utf8(name):
            self._report(
                _printable(entry.path),
                "has a name that is not UTF-8",
                repr(entry.name),
                "rename it",
            )
        elif (special := file_type(status.st_mode)) is not None:
            self._report(
                entry.path, "cannot be archived", special, f"remove it, or add it to {IGNORE_FILE}"
            )
        elif entry.is_symlink() and not (self._is_inside(entry.path) or self._is_linked(entry)):
            self._report_link_out(entry.path)
        elif (secret := self._credential(entry, name, status, rules)) is not None:
            fix = (
                f"remove it, or add a line to {IGNORE_FILE}: "
                f"/{name} leaves it out, !/{name} includes it"
            )
            self._report(entry.path, "looks like a credential", secret, fix)
        else:
            return True
        return False

    def _credential(
        self, entry: os.DirEntry[str], name: str, status: os.stat_result, rules: IgnoreRules
    ) -> str | None:
        slash = "/" if stat.S_ISDIR(status.st_mode) else ""
        names = [name]
        # A link must not include a credential under another name.
        if entry.is_symlink() and not self._is_linked(entry):
            names.append(os.path.relpath(os.path.realpath(entry.path), self.root))
        return next((path for path in names if rules.refuses(path + slash)), None)

    def _is_linked(self, entry: os.DirEntry[str]) -> bool:
        """Whether the entry is one of the links that may lead out of the repository."""
        return bool(self.linked_files) and os.path.realpath(entry.path) in self.linked_files

    def _is_inside(self, path: str) -> bool:
        return os.path.realpath(path).startswith(self.root.rstrip(os.sep) + os.sep)

    def _report_link_out(self, path: str) -> None:
        fix = "copy the target into the repository"
        self._report(path, "is a link out of the repository", os.path.realpath(path), fix)

    def _report(self, path: str, what: str, got: str, fix: str) -> None:
        self.problems.append(f"{path}: {what}, got {got}; {fix}")


def _printable(name: str) -> str:
    return name.encode("utf-8", "replace").decode("utf-8")
