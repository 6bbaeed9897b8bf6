"""Asks the ONNX Runtime of a release about a model, in a process with limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.budget import OverBudgetError
from triton_model_check.onnx_runtimes.asking import Asking
from triton_model_check.untrusted.elsewhere import note_limit

if TYPE_CHECKING:
    from constructs_triton_core.processes.bounded_process import BoundedProcess
    from triton_model_check.onnx_runtimes.environments import Environment

__all__ = [
    "NotAsked",
    "Runtime",
    "RuntimeVerdict",
    "SessionTensor",
    "find_runtime",
]

_NOT_IMPLEMENTED = 9
_TYPES = {
    "float": "TYPE_FP32",
    "double": "TYPE_FP64",
    "float16": "TYPE_FP16",
    "bfloat16": "TYPE_BF16",
    "bool": "TYPE_BOOL",
    "string": "TYPE_STRING",
    **{name: f"TYPE_{name.upper()}" for name in ("int8", "int16", "int32", "int64")},
    **{name: f"TYPE_{name.upper()}" for name in ("uint8", "uint16", "uint32", "uint64")},
}
# What a model may take without its weights, and with them. A graph of 57,000 operators takes 8 s.
_SECONDS, _SECONDS_PER_MIB = 10, 3
_MEMORY_BYTES, _MEMORY_PER_BYTE = 1 << 30, 64
_SECONDS_WITH_WEIGHTS, _MEMORY_PER_BYTE_OF_WEIGHTS = 60, 4
_MOST_BYTES_WITH_WEIGHTS = 2 << 30
# What a model generates is copied while the graph is optimized. Above the bound it gets nothing.
_MOST_GENERATED_BYTES = 2 << 30
_MEMORY_PER_GENERATED_BYTE = 3
_SECONDS_PER_GENERATED_GIB = 10


@dataclass(frozen=True, slots=True)
class SessionTensor:
    """An input or an output as ONNX Runtime has it.

    ``data_type`` is Triton's name, or "" without one. A variable size is -1. ``kind`` is ONNX
    Runtime's name of the type, such as ``tensor(float)``.
    """

    name: str
    data_type: str
    dims: tuple[int, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class RuntimeVerdict:
    """What ONNX Runtime says of a model; ``error`` is its message if it does not load the model.

    Weights that became inputs of a copy are among the ``inputs``.
    """

    version: str
    error: str = ""
    is_not_implemented: bool = False
    inputs: tuple[SessionTensor, ...] = ()
    optional_inputs: tuple[SessionTensor, ...] = ()
    outputs: tuple[SessionTensor, ...] = ()


@dataclass(frozen=True, slots=True)
class NotAsked:
    """Why ONNX Runtime was not asked, or has not answered."""

    reason: str


@dataclass(frozen=True, slots=True)
class Runtime:
    """An ONNX Runtime that can be asked."""

    environment: Environment

    def ask(
        self, content: bytes, level: int = 0, generated_bytes: int = 0
    ) -> RuntimeVerdict | NotAsked:
        """Return what it says of a model without weights.

        ``level`` is ``optimization.graph.level`` of the configuration: it changes shapes.
        ``generated_bytes`` is the size of what the graph generates.
        """
        generated = _allowed(generated_bytes)
        seconds = _SECONDS + _SECONDS_PER_MIB * len(content) / (1 << 20)
        seconds += _SECONDS_PER_GENERATED_GIB * generated / (1 << 30)
        memory_bytes = _MEMORY_BYTES + _MEMORY_PER_BYTE * len(content)
        memory_bytes += _MEMORY_PER_GENERATED_BYTE * generated
        return self._call({"path": "", "level": level}, content, seconds, memory_bytes)

    def ask_about_file(
        self, path: Path, size: int, level: int = 0, generated_bytes: int = 0
    ) -> RuntimeVerdict | NotAsked:
        """Return what it says of a model that it reads itself, whose files have ``size`` bytes."""
        if size > _MOST_BYTES_WITH_WEIGHTS:
            return NotAsked(f"the model has more than {_MOST_BYTES_WITH_WEIGHTS >> 30} GiB")
        memory_bytes = _MEMORY_BYTES + _MEMORY_PER_BYTE_OF_WEIGHTS * size
        memory_bytes += _MEMORY_PER_GENERATED_BYTE * _allowed(generated_bytes)
        settings = {"path": str(path), "level": level}
        return self._call(settings, b"", _SECONDS_WITH_WEIGHTS, memory_bytes)

    def _call(
        self, settings: Mapping[str, object], content: bytes, seconds: float, memory_bytes: int
    ) -> RuntimeVerdict | NotAsked:
        """Ask the process of this release whether it loads a model."""
        request = json.dumps(settings).encode() + b"\n" + content
        process = _process(self.environment)
        try:
            answer = json.loads(process.call(request, seconds=seconds, memory_bytes=memory_bytes))
        except (OverBudgetError, OSError) as error:
            note_limit()
            return NotAsked(str(error))
        if "error" in answer:
            is_not_implemented = answer["code"] == _NOT_IMPLEMENTED
            return RuntimeVerdict(answer["version"], answer["error"], is_not_implemented)
        return RuntimeVerdict(
            answer["version"],
            inputs=_tensors(answer["inputs"]),
            optional_inputs=_tensors(answer["optional_inputs"]),
            outputs=_tensors(answer["outputs"]),
        )


def _allowed(generated_bytes: int) -> int:
    return generated_bytes if generated_bytes <= _MOST_GENERATED_BYTES else 0


def _tensors(rows: list[tuple[str, str, list[int]]]) -> tuple[SessionTensor, ...]:
    return tuple(
        SessionTensor(name, _data_type(kind), tuple(dims), kind) for name, kind, dims in rows
    )


def _data_type(kind: str) -> str:
    """Return Triton's name for a type such as ``tensor(float)``, or "" without one."""
    return _TYPES.get(kind.removeprefix("tensor(").removesuffix(")"), "")


@cache
def _process(environment: Environment) -> BoundedProcess:
    from constructs_triton_core.processes.bounded_process import BoundedProcess

    return BoundedProcess(
        "triton_model_check.onnx_runtimes.loading_process:load_model",
        bare_packages=("triton_model_check", "triton_model_check.onnx_runtimes"),
        first_paths=() if environment.path is None else (str(environment.path),),
    )


def find_runtime(release: str, asking: Asking) -> Runtime | NotAsked:
    """Return the ONNX Runtime of a release such as ``"1.23"``, or why it is not asked."""
    if asking == "never":
        return NotAsked("")
    from triton_model_check.onnx_runtimes.environments import environment_at_start

    environment = environment_at_start(release)
    if environment is None and asking == "fetch":
        return _fetched(release)
    if environment is None:
        return NotAsked("it is not installed; set --onnx-runtime fetch to fetch it from PyPI")
    return Runtime(environment)


@cache
def _fetched(release: str) -> Runtime | NotAsked:
    from triton_model_check.onnx_runtimes.fetching import fetch_environment

    try:
        return Runtime(fetch_environment(release))
    except InvalidValueError as error:
        note_limit()  # it may work the next time
        return NotAsked(str(error))
