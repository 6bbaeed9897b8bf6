"""A project's settings: ``[tool.triton-model-check]`` in pyproject.toml,
or ``triton-model-check.toml``.
"""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import (
    argument_type,
    number,
    whole_number,
)
from constructs_triton_core.untrusted.regular_files import read_regular
from triton_model_check.facts.image_tags import read_image_tag
from triton_model_check.facts.published import load
from triton_model_check.model_config.target import Platform, read_platform, read_size
from triton_model_check.onnx_runtimes.asking import Asking, read_asking

if TYPE_CHECKING:
    from triton_model_check.untrusted.toml_files import TomlFile

__all__ = ["Settings"]

_NAME = "triton-model-check"


def _read_gib(place: str, text: str) -> float:
    """Return the GiB of a size."""
    return read_size(place, text) / 2**30


OPTIONS: dict[str, dict[str, Any]] = load("targets")["options"]
"""The options of a check by name; ``example`` is a value of the setting,
whose type is that of the key.
"""
TYPES: dict[str, Callable[[str], Any]] = {
    "target": argument_type(read_platform),
    "image-version": argument_type(read_image_tag),
    "shm-size": argument_type(read_size),
    "shm-default-byte-size": argument_type(read_size),
    "shm-growth-byte-size": argument_type(read_size),
    "backends": lambda text: tuple(name.strip() for name in text.split(",") if name.strip()),
    "gpus": whole_number(RangeLimit(0, None)),
    "gpu-memory": whole_number(RangeLimit(1, None)),
    "memory": argument_type(_read_gib),
    "model-load-gpu-limit": number(RangeLimit(0, 1)),
    "onnx-runtime": argument_type(read_asking),
}
"""What reads an option that is not any string, as argparse's ``type``."""
_WORDS = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list of strings",
    dict: "a table of lists",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project has decided about its checks; the command line has precedence.

    ``file`` is where the settings are from. The other fields have the names of the keys.
    """

    file: Path | None = None
    target: Platform | None = None
    image_version: str | None = None
    shm_size: int | None = None
    shm_default_byte_size: int | None = None
    shm_growth_byte_size: int | None = None
    backends: tuple[str, ...] | None = None
    gpus: int | None = None
    gpu_memory: int | None = None
    memory: float | None = None
    model_load_gpu_limit: float | None = None
    server_arguments: str | None = None
    onnx_runtime: Asking | None = None
    instance_type: str | None = None
    model_config_name: str | None = None
    load_model: tuple[str, ...] | None = None
    fail_on_unknown: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_model_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> Settings:
        """Return the settings of the nearest file that has some, in the folder of ``path`` or above
        it.

        Raises:
            InvalidValueError: the file cannot be read, a key is unknown, or a value has another
                type.
        """
        start = path.resolve()
        for folder in (start, *start.parents):
            own = folder / f"{_NAME}.toml"
            project = folder / "pyproject.toml"
            if own.is_file():
                file = _toml_file(own)
                return cls._read(file, (), file.document)
            if _names_this_program(project):
                file = _toml_file(project)
                tool = file.document.get("tool")
                if isinstance(tool, Mapping) and _NAME in tool:
                    return cls._read(file, ("tool", _NAME), tool[_NAME])
        return cls()

    @classmethod
    def _read(cls, file: TomlFile, keys: Sequence[str], table: Any) -> Settings:
        """Read the settings of a checked table of the file."""
        if not isinstance(table, Mapping):
            raise file.malformed(keys, table, "a table", f"[{'.'.join(keys)}]")
        file.refuse_unknown(
            keys, table, [name for name, each in OPTIONS.items() if "example" in each]
        )
        values = {
            key.replace("-", "_"): _value(file, (*keys, key), value) for key, value in table.items()
        }
        return cls(file=file.path, **values)


def _names_this_program(path: Path) -> bool:
    """Whether a file that may belong to other programs only contains the name of this one."""
    try:
        return path.is_file() and _NAME.encode() in read_regular(path)
    except (OSError, ValueError):
        return False


def _toml_file(path: Path) -> TomlFile:
    from triton_model_check.untrusted.toml_files import TomlFile

    return TomlFile.read(path)


def _value(file: TomlFile, keys: tuple[str, ...], value: Any) -> Any:
    """Return the checked value of one setting."""
    key, example = keys[-1], OPTIONS[keys[-1]]["example"]
    if not _has_type(value, type(example)):
        written = json.dumps(example).replace('": ', '" = ')
        raise file.malformed(keys, value, _WORDS[type(example)], f"{key} = {written}")
    try:
        if key == "instance-type":
            InstanceType.of(value)
        return (
            TYPES[key](str(value))
            if isinstance(value, str | int | float) and key in TYPES
            else _frozen(value)
        )
    except (ArgumentTypeError, InvalidValueError) as error:
        raise file.error(keys, str(error).removeprefix("instance_type: ")) from None


def _has_type(value: Any, kind: type) -> bool:
    if kind is dict:
        return isinstance(value, Mapping) and all(_has_type(each, list) for each in value.values())
    if kind is list:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if kind is float:
        return type(value) in (int, float)
    return type(value) is kind


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: tuple(each) for name, each in value.items()}
    return tuple(value) if isinstance(value, list) else value
