"""Creates ONNX Runtime sessions in one process, as the backend does for its instances.

``ModelInstanceState`` of triton onnxruntime_backend (src/onnxruntime.cc) calls ``LoadModel``, so
each instance has a session. A process of its own runs this: its peak is that of the sessions.

    PYTHONPATH=dev .venv/bin/python -m memory_measure.sessions MODEL COUNT

An ONNX Runtime with the CUDA provider uses it.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any

import onnxruntime

from memory_measure.processes import gpu_bytes, host_memory

_PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")


def main(path: str, count: int) -> None:
    """Print what the process holds before the first session and after each one."""
    available = onnxruntime.get_available_providers()
    providers = [provider for provider in _PROVIDERS if provider in available]
    held = [_held()]
    sessions = []
    for _ in range(count):
        sessions.append(onnxruntime.InferenceSession(path, providers=providers))
        held.append(_held())
    print(json.dumps({"providers": providers, "held": held}))


def _held() -> dict[str, Any]:
    gpus = gpu_bytes()
    gpu = None if gpus is None else gpus.get(os.getpid(), 0)
    return {**asdict(host_memory(os.getpid())), "gpu": gpu}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
