"""Loads one model with ONNX Runtime and prints what it says as JSON.

It runs in an environment that has ONNX Runtime and nothing of this project. Its memory is bounded,
because the file comes from a stranger.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

import onnxruntime

_LARGEST_MEMORY = 8 << 30
_LONGEST = 300


def loaded(path: str) -> dict[str, Any]:
    """Return the error of a model, or its signature."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        lines = str(error).replace(path, "FILE").splitlines() or [type(error).__name__]
        return {"error": _short(lines[0])}
    return {
        "inputs": _signature(session.get_inputs()),
        "outputs": _signature(session.get_outputs()),
    }


def _short(line: str) -> str:
    """Return a line without its middle, where ONNX Runtime writes signatures of C++ functions."""
    return line if len(line) <= _LONGEST else f"{line[:100]} … {line[-190:]}"


def _signature(values: Any) -> list[list[Any]]:
    """Return name, type and dims of each value; a dim without a number is -1."""
    return [
        [each.name, each.type, [dim if isinstance(dim, int) else -1 for dim in each.shape]]
        for each in values
    ]


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_LARGEST_MEMORY, _LARGEST_MEMORY))
    print(json.dumps(loaded(sys.argv[1])))
