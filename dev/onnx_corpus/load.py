"""Loads models with ONNX Runtime and prints what it says of each as JSON.

It runs in an environment that has ONNX Runtime and nothing of this project.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import onnxruntime


def loaded(path: Path) -> dict[str, Any]:
    """Return the error of a model, or its signature."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return {"error": str(error)[:300].replace(str(path.parent), "")}
    return {
        "inputs": _signature(session.get_inputs()),
        "outputs": _signature(session.get_outputs()),
    }


def _signature(values: Any) -> list[list[Any]]:
    """Return name, type and dims of each value; a dim without a number is -1."""
    return [
        [each.name, each.type, [dim if isinstance(dim, int) else -1 for dim in each.shape]]
        for each in values
    ]


def main(folder: Path) -> None:
    """Load the model in each folder."""
    paths = sorted(folder.glob("*/model.onnx"))
    print(json.dumps({path.parent.name: loaded(path) for path in paths}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
