"""Reads what an environment must contain: requirements.txt, pyproject.toml or uv.lock."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted
from constructs_triton_core.untrusted.regular_files import read_regular
from triton_model_check.artifacts.environments.line_checks import check_lines

__all__ = ["Requirements", "read_requirements"]

PYPROJECT, UV_LOCK = "pyproject.toml", "uv.lock"
_NESTED = re.compile(r"(?:-r|--requirement)(?:\s+|=|(?<=r))(.+)")
_CONSTRAINED = re.compile(r"(?:-c|--constraint)(?:\s+|=|(?<=c))(.+)")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_CONTINUED = re.compile(r"\\\r?\n")
_MOST_FILES = 50


@dataclass(frozen=True, slots=True)
class Requirements:
    """The packages that an environment must contain.

    Args:
        path: The file.
        lines: Its requirements and options, without comments, and those of nested files. Empty for
            uv.lock.
        constraints: Requirements that limit versions and install nothing.
        digest: SHA-256 of all of them, or of uv.lock.
        extras: Optional dependencies of the project, for pyproject.toml and uv.lock.
        base: Folder that relative paths start at. Default: that of the file.
    """

    path: Path
    lines: tuple[str, ...]
    constraints: tuple[str, ...]
    digest: str
    extras: tuple[str, ...] = ()
    base: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder that relative paths in the requirements start at."""
        return self.base or self.path.resolve().parent

    @property
    def is_uv_lock(self) -> bool:
        """Whether uv has to export the requirements from its own lock file."""
        return self.path.name == UV_LOCK


def read_requirements(
    path: Path, extras: Sequence[str] = (), *, within: Path | None = None
) -> Requirements:
    """Read a file of requirements. Nothing is resolved or downloaded.

    Args:
        path: ``requirements.txt`` or a file with the same syntax, ``pyproject.toml``, or
            ``uv.lock``.
        extras: Optional dependencies of the project that are wanted too.
        within: Folder that contains the file and all files that it includes. Default: any folder.

    Raises:
        InvalidValueError: the file cannot be read, or has requirements that cannot be used.
    """
    chosen = tuple(sorted(set(extras)))
    if path.name == UV_LOCK:
        return Requirements(path, (), (), _digest([_text(path)], chosen), chosen)
    lines: list[str] = []
    constraints: list[str] = []
    if path.name == PYPROJECT:
        lines = _project_lines(path, chosen)
    elif chosen:
        raise InvalidValueError(
            f"{path}: extras need {PYPROJECT} or {UV_LOCK}, got {quoted(chosen)}; write them into "
            'the file, such as "httpx[http2]"'
        )
    else:
        _read_into(path, lines, constraints, [], within)
    check_lines(str(path), [*lines, *constraints])
    if not any(not line.startswith("-") for line in lines):
        raise InvalidValueError(
            f"{path}: contains no requirement; add a package, such as scikit-learn"
        )
    return Requirements(
        path, tuple(lines), tuple(constraints), _digest([*lines, "", *constraints], ()), chosen
    )


def _text(path: Path) -> str:
    """Return the text of a file of requirements."""
    try:
        text = read_regular(path).decode()
        if "\0" not in text:
            return text
        reason = "it contains a NUL"
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "it is not UTF-8").lower()
    raise InvalidValueError(
        f"{path}: cannot be read ({reason}); pass a requirements.txt, pyproject.toml or uv.lock"
    )


def _digest(parts: Sequence[str], extras: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps([*parts, *extras]).encode()).hexdigest()


# --- requirements.txt -----------------------------------------------------------------------------


def _read_into(
    path: Path, lines: list[str], constraints: list[str], seen: list[Path], within: Path | None
) -> None:
    """Add the lines of a file and of those that it includes, each file once."""
    if within is not None and not path.resolve().is_relative_to(within.resolve()):
        raise InvalidValueError(f"{path}: must be in the folder {within}; move the file there")
    if path.resolve() in seen:
        return
    seen.append(path.resolve())
    if len(seen) > _MOST_FILES:
        raise InvalidValueError(
            f"{path}: more than {_MOST_FILES} files include each other; use fewer"
        )
    for line in _logical_lines(_text(path)):
        nested = _NESTED.fullmatch(line)
        constrained = _CONSTRAINED.fullmatch(line)
        if nested is not None:
            _read_into(path.parent / nested[1], lines, constraints, seen, within)
        elif constrained is not None:
            _read_into(path.parent / constrained[1], constraints, constraints, seen, within)
        else:
            lines.append(line)


def _logical_lines(text: str) -> Iterator[str]:
    for line in _CONTINUED.sub(" ", text.removeprefix("\ufeff")).splitlines():
        stripped = " ".join(_COMMENT.sub("", line).split())
        if stripped:
            yield stripped


# --- pyproject.toml -------------------------------------------------------------------------------


def _project_lines(path: Path, extras: Sequence[str]) -> list[str]:
    """Return the dependencies of a ``pyproject.toml``, with those of these extras."""
    try:
        document = tomllib.loads(_text(path))
    except (ValueError, RecursionError) as error:
        # A number of more than 4,300 digits is a ValueError, and lists of lists to any depth the
        # other.
        reason = str(error).partition(";")[0] or "it is nested too deeply"
        raise InvalidValueError(
            f"{path}: is not valid TOML ({reason}); correct the file"
        ) from error
    project = document.get("project")
    if not isinstance(project, dict):
        raise InvalidValueError(f"{path}: has no table [project]; add one with dependencies")
    if "dependencies" in _strings(path, "dynamic", project.get("dynamic", [])):
        raise InvalidValueError(
            f"{path}: dependencies are dynamic, so only the project's build program knows them; "
            "run `uv lock`, and pass uv.lock"
        )
    lines = _strings(path, "dependencies", project.get("dependencies", []))
    optional = _table(project.get("optional-dependencies"))
    for extra in extras:
        if extra not in optional:
            hint = did_you_mean(extra, optional, f"use one of {quoted(sorted(optional)) or 'none'}")
            raise InvalidValueError(f'{path}: has no extra "{extra}"; {hint}')
        lines += _strings(path, f"optional-dependencies.{extra}", optional[extra])
    _refuse_sources(path, document, lines)
    stripped = [" ".join(line.split()) for line in lines]
    if options := [line for line in stripped if line.startswith("-")]:
        raise InvalidValueError(
            f"{path}: a dependency must begin with the name of a package, "
            f"got {options[0]!r}; correct the file"
        )
    return stripped


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _strings(path: Path, field: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InvalidValueError(
            f"{path}: [project] {field} must be a list of strings; correct the file"
        )
    return list(value)


def _refuse_sources(path: Path, document: dict[str, Any], lines: Sequence[str]) -> None:
    """Only uv itself knows what a table of sources means; its lock file has the result."""
    sources = _table(_table(_table(document.get("tool")).get("uv")).get("sources"))
    names = {re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0].lower() for line in lines}
    found = sorted(name for name in sources if name.lower() in names)
    if found:
        raise InvalidValueError(
            f"{path}: [tool.uv.sources] has {quoted(found)}, which only uv resolves; run `uv "
            "lock`, and pass uv.lock"
        )
