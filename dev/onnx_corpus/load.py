"""Loads models with ONNX Runtime and prints what it says of each as JSON.

It runs in an environment that has ONNX Runtime and nothing of this project. Given a folder, it
prints what ONNX Runtime says of the model in each folder in it. The memory for a file is bounded,
because the file comes from a stranger.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnxruntime

_LARGEST_MEMORY = 8 << 30
_LONGEST = 300


def loaded(path: Path) -> dict[str, Any]:
    """Return the error of a model, or its signature."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        lines = str(error).replace(str(path), "FILE").splitlines() or [type(error).__name__]
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


def main(path: Path) -> None:
    """Load a model, or the model in each folder."""
    if path.is_file():
        resource.setrlimit(resource.RLIMIT_AS, (_LARGEST_MEMORY, _LARGEST_MEMORY))
        print(json.dumps(loaded(path)))
        return
    found: dict[str, Any] = {}
    models = sorted(path.glob("*/model.onnx"))
    while len(found) < len(models):
        found.update(_in_child(models[len(found) :]))
    print(json.dumps(found))


def _in_child(models: Sequence[Path]) -> dict[str, Any]:
    """Load models in a child process, until one ends it."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        with os.fdopen(write, "w") as answers:
            for model in models:
                answers.write(json.dumps(loaded(model)) + "\n")
                answers.flush()
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answers:
        found = [json.loads(line) for line in answers]
    os.waitpid(child, 0)
    if len(found) < len(models):
        found.append({"error": "the process ended"})
    return {model.parent.name: answer for model, answer in zip(models, found)}  # noqa: B905 - runs in Python 3.8


if __name__ == "__main__":
    main(Path(sys.argv[1]))
