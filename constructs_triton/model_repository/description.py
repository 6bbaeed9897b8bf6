"""``triton-models.toml``: what a user declares about the models of a folder, for the app and the commands.

The file may come from others, so it and the requirements that it names must be inside the folder.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constructs_triton.errors import InvalidValueError
from constructs_triton.model_repository.composition import CompositionOptions
from constructs_triton.untrusted.regular_files import read_regular
from constructs_triton_client.spelling import did_you_mean, quoted

__all__ = ["DESCRIPTION_FILE", "DescribedEnvironment", "ModelDescription"]

DESCRIPTION_FILE = "triton-models.toml"
_MAX_BYTES = 64 << 10
#: Python's reader takes quadratic time for the parts of a key: half a second for as many.
_MOST_SIGNS = 5_000
_SIGNS = re.compile(r"[.\[{=]")
_PLACE = re.compile(r" \(at line (\d+), column \d+\)| \(at end of document\)")
_CALLS, _ALSO_SERVED, _ENVIRONMENTS = "calls", "also_served", "python_environments"
_KEYS = (_ALSO_SERVED, _CALLS, _ENVIRONMENTS)
_REQUIREMENTS, _IMAGE_VERSION = "requirements", "image_version"
_EXAMPLES = {
    _ALSO_SERVED: 'also_served = ["MODEL"]',
    _CALLS: '[calls] and CALLER = ["MODEL"]',
    _ENVIRONMENTS: '[python_environments] and MODEL = { requirements = "requirements.txt" }',
}


@dataclass(frozen=True, slots=True)
class DescribedEnvironment:
    """The packages of one model, or of all Python models.

    Args:
        requirements: The file with the requirements.
        image_version: Triton release of the image. Default: the default of ``PythonEnvironment``.
    """

    requirements: Path
    image_version: str | None = None


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """The content of the file, with the arguments of the same names in an app.

    Args:
        path: Path of the file.
        text: Its text.
        composition: ``calls`` and ``also_served``.
        environments: ``python_environments`` by model; ``"*"`` stands for all models of the Python backend.
    """

    path: Path
    text: str
    composition: CompositionOptions
    environments: Mapping[str, DescribedEnvironment]

    @classmethod
    def read(cls, folder: Path) -> ModelDescription:
        """Read the file in a folder of models.

        Raises:
            InvalidValueError: it cannot be read, or has an unknown key or a malformed value.
        """
        path = folder / DESCRIPTION_FILE
        text = _text(path, folder)
        document = _parse(path, text)
        reader = _Reader(path, text)
        reader.refuse_unknown((), document, _KEYS)
        calls = {
            name: reader.names((_CALLS, name), models)
            for name, models in reader.table((_CALLS,), document.get(_CALLS, {})).items()
        }
        also_served = reader.names((_ALSO_SERVED,), document.get(_ALSO_SERVED, []))
        found = reader.table((_ENVIRONMENTS,), document.get(_ENVIRONMENTS, {}))
        environments = {name: reader.environment(name, value) for name, value in found.items()}
        if "*" in environments and len(environments) > 1:
            raise reader.error(
                (_ENVIRONMENTS, "*"), '"*" stands for all models of the Python backend; remove the other models'
            )
        return cls(path, text, CompositionOptions(calls, also_served), environments)

    def place(self, *keys: str) -> str:
        """Return the path of the file with the line of a key."""
        return f"{self.path}:{_line(self.text, keys)}"

    def refuse_unknown(self, models: Iterable[str]) -> None:
        """Check that the models which the file names exist; a check reports called models that do not.

        Raises:
            InvalidValueError: there is no such model.
        """
        known = list(models)
        named = [(_CALLS, name) for name in self.composition.calls]
        named += [(_ENVIRONMENTS, name) for name in self.environments if name != "*"]
        named += [(_ALSO_SERVED, name) for name in self.composition.also_served]
        for keyword, name in named:
            if name not in known:
                hint = did_you_mean(name, known, f"its models are {quoted(known)}")
                raise InvalidValueError(
                    f"{self.place(keyword, name)}: {keyword}: the folder has no model of that name, got "
                    f'"{name}"; {hint}'
                )

    def combine(self, given: CompositionOptions) -> CompositionOptions:
        """Return the options of the file and those of the code or the command.

        Raises:
            InvalidValueError: the code or the command has another value.
        """
        own = self.composition
        calls, called = ({name: sorted(set(to)) for name, to in each.calls.items()} for each in (given, own))
        if calls and called and calls != called:
            raise self.differs(f"{_CALLS} (--called-models)", _CALLS, calls, called)
        also_served, served = sorted(set(given.also_served)), sorted(set(own.also_served))
        if also_served and served and also_served != served:
            raise self.differs(_ALSO_SERVED, _ALSO_SERVED, also_served, served)
        return CompositionOptions(given.calls or own.calls, given.also_served or own.also_served)

    def differs(self, argument: str, key: str, given: object, own: object) -> InvalidValueError:
        """Return the error for an argument with another value than the file."""
        return InvalidValueError(
            f"{argument}: must equal {key} of {self.place(key)}, got {given}, and there {own}; remove the "
            "argument, or correct the file"
        )


def _text(path: Path, folder: Path) -> str:
    try:
        if not _is_inside(path, folder):
            raise OSError("it is a link that leaves the folder")
        return read_regular(path, _MAX_BYTES).decode().replace("\r\n", "\n")
    except (OSError, ValueError) as error:
        is_text = isinstance(error, UnicodeDecodeError)
        reason = "it is not UTF-8" if is_text else (getattr(error, "strerror", None) or str(error)).lower()
        raise InvalidValueError(
            f"{path}: cannot be read ({reason}); write a text file of at most {_MAX_BYTES >> 10} KiB"
        ) from error


def _is_inside(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _parse(path: Path, text: str) -> dict[str, Any]:
    if len(_SIGNS.findall(text)) > _MOST_SIGNS:
        raise InvalidValueError(f"{path}: has more than {_MOST_SIGNS} keys and tables; remove some")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # A number of more than 4,300 digits is another ValueError, and lists of lists to any depth the other.
        is_nested = isinstance(error, RecursionError)
        reason = "it is nested too deeply" if is_nested else str(error).partition(";")[0]
        found = _PLACE.search(reason)
        line = f":{found[1]}" if found and found[1] else ""
        raise InvalidValueError(
            f"{path}{line}: is not valid TOML ({_PLACE.sub('', reason)}); correct the file"
        ) from error


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads values of the file; each error has the line of the key."""

    path: Path
    text: str

    def error(self, keys: Sequence[str], problem: str) -> InvalidValueError:
        return InvalidValueError(f"{self.path}:{_line(self.text, keys)}: {'.'.join(keys)}: {problem}")

    def refuse_unknown(self, keys: Sequence[str], table: Mapping[str, Any], known: Sequence[str]) -> None:
        for name in table:
            if name not in known:
                hint = did_you_mean(name, known, f"use {quoted(known)}")
                raise self.error((*keys, name), f"unknown key; {hint}")

    def malformed(self, keys: Sequence[str], value: object, what: str) -> InvalidValueError:
        return self.error(keys, f"must be {what}, got {_shown(value)}; write {_EXAMPLES[keys[0]]}")

    def table(self, keys: Sequence[str], value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.malformed(keys, value, "a table")
        return value

    def string(self, keys: Sequence[str], value: object, what: str) -> str:
        if not isinstance(value, str):
            raise self.malformed(keys, value, what)
        return value

    def names(self, keys: Sequence[str], value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.malformed(keys, value, "a list of names of models")
        return tuple(value)

    def environment(self, name: str, value: object) -> DescribedEnvironment:
        keys = (_ENVIRONMENTS, name)
        table = self.table(keys, value)
        self.refuse_unknown(keys, table, (_REQUIREMENTS, _IMAGE_VERSION))
        version = table.get(_IMAGE_VERSION)
        if version is not None:
            version = self.string((*keys, _IMAGE_VERSION), version, "a Triton release as a string")
        given = self.string((*keys, _REQUIREMENTS), table.get(_REQUIREMENTS), "the path of a file")
        path, folder = self.path.parent / given, self.path.parent
        if "\0" in given or not _is_inside(path, folder):
            raise self.error(
                (*keys, _REQUIREMENTS),
                f"must be a file in the folder of {DESCRIPTION_FILE}, got {_shown(given)}; move it there, or "
                "set python_environments in the app",
            )
        return DescribedEnvironment(path, version)


def _shown(value: object) -> str:
    for kind, name in ((type(None), "nothing"), (dict, "a table"), (list, "a list")):
        if isinstance(value, kind):  # not its content, which may be nested to any depth
            return name
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _line(text: str, keys: Sequence[str]) -> int:
    """Return the line of a key: that of its first part, then of the next part from there on.

    Python's reader of TOML keeps no places. Of a key that is written in an unusual way, the line is that of
    the part before it.
    """
    lines = text.split("\n")
    found = 0
    for key in keys:
        written = re.compile(rf"""(?<![\w-])["']?{re.escape(key)}["']?(?![\w-])""")
        places = (number for number in range(found, len(lines)) if _names(lines[number], written))
        found = next(places, found)
    return found + 1


def _names(line: str, written: re.Pattern[str]) -> bool:
    return not line.lstrip().startswith("#") and written.search(line) is not None
