"""Creates ONNX Runtime sessions in one process, as the backend does for its instances.

``ModelInstanceState`` of triton onnxruntime_backend (src/onnxruntime.cc) calls ``LoadModel``, so
each instance has a session. A process of its own runs this: its peak is that of the sessions.

    python -m memory_measure.sessions MODEL PROVIDER COUNT
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any

import onnxruntime

from memory_measure.processes import gpu_bytes, host_memory


def main(path: str, provider: str, count: int) -> None:
    """Print what the process holds before the first session and after each one."""
    held = [_held()]
    sessions = []
    for _ in range(count):
        sessions.append(onnxruntime.InferenceSession(path, providers=[provider]))
        held.append(_held())
    print(json.dumps({"version": onnxruntime.__version__, "held": held}))


def _held() -> dict[str, Any]:
    gpus = gpu_bytes()
    gpu = None if gpus is None else gpus.get(os.getpid(), 0)
    return {**asdict(host_memory(os.getpid())), "gpu": gpu}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
