"""A real Triton server for one measurement."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy

from constructs_triton_tools.local.server.installation import (
    TritonInstallation,
    inspect_python,
    make_backends,
)
from memory_measure.processes import children, gpu_bytes, gpus_used, host_memory, shared_regions

_START_SECONDS = 120.0
_STUB = "triton_python_backend_stub"


@dataclass(frozen=True, slots=True)
class MeasuredServer:
    """A server that is ready, and the regions in ``/dev/shm`` that others had before it."""

    pid: int
    url: str
    metrics_url: str
    other_regions: frozenset[str]

    def measure(self) -> dict[str, Any]:
        """Return what the server and its Python processes hold."""
        gpus = gpu_bytes()
        return {
            "server": self._process(self.pid, gpus),
            "stubs": [self._process(pid, gpus) for pid in _stubs(self.pid)],
            "shared_regions": self.regions(),
            "gpus_used": gpus_used(),
        }

    def regions(self) -> list[int]:
        """Return the sizes of its regions in ``/dev/shm``, which may be a mount of its own."""
        regions = shared_regions(Path(f"/proc/{self.pid}/root/dev/shm"))
        return sorted(size for name, size in regions.items() if name not in self.other_regions)

    def _process(self, pid: int, gpus: dict[int, int] | None) -> dict[str, Any]:
        gpu = None if gpus is None else gpus.get(pid, 0)
        return {**asdict(host_memory(pid)), "gpu": gpu}

    def metric(self, name: str) -> float | None:
        """Return a metric of the server, or ``None`` if it has none of this name."""
        with urllib.request.urlopen(self.metrics_url, timeout=30) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith(name):
                    return float(line.rpartition(" ")[2])
        return None

    def call(self, elements: int) -> None:
        """Send FP32 elements to the model ``m``, which returns them."""
        content = numpy.ones((elements, 1), numpy.float32).tobytes()
        head = json.dumps(
            {
                "inputs": [
                    {
                        "name": "x",
                        "shape": [elements, 1],
                        "datatype": "FP32",
                        "parameters": {"binary_data_size": len(content)},
                    }
                ],
                "parameters": {"binary_data_output": True},
            }
        ).encode()
        request = urllib.request.Request(
            f"{self.url}/v2/models/m/infer",
            head + content,
            {
                "Content-Type": "application/octet-stream",
                "Inference-Header-Content-Length": str(len(head)),
            },
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            answer.read()


def _stubs(pid: int) -> list[int]:
    """Return the Python processes below the server; a shell may stand between."""
    found = []
    for child in children(pid):
        name = Path(f"/proc/{child}/exe").readlink().name
        found += [child] if _STUB in name else _stubs(child)
    return found


@contextmanager
def running(
    installation: TritonInstallation,
    repository: Path,
    options: Sequence[str] = (),
    prefix: Sequence[str] = (),
) -> Iterator[MeasuredServer]:
    """Start a server with a repository, and end it afterwards.

    ``prefix`` is the beginning of a command that becomes the server.
    """
    port = _free_port()
    metrics_port = _free_port()
    url = f"http://127.0.0.1:{port}"
    others = frozenset(shared_regions())
    python = inspect_python(Path(sys.executable), {"numpy": ["numpy"]})
    backends = repository.parent / "backends"
    make_backends(backends, installation, python)
    command = [
        *prefix,
        str(installation.executable),
        f"--model-repository={repository}",
        f"--backend-directory={backends}",
        f"--http-port={port}",
        "--http-address=127.0.0.1",
        "--allow-grpc=false",
        f"--metrics-port={metrics_port}",
        *options,
    ]
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": installation.library_path(python),
        "PATH": f"{python.bin}{os.pathsep}{os.environ['PATH']}",
    }
    log = repository.parent / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        _wait(process, url, log)
        metrics_url = f"http://127.0.0.1:{metrics_port}/metrics"
        yield MeasuredServer(process.pid, url, metrics_url, others)
    finally:
        process.terminate()
        process.wait(60)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/v2/health/ready", timeout=2):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.1)
    tail = log.read_text("utf-8", "replace").splitlines()[-8:]
    raise RuntimeError("the server is not ready; its log ends with:\n" + "\n".join(tail))
