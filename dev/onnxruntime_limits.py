"""Ask ONNX Runtimes which models they load, and print the limits of each as JSON.

    python dev/onnxruntime_limits.py FOLDER 1.8.1@python3.8 1.15.1 1.28.0 ...

Each version is installed below FOLDER from PyPI, for this Python or for the one after ``@``: the
oldest ones have no wheels for the Pythons that this project supports. A child process loads one
model for each operator set, each IR version and each place of external data.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper
from onnx_corpus.runtimes import install

NEWEST_ASKED = 40
"""Newer than any operator set or IR version that a release of ONNX has."""

PROBE = """
import json, sys, onnxruntime
onnxruntime.set_default_logger_severity(4)
found = {"version": onnxruntime.__version__, "loads": {}}
for path in sys.argv[1:]:
    try:
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        found["loads"][path] = True
    except Exception:
        found["loads"][path] = False
print(json.dumps(found))
"""


def main(folder: Path, versions: Iterable[str]) -> None:
    """Print the limits of each version."""
    models = write_models(folder / "models")
    limits = {}
    for entry in versions:
        version, _, python = entry.partition("@")
        installed = install(folder, version, python or sys.executable)
        loads = ask(installed, version, python or sys.executable, models)
        limits[version] = read_limits(loads)
    print(json.dumps(limits, indent=2))


def write_models(folder: Path) -> dict[str, Path]:
    """Write a model for each question, and return them by name."""
    paths = {}
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, NEWEST_ASKED):
        questions = {
            f"opset {number}": identity([("", number)], ir_version=3),
            f"ml {number}": identity([("", 7), ("ai.onnx.ml", number)], ir_version=3),
            f"ir {number}": identity([("", 7)], ir_version=number),
        }
        for name, model in questions.items():
            paths[name] = folder / f"{name.replace(' ', '_')}.onnx"
            paths[name].write_bytes(model.SerializeToString())

    for place in ("inside", "outside"):
        paths[f"external data {place}"] = write_external(folder, place)
    return paths


def identity(opsets: Iterable[tuple[str, int]], ir_version: int) -> onnx.ModelProto:
    """Return a model that every operator set since the first one can express."""
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Abs", ["x"], ["y"])], "g", tensors[:1], tensors[1:]
    )
    imports = [helper.make_opsetid(*each) for each in opsets]
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = ir_version
    return model


def write_external(folder: Path, place: str) -> Path:
    """Write a model with a weight in a file inside or outside of the model's folder."""
    inner = folder / place
    inner.mkdir(exist_ok=True)
    location = "weight.bin" if place == "inside" else "../weight.bin"
    (inner / location).write_bytes(numpy.ones(64, "float32").tobytes())

    weight = TensorProto(name="w", dims=[64], data_type=TensorProto.FLOAT)
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=location)
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [64])
    source = helper.make_tensor_value_info("x", TensorProto.FLOAT, [64])
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "g", [source], [output], [weight]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 7)])
    model.ir_version = 4
    path = inner / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def ask(installed: Path, version: str, python: str, models: dict[str, Path]) -> dict[str, bool]:
    """Return which models the version loads, which is installed in a folder."""
    start = f"import sys; sys.path.insert(0, {str(installed)!r})\n"
    asked = subprocess.run(
        [python, "-c", start + PROBE, *map(str, models.values())],
        check=True,
        capture_output=True,
        text=True,
    )
    answer = json.loads(asked.stdout.splitlines()[-1])
    if answer["version"] != version:
        raise SystemExit(f"asked {version}, got an answer of {answer['version']}")
    return {name: answer["loads"][str(path)] for name, path in models.items()}


def read_limits(loads: dict[str, bool]) -> dict[str, int | bool]:
    """Return the newest versions that load, and where external data may be."""
    if not loads["external data inside"]:
        raise SystemExit("a model with external data in its folder does not load")
    return {
        "max_opset": _newest(loads, "opset", since=7),
        "max_ml_opset": _newest(loads, "ml", since=1),
        "max_ir_version": _newest(loads, "ir", since=3),
        "external_data_outside_folder": loads["external data outside"],
    }


def _newest(loads: dict[str, bool], what: str, since: int) -> int:
    """Return the newest version that loads; every older one down to ``since`` must load too."""
    loaded = [number for number in range(since, NEWEST_ASKED) if loads[f"{what} {number}"]]
    if loaded != list(range(since, loaded[-1] + 1)):
        raise SystemExit(f"{what}: the versions that load are not in a row, got {loaded}")
    return loaded[-1]


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
