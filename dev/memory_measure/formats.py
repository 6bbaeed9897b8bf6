"""Measures what SavedModels and forests take of host memory, beside the size of their files.

    /other/venv/bin/python dev/memory_measure/formats.py > dev/memory_measure/formats.json

The Python needs tensorflow-cpu, treelite, xgboost-cpu and lightgbm, which this project does not
have. Each figure is bytes of resident memory. A session of TensorFlow is loaded as Triton's backend
loads it. The FIL backend keeps a model of treelite for each instance.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy

_PACKAGES = ("tensorflow-cpu", "treelite", "xgboost-cpu", "lightgbm")
_FORESTS = ("xgboost.json", "xgboost.ubj", "model.txt", "xgboost.tl", "lightgbm.tl")
_COPIES = 10


def main() -> None:
    """Write the models, and measure each in a process of its own."""
    results: dict[str, Any] = {"versions": {name: version(name) for name in _PACKAGES}}
    with tempfile.TemporaryDirectory() as folder:
        for name, optimizer in (("plain", ""), ("with Adam", "adam")):
            _in_process("write_saved_model", f"{folder}/{name}", optimizer)
            results[f"SavedModel, {name}"] = _in_process("measure_session", f"{folder}/{name}")
        _in_process("write_forests", folder)
        for file in _FORESTS:
            results[f"forest, {file}"] = _in_process("measure_forest", f"{folder}/{file}")
    json.dump(results, sys.stdout, indent=1)
    print()


def _in_process(function: str, *arguments: str) -> Any:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, __file__, function, *arguments]
    answer = subprocess.run(command, check=True, capture_output=True, env=environment)
    return json.loads(answer.stdout.splitlines()[-1])


def write_saved_model(folder: str, optimizer: str) -> None:
    """Write 256 MiB of variables, with the two slots of Adam for each if that is named."""
    tf = import_module("tensorflow")
    model = tf.Module()
    model.weights = [tf.Variable(tf.random.uniform([4096, 4096])) for _ in range(4)]
    if optimizer:
        model.optimizer = tf.keras.optimizers.Adam()
        model.optimizer.build(model.weights)
        model.slots = list(model.optimizer.variables)

    def call(x: Any) -> dict[str, Any]:
        for weight in model.weights:
            x = tf.matmul(x, weight)
        return {"y": x}

    signature = [tf.TensorSpec([None, 4096], tf.float32)]
    model.call = tf.function(call, input_signature=signature)
    tf.saved_model.save(model, folder, signatures=model.call)


def measure_session(folder: str) -> dict[str, int]:
    """Measure what the first and the second session of a SavedModel add."""
    tf = import_module("tensorflow")
    sessions = []

    def load() -> None:
        session = tf.compat.v1.Session(graph=tf.Graph())
        with session.graph.as_default():
            tf.compat.v1.saved_model.loader.load(session, ["serve"], folder)
        sessions.append(session)

    files = Path(folder, "variables").glob("variables.data-*")
    variables = sum(file.stat().st_size for file in files)
    return {"variables": variables, "first": _added(load), "second": _added(load)}


def write_forests(folder: str) -> None:
    """Write two forests of 100 trees in every format that the FIL backend reads."""
    lightgbm, xgboost = import_module("lightgbm"), import_module("xgboost")
    random = numpy.random.default_rng(0)
    rows = random.random((20_000, 20), dtype=numpy.float32)
    target = random.random(20_000)
    options = {"max_depth": 12, "eta": 0.1, "nthread": 1, "tree_method": "hist"}
    booster = xgboost.train(options, xgboost.DMatrix(rows, target), 100)
    booster.save_model(f"{folder}/xgboost.json")
    booster.save_model(f"{folder}/xgboost.ubj")
    options = {"num_leaves": 1023, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1}
    forest = lightgbm.train(options, lightgbm.Dataset(rows, target), 100)
    forest.save_model(f"{folder}/model.txt")
    frontend = import_module("treelite").frontend
    frontend.load_xgboost_model(f"{folder}/xgboost.json").serialize(f"{folder}/xgboost.tl")
    frontend.load_lightgbm_model(f"{folder}/model.txt").serialize(f"{folder}/lightgbm.tl")


def measure_forest(path: str) -> dict[str, int]:
    """Measure what each model of treelite adds that is loaded from one file."""
    load = _forest_loader(path)
    models = [load()]
    added = _added(lambda: models.extend(load() for _ in range(_COPIES)))
    return {"file": Path(path).stat().st_size, "each": added // _COPIES}


def _forest_loader(path: str) -> Callable[[], Any]:
    treelite = import_module("treelite")
    if path.endswith(".tl"):
        return lambda: treelite.Model.deserialize(path)
    if path.endswith(".txt"):
        return lambda: treelite.frontend.load_lightgbm_model(path)
    choice = "ubjson" if path.endswith(".ubj") else "json"
    return lambda: treelite.frontend.load_xgboost_model(path, format_choice=choice)


def _added(load: Callable[[], None]) -> int:
    gc.collect()
    before = _resident()
    load()
    gc.collect()
    return _resident() - before


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
