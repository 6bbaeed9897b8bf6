"""Loads an ONNX model with ONNX Runtime, in a process of its own.

ONNX Runtime is code in C++ that reads foreign data, so the process has limits. It may be that of
another environment than the checker's: this module imports nothing but ONNX Runtime.
"""

from __future__ import annotations

import json
import re
from typing import Any

import onnxruntime

__all__ = ["load_model"]

_LEVELS = {
    -1: onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    1: onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    2: onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
"""What the backend takes for ``optimization.graph.level``; any other number is everything.

Source: onnxruntime_backend src/onnxruntime.cc, ModelState::ModelState.
"""
_CODE = re.compile(r"\[ONNXRuntimeError\] : (\d+) : ")
_NO_MEMORY = re.compile(r"bad_alloc|[Ff]ailed to allocate memory|out of memory", re.IGNORECASE)
_FATAL = 4
_LONGEST_MESSAGE = 1000


def load_model(request: bytes) -> bytes:
    """Return as JSON what ONNX Runtime says of a model.

    ``request`` is a line of JSON, and the model. The line has the ``level`` of optimization, and
    the ``path`` of the model if it is to be read from its file.
    """
    line, _, content = request.partition(b"\n")
    settings = json.loads(line)
    try:
        session = onnxruntime.InferenceSession(
            settings["path"] or content,
            _options(settings["level"]),
            providers=["CPUExecutionProvider"],
        )
    except MemoryError:
        raise
    except Exception as error:  # each code has a type of its own
        return json.dumps(_refusal(str(error))).encode()
    answer = {
        "version": onnxruntime.__version__,
        "inputs": _signature(session.get_inputs()),
        "optional_inputs": _signature(session.get_overridable_initializers()),
        "outputs": _signature(session.get_outputs()),
    }
    return json.dumps(answer).encode()


def _options(level: int) -> Any:
    """Return the options of a session that loads a model once and runs nothing."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    everything = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.graph_optimization_level = _LEVELS.get(level, everything)
    # Copies of the weights for faster kernels decide nothing, and take time and memory.
    options.add_session_config_entry("session.disable_prepacking", "1")
    return options


def _refusal(text: str) -> dict[str, Any]:
    """Return the answer for an error of ONNX Runtime."""
    if _NO_MEMORY.search(text):
        raise MemoryError
    code = _CODE.search(text)
    message = " ".join(text[code.end() if code else 0 :].split())
    return {
        "version": onnxruntime.__version__,
        "code": int(code[1]) if code else 0,
        "error": message[:_LONGEST_MESSAGE],
    }


def _signature(values: Any) -> list[list[Any]]:
    """Return name, type and dims of each value; a dim without a number is -1."""
    return [
        [each.name, each.type, [dim if isinstance(dim, int) else -1 for dim in each.shape]]
        for each in values
    ]
