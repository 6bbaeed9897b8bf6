"""The lock file of an environment: every package with its version and hashes, and the requirements.

It is beside the requirements and belongs into version control. Its second line is a JSON object
with the requirements, so that the same packages can be resolved for the Python of a server on
another machine.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.regular_files import explained, read_regular
from constructs_triton_core.untrusted.written_files import write_whole
from triton_model_check.artifacts.environments.requirements import Requirements
from triton_model_check.artifacts.environments.target import EnvironmentTarget

__all__ = ["LOCK_MEMBER", "EnvironmentLock", "lock_path", "read_lock", "read_lock_file"]

LOCK_MEMBER = "constructs-triton.lock"
"""The name of the lock file in the archive of an environment."""

_FIRST_LINE = (
    "# constructs-triton environment lock 1; "
    "`constructs-triton env build` writes it, keep it in git"
)
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==(\S+)", re.MULTILINE)
_FIELDS = frozenset(
    ["python", "platform", "requirements", "constraints", "options", "extras", "digest"]
)
_OPTIONS = frozenset(["--index", "--default-index", "--find-links"])
_SWITCHES = frozenset(["--no-index", "--offline"])
#: Part of each key, because another layout gives other archives.
_LAYOUT = 1


@dataclass(frozen=True, slots=True)
class EnvironmentLock:
    """What an environment contains.

    Args:
        python: Minor version of Python.
        platform: Platform as uv names it.
        requirements: The lines that were resolved.
        constraints: Requirements that limit versions.
        options: Options of uv about indexes, such as ``("--index", "https://…")``.
        extras: Optional dependencies of the project.
        digest: Digest of the requirements; see :class:`Requirements`.
        pins: The packages with versions and hashes, as uv writes them.
    """

    python: str
    platform: str
    requirements: tuple[str, ...]
    constraints: tuple[str, ...]
    options: tuple[str, ...]
    extras: tuple[str, ...]
    digest: str
    pins: str

    @property
    def text(self) -> str:
        """The content of the file."""
        header = {name: getattr(self, name) for name in sorted(_FIELDS)}
        return f"{_FIRST_LINE}\n# {json.dumps(header)}\n{self.pins}"

    @property
    def versions(self) -> dict[str, str]:
        """The version of each package."""
        return dict(_PIN.findall(self.pins))

    @property
    def package_count(self) -> int:
        """The number of packages, with those that a path names and not a version."""
        return sum(1 for line in self.pins.splitlines() if line and line[0] not in " #")

    def key(self, target: EnvironmentTarget) -> str:
        """Return what identifies the archive: the lock file, and where the packages are used."""
        place = [_LAYOUT, target.home, target.more_packages]
        return hashlib.sha256(f"{json.dumps(place)}\n{self.text}".encode()).hexdigest()

    def is_for(
        self, requirements: Requirements, target: EnvironmentTarget, options: Sequence[str]
    ) -> bool:
        """Return whether nothing has changed since the file was written."""
        given = (requirements.digest, target.python, target.platform, tuple(options))
        return given == (self.digest, self.python, self.platform, self.options)

    def write(self, path: Path) -> None:
        """Write the file, complete or not at all.

        Raises:
            InvalidValueError: the folder cannot be written.
        """
        fix = "allow to write the folder of the requirements, on a disk with enough space"
        with explained(path, "the lock file cannot be written", fix):
            write_whole(path, self.text)


def lock_path(requirements: Path, target: EnvironmentTarget) -> Path:
    """Return the path of the lock file: ``requirements.py3.12.lock`` beside
    ``requirements.txt``.
    """
    return requirements.with_name(f"{requirements.stem}.py{target.python}.lock")


def read_lock(content: bytes, path: str) -> EnvironmentLock:
    """Read the content of a lock file.

    Raises:
        InvalidValueError: it was not written by ``constructs-triton env build``.
    """
    try:
        # Git may check the file out with other line ends.
        first, second, pins = content.decode().replace("\r\n", "\n").split("\n", 2)
        header = parse_bounded_json(second.removeprefix("# "))
        if first != _FIRST_LINE or not _is_header(header):
            raise ValueError(first)
    except ValueError as error:
        raise InvalidValueError(
            f"{path}: is not a lock file of this version of constructs-triton; delete it, and run "
            "`constructs-triton env build` again"
        ) from error
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in header.items()
    }
    return EnvironmentLock(**fields, pins=pins)


def read_lock_file(path: Path) -> EnvironmentLock | None:
    """Read a lock file; ``None`` if there is none.

    Raises:
        InvalidValueError: it cannot be read, or was not written by ``constructs-triton env build``.
    """
    with explained(path, "cannot be read", "change its permissions"):
        try:
            return read_lock(read_regular(path), str(path))
        except FileNotFoundError:
            return None


def _is_header(header: Any) -> bool:
    """Whether a value that was read from JSON has the form of a header."""
    if not isinstance(header, dict) or header.keys() != _FIELDS:
        return False
    words = [header["python"], header["platform"], header["digest"]]
    for name in ("requirements", "constraints", "options", "extras"):
        if not isinstance(header[name], list):
            return False
        words += header[name]
    return all(map(_is_text, words)) and _are_options(header["options"])


def _is_text(word: Any) -> bool:
    """Whether it is a string that a file and an argument of a command can contain."""
    return (
        isinstance(word, str) and "\0" not in word and word.encode(errors="ignore").decode() == word
    )


def _are_options(words: Sequence[str]) -> bool:
    """A lock file may come from the archive of another person,
    and its options are those of a command.
    """
    rest = iter(words)
    return all(
        word in _SWITCHES or (word in _OPTIONS and not next(rest, "-").startswith("-"))
        for word in rest
    )
