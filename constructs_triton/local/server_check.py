"""Asks the real server whether it loads the models of a repository.

Each model is loaded by name in one server after the other until all have an answer; a server that gives none
(the Python backend waits for ever without ``model.py``) is ended and the next one started. Backends that the
wheel does not carry are stood in for by one that does nothing, compiled with the system's C compiler: then
Triton's core judges the configuration, though nobody judges the model file.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from constructs_triton.errors import LocalEndpointError
from constructs_triton.local.server.backends import make_backends
from constructs_triton.local.server.installation import TritonInstallation, find_installation, inspect_python
from constructs_triton.local.server.ports import reserve_port
from constructs_triton.model_config import format_model_config
from constructs_triton.model_config.backends import infer_backend
from constructs_triton.model_config.folder import CONFIG_FILE, ModelFolder
from constructs_triton.model_repository import ModelRepository

__all__ = ["ask_server"]

STAND_INS = frozenset(
    {"dali", "fil", "onnxruntime", "openvino", "pytorch", "tensorflow", "tensorrt", "tensorrtllm", "vllm"}
)
"""Backends of NVIDIA's images that may be stood in for; any other name is left for the server to miss."""

_KIND_GPU = 1
_START_SECONDS, _LOAD_SECONDS = 60.0, 30.0
# The one function that the core insists on. It answers without outputs, or a warm-up would wait for ever.
_STAND_IN_SOURCE = """
void *TRITONBACKEND_ResponseNew(void **response, void *request);
void *TRITONBACKEND_ResponseSend(void *response, unsigned int flags, void *error);
void *TRITONBACKEND_RequestRelease(void *request, unsigned int flags);

void *TRITONBACKEND_ModelInstanceExecute(void *instance, void **requests, unsigned int count)
{
  void *response;
  (void)instance;
  for (unsigned int i = 0; i < count; ++i) {
    if (TRITONBACKEND_ResponseNew(&response, requests[i]) == 0)
      TRITONBACKEND_ResponseSend(response, 1, 0);
    TRITONBACKEND_RequestRelease(requests[i], 1);
  }
  return 0;
}
"""


def ask_server(path: Path) -> dict[str, str]:
    """The server's answer for every model: ``"loads"``, or ``"rejected: "`` with its own words.

    What a stand-in had a part in says so. On a machine without a GPU, instance groups on GPUs are left out.

    :raises MissingDependencyError: without nvidia-pytriton, or without a C compiler where one is needed.
    :raises LocalEndpointError: where the server itself does not start.
    """
    repository = ModelRepository.from_directory(path)
    with tempfile.TemporaryDirectory(prefix="constructs-triton-check-") as folder:
        bench = _Bench.prepare(repository, Path(folder))
        answers: dict[str, str] = {}
        while len(answers) < len(repository.models):
            with bench.server() as port:
                bench.ask(port, answers)
    return dict(sorted(answers.items()))


@dataclass(frozen=True)
class _Bench:
    """A private copy of the repository (of links, but for what is changed) and of the backends."""

    directory: Path
    models: dict[str, str]
    installation: TritonInstallation

    @classmethod
    def prepare(cls, repository: ModelRepository, directory: Path) -> _Bench:
        installation = find_installation()
        make_backends(directory / "backends", installation, inspect_python())
        (directory / "models").mkdir()
        (directory / "home").mkdir()
        for entry in repository.path.iterdir():
            if entry.name not in repository.models:
                (directory / "models" / entry.name).symlink_to(entry.resolve())
        notes = {name: _copy(model, directory / "models" / name) for name, model in repository.models.items()}
        for name, model in repository.models.items():
            backend = infer_backend(model).backend
            if backend in STAND_INS and backend not in installation.backend_names():
                _compile_stand_in(directory / "backends" / backend, backend)
                notes[name] += f" (a stand-in for the backend {backend} read the configuration alone)"
        return cls(directory, notes, installation)

    @contextmanager
    def server(self) -> Iterator[int]:
        """A server that has loaded nothing yet; its port."""
        with reserve_port() as reservation:
            yield from self._serve(int(reservation.getsockname()[1]))

    def _serve(self, port: int) -> Iterator[int]:
        prefix = f"triton_check_{os.getpid()}_{port}_"
        python = inspect_python()
        with (self.directory / "server.log").open("ab") as log:
            process = subprocess.Popen(
                [str(self.installation.executable), *self._flags(port, prefix)],
                env={
                    "HOME": str(self.directory / "home"),
                    "PATH": os.pathsep.join([str(python.bin), "/usr/local/bin", "/usr/bin", "/bin"]),
                    "LD_LIBRARY_PATH": self.installation.library_path(python),
                },
                stdout=log,
                stderr=log,
                cwd=self.directory,
                start_new_session=True,
            )
        try:
            self._wait(process, port)
            yield port
        finally:
            _end(process, prefix)

    def _flags(self, port: int, prefix: str) -> list[str]:
        return [
            f"--model-repository={self.directory / 'models'}",
            f"--backend-directory={self.directory / 'backends'}",
            "--model-control-mode=explicit",
            "--http-address=127.0.0.1",
            f"--http-port={port}",
            "--allow-grpc=false",
            "--allow-metrics=false",
            "--allow-sagemaker=false",
            f"--backend-config=python,shm-region-prefix-name={prefix}",
            "--backend-config=python,shm-default-byte-size=1048576",
        ]

    def _wait(self, process: subprocess.Popen[bytes], port: int) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            if _request(port, "GET", "/v2/health/live", 2.0)[0] == 200:
                return
            time.sleep(0.05)
        tail = (self.directory / "server.log").read_text("utf-8", "replace").splitlines()[-8:]
        raise LocalEndpointError("the Triton server did not start; it said:\n" + "\n".join(tail))

    def ask(self, port: int, answers: dict[str, str]) -> None:
        """Load what has no answer yet, as long as the server lives and answers."""
        for name, note in self.models.items():
            if name in answers:
                continue
            path = f"/v2/repository/models/{quote(name, safe='')}/load"
            status, text = _request(port, "POST", path, _LOAD_SECONDS)
            if status is None:
                answers[name] = f"rejected: {text}{note}"
                return
            answers[name] = ("loads" if status == 200 else f"rejected: {_reason(text)}") + note


def _copy(model: ModelFolder, target: Path) -> str:
    """The model as links, its configuration as the machine can judge it; what was changed."""
    target.mkdir()
    for name in model.entries:
        if name != CONFIG_FILE:
            (target / name).symlink_to((model.directory / name).resolve())
    content = model.read(CONFIG_FILE)
    if content is None:
        return ""
    config, note = model.config, ""
    if config is not None and not Path("/dev/nvidia0").exists():
        kept = [group for group in config.instance_group if group.kind != _KIND_GPU]
        if len(kept) < len(config.instance_group):
            changed = type(config)()
            changed.CopyFrom(config)
            del changed.instance_group[:]
            changed.instance_group.extend(kept)
            content, note = format_model_config(changed).encode(), " (without its groups on GPUs)"
    (target / CONFIG_FILE).write_bytes(content)
    return note


def _compile_stand_in(directory: Path, backend: str) -> None:
    if directory.exists():
        return
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise LocalEndpointError(f"backend {backend}: no C compiler for its stand-in; install gcc")
    directory.mkdir()
    source = directory / "stand_in.c"
    source.write_text(_STAND_IN_SOURCE, encoding="ascii")
    library = directory / f"libtriton_{backend}.so"
    done = subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(library), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LocalEndpointError(f"backend {backend}: its stand-in does not compile; {done.stderr.strip()}")


def _request(port: int, method: str, path: str, timeout: float) -> tuple[int | None, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, body=b"{}" if method == "POST" else None)
        response = connection.getresponse()
        return response.status, response.read().decode("utf-8", "replace")
    except TimeoutError:
        return None, f"no answer within {timeout:.0f} s: the server waits for ever"
    except (OSError, http.client.HTTPException):
        return None, "the server ended"
    finally:
        connection.close()


def _reason(text: str) -> str:
    with suppress(ValueError, KeyError, TypeError):
        text = str(json.loads(text)["error"])
    return re.sub(r"\s+", " ", text).strip()


def _end(process: subprocess.Popen[bytes], prefix: str) -> None:
    """End the server's whole session, and remove the shared memory that a killed one leaves."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for region in Path("/dev/shm").glob(f"{prefix}*"):
        region.unlink(missing_ok=True)
