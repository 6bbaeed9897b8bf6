"""Measures what Triton takes on this machine, and writes it as JSON.

    PYTHONPATH=dev .venv/bin/python -m memory_measure --onnxruntime 1.19.2 > results.json

Without ``--tritonserver`` it is the server of nvidia-pytriton, which has the Python backend only:
ONNX Runtime is then measured in a process with one session for each instance. On a machine without
GPUs each GPU figure is ``null`` and ``gpu`` says why. nvidia-smi names no process in a container
without ``--pid=host``; ``gpus_used`` counts all processes. A Python with PyTorch adds its figures.

``results.json`` is what it printed, with ``--onnxruntime`` of 1.19.2 (Triton 24.10) to 1.28.0, for
the facts in ``memory.json`` of the checker. ``shared_memory`` is what
``python -m memory_measure.shared_memory`` prints. All figures are bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnxruntime

from constructs_triton_tools.local.server.installation import (
    TritonInstallation,
    find_installation,
)
from memory_measure.processes import gpu_bytes
from memory_measure.repositories import WEIGHT_BYTES, write_onnx, write_python, write_weights
from memory_measure.server import running
from memory_measure.shared_memory import measure_shared_memory

_DEV = Path(__file__).resolve().parents[1]
_SIXTEEN_MIB = "--backend-config=python,shm-default-byte-size=16777216"
_NO_GPU = "not measured: this machine has no GPU, or nvidia-smi does not run"
_LOAD_WEIGHTS = f"self.weights = numpy.ones({WEIGHT_BYTES}, numpy.uint8)"


def main() -> None:
    """Run every measurement and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tritonserver", type=Path, help="the server (default: nvidia-pytriton's)")
    parser.add_argument(
        "--onnxruntime",
        metavar="VERSION",
        action="append",
        default=[],
        help="measure this version too, installed from PyPI (may be repeated)",
    )
    arguments = parser.parse_args()
    installation = find_installation(arguments.tritonserver)
    results = {
        "machine": {"system": platform.platform(), "python": platform.python_version()},
        "gpu": _NO_GPU if gpu_bytes() is None else _gpu_names(),
        "server": measure_server(installation),
        "python": measure_python(installation),
        "shared_memory": measure_shared_memory(installation),
        "onnxruntime": measure_sessions(arguments.onnxruntime),
        "onnxruntime_backend": measure_backend(installation),
    }
    json.dump(results, sys.stdout, indent=1)
    print()


def _gpu_names() -> str:
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()


def measure_server(installation: TritonInstallation) -> dict[str, Any]:
    """Measure a server without models, with pinned memory pools of several sizes."""
    found: dict[str, Any] = {}
    for size in (0, 256 * 2**20):
        option = f"--pinned-memory-pool-byte-size={size}"
        found[f"pinned pool of {size >> 20} MiB"] = _in_server(installation, Path.mkdir, [option])
    return found


def measure_python(installation: TritonInstallation) -> dict[str, Any]:
    """Measure Python models: the process of an instance, and its region in ``/dev/shm``."""
    cases: dict[str, tuple[str, int, str, list[str]]] = {
        "empty, 1 instance": ("pass", 1, "", []),
        "empty, 4 instances": ("pass", 4, "", []),
        "empty, 4 instances, regions of 16 MiB": ("pass", 4, "", [_SIXTEEN_MIB]),
        "weights, 1 instance": (_LOAD_WEIGHTS, 1, "import numpy", []),
        "weights, 2 instances": (_LOAD_WEIGHTS, 2, "import numpy", []),
    }
    for package in ("onnxruntime", "torch", "transformers"):
        if find_spec(package) is not None:
            cases[f"imports {package}, 1 instance"] = ("pass", 1, f"import {package}", [])
    if find_spec("torch") is not None and gpu_bytes() is not None:
        context = "self.tensor = torch.zeros(1, device='cuda')"
        cases["torch on the GPU, 1 instance"] = (context, 1, "import torch", [])
        cases["torch on the GPU, 2 instances"] = (context, 2, "import torch", [])

    found: dict[str, Any] = {}
    for name, (initialize, count, imports, options) in cases.items():
        write = partial(write_python, initialize=initialize, count=count, imports=imports)
        found[name] = _in_server(installation, write, options)
    found["a call of 32 MiB"] = _after_a_call(installation, 8 * 2**20)
    return found


def _in_server(
    installation: TritonInstallation, write: Callable[[Path], None], options: list[str]
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder) / "models"
        write(repository)
        with running(installation, repository, options) as server:
            measured = server.measure()
            measured["pinned_pool_metric"] = server.metric("nv_pinned_memory_pool_total_bytes")
            return measured


def _after_a_call(installation: TritonInstallation, elements: int) -> dict[str, Any]:
    """Measure the region before a call, after it, and after a small one that follows."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder) / "models"
        write_python(repository, "pass", 1)
        with running(installation, repository) as server:
            before = server.measure()["shared_regions"]
            server.call(elements)
            after = server.measure()["shared_regions"]
            server.call(1)
            later = server.measure()["shared_regions"]
    return {"before": before, "after": after, "after a small call": later}


def measure_sessions(versions: Sequence[str]) -> dict[str, Any]:
    """Measure one and two sessions of one model in one process, by version of ONNX Runtime."""
    found: dict[str, Any] = {"weight_bytes": WEIGHT_BYTES}
    found[onnxruntime.__version__] = _sessions([str(_DEV)])
    for version in versions:
        with tempfile.TemporaryDirectory() as folder:
            install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps"]
            package = f"onnxruntime=={version}"
            subprocess.run([*install, "--target", folder, package], check=True)
            found[version] = _sessions([folder, str(_DEV)])
    return found


def _sessions(python_path: list[str]) -> dict[str, Any]:
    found = {}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(python_path)}
    for external in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            write_weights(path, external=external)
            answer = subprocess.run(
                [sys.executable, "-m", "memory_measure.sessions", str(path), "2"],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            found["external data" if external else "internal data"] = json.loads(answer.stdout)
    return found


def measure_backend(installation: TritonInstallation) -> dict[str, Any]:
    """Measure one and two instances of the ONNX Runtime backend, where the server has it."""
    if "onnxruntime" not in installation.backend_names():
        return {"skipped": "this server has no ONNX Runtime backend"}
    kind = "KIND_CPU" if gpu_bytes() is None else "KIND_GPU"
    found: dict[str, Any] = {"weight_bytes": WEIGHT_BYTES}
    for external in (False, True):
        for count in (1, 2):
            place = "external" if external else "internal"
            write = partial(write_onnx, external=external, count=count, kind=kind)
            found[f"{kind}, {place} data, count {count}"] = _in_server(installation, write, [])
    return found


if __name__ == "__main__":
    main()
