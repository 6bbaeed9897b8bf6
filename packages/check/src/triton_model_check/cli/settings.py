"""A project's settings: ``[tool.triton-model-check]`` in pyproject.toml, or ``triton-model-check.toml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.versions import parse_version
from constructs_triton_core.spelling import did_you_mean, quoted
from constructs_triton_core.untrusted.regular_files import read_regular
from triton_model_check.model_config.target import PLATFORMS, Platform, parse_shm_size
from triton_model_check.untrusted.toml_files import TomlFile

__all__ = ["Settings"]

_NAME = "triton-model-check"
_TABLE = ("tool", _NAME)
#: Of each key an example of its value, whose type is the type of the key.
_EXAMPLES: dict[str, Any] = {
    "target": "kubernetes",
    "image-version": "26.05",
    "shm-size": "256m",
    "backends": ["my_backend"],
    "gpus": 1,
    "instance-type": "ml.g5.xlarge",
    "model-config-name": "h100",
    "load-model": ["resnet"],
    "select": ["layout"],
    "ignore": ["layout-version-absent"],
    "per-model-ignores": {"old_*": ["layout"]},
    "per-file-ignores": {"*/1/model.py": ["files"]},
}
_WORDS = {str: "a string", int: "a whole number", list: "a list of strings", dict: "a table of lists"}
_WRITTEN = {dict: '"NAME or glob" = ["CODE"]'}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project has decided about its checks; the command line has precedence.

    ``file`` is where the settings are from. The other fields have the names of the keys.
    """

    file: Path | None = None
    target: Platform | None = None
    image_version: str | None = None
    shm_size: int | None = None
    backends: tuple[str, ...] | None = None
    gpus: int | None = None
    instance_type: str | None = None
    model_config_name: str | None = None
    load_model: tuple[str, ...] | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_model_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> Settings:
        """Return the settings of the nearest file that has some, in the folder of ``path`` or above it.

        Raises:
            InvalidValueError: the file cannot be read, a key is unknown, or a value has another type.
        """
        start = path.resolve()
        for folder in (start, *start.parents):
            own = folder / f"{_NAME}.toml"
            if own.is_file():
                return cls._read(TomlFile.read(own), ())
            project = folder / "pyproject.toml"
            if _names_this_program(project):
                file = TomlFile.read(project)
                if _NAME in file.document.get("tool", {}):
                    return cls._read(file, _TABLE)
        return cls()

    @classmethod
    def _read(cls, file: TomlFile, keys: Sequence[str]) -> Settings:
        table: Any = file.document
        for key in keys:
            table = table[key]
        if not isinstance(table, Mapping):
            raise file.malformed(keys, table, "a table", f"[{'.'.join(keys)}]")
        file.refuse_unknown(keys, table, list(_EXAMPLES))
        values = {key.replace("-", "_"): _value(file, (*keys, key), value) for key, value in table.items()}
        return cls(file=file.path, **values)


def _names_this_program(path: Path) -> bool:
    """Whether a file that may belong to other programs only contains the name of this one."""
    try:
        return path.is_file() and _NAME.encode() in read_regular(path)
    except (OSError, ValueError):
        return False


def _value(file: TomlFile, keys: tuple[str, ...], value: Any) -> Any:
    example = _EXAMPLES[keys[-1]]
    kind = type(example)
    if not _has_type(value, kind):
        shown = _WRITTEN.get(kind, f"{keys[-1]} = {str(example).replace(chr(39), chr(34))}")
        raise file.malformed(keys, value, _WORDS[kind], shown)
    try:
        return _checked(keys[-1], value)
    except InvalidValueError as error:
        raise file.error(keys, str(error).partition(": ")[2]) from None


def _has_type(value: Any, kind: type) -> bool:
    if kind is dict:
        return isinstance(value, Mapping) and all(_has_type(each, list) for each in value.values())
    if kind is list:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return type(value) is kind


def _checked(key: str, value: Any) -> Any:
    """Return the value as the option of that name reads it; a message begins with its place."""
    if key == "target" and value not in PLATFORMS:
        hint = did_you_mean(value, PLATFORMS, f"use one of {quoted(PLATFORMS)}")
        raise InvalidValueError(f'target: is unknown, got "{value}"; {hint}')
    if key == "image-version":
        parse_version(value, key)
    if key == "instance-type":
        InstanceType.of(value)
    if key == "gpus" and value < 0:
        raise InvalidValueError(f"gpus: must be at least 0, got {value}; write 0 for a machine without GPUs")
    if key == "shm-size":
        return parse_shm_size(value, key)
    if isinstance(value, Mapping):
        return {name: tuple(each) for name, each in value.items()}
    return tuple(value) if isinstance(value, list) else value
