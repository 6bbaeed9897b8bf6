"""Loads the models of a repository in the Triton server and returns its answers.

The models are loaded one after the other. A server that does not answer (the Python backend waits forever
without ``model.py``) is stopped, and a new one continues with the next model. Models of backends that
nvidia-pytriton does not contain are loaded by the stand-ins of the local run. Where a stand-in cannot run,
an empty backend takes its place, compiled with the system's C compiler: Triton's core then checks the
configuration, but the model file is not checked.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from constructs_triton.artifacts.environments.placement import with_environments
from constructs_triton.errors import LocalEndpointError
from constructs_triton.local.server.installation import (
    TritonInstallation,
    find_installation,
    inspect_python,
    make_backends,
)
from constructs_triton.local.server.supervisor_process import supervisor_command
from constructs_triton.local.server.unix_http import UnixHTTPConnection
from constructs_triton.local.stand_ins.environments import replace_environments
from constructs_triton.local.stand_ins.frameworks import PACKAGES
from constructs_triton.local.stand_ins.stand_ins import StandIns
from constructs_triton.model_config.backends import infer_backend
from constructs_triton.model_config.folder import CONFIG_FILE, ModelFolder
from constructs_triton.model_config.text import format_model_config
from constructs_triton.model_repository import ModelRepository
from constructs_triton.model_repository.uncompressed.copying import copy_file
from constructs_triton.processes.children import PIPE, Child, run_child
from constructs_triton.processes.environments import foreign_environment

__all__ = ["ask_server"]

BACKENDS = frozenset(
    {"dali", "fil", "onnxruntime", "openvino", "pytorch", "tensorflow", "tensorrt", "tensorrtllm", "vllm"}
)
"""Backends of NVIDIA's images that are replaced. The server reports any other name as missing."""

_KIND_GPU = 1
_ENVIRONMENT = "EXECUTION_ENV_PATH"
_SOCKET_NAME = "http.sock"
_START_SECONDS, _LOAD_SECONDS, _COMPILE_SECONDS = 60.0, 30.0, 60.0
# Of an ensemble, the steps are unloaded too.
_BODIES = {"load": b"{}", "unload": b'{"parameters": {"unload_dependents": true}}'}
# The only required function. It responds without outputs, because a warm-up waits for a response.
_EMPTY_SOURCE = """
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
    """Return the server's answer for each model: ``"loads"``, or ``"rejected: "`` and its message.

    An answer says if another backend was used. Without a GPU, instance groups on GPUs are removed first.

    Raises:
        InvalidValueError: a Python environment was not built, or cannot be built for the server's Python.
        MissingDependencyError: nvidia-pytriton is not installed, or uv, which an environment needs.
        LocalEndpointError: the server does not start, or an empty backend needs a C compiler and there is
            none.
    """
    repository = with_environments(ModelRepository.from_directory(path))
    with tempfile.TemporaryDirectory(prefix="constructs-triton-check-") as folder:
        check_run = _CheckRun.prepare(repository, Path(folder))
        answers: dict[str, str] = {}
        while len(answers) < len(repository.models):
            with check_run.server():
                check_run.ask(answers)
    return dict(sorted(answers.items()))


@dataclass(frozen=True)
class _CheckRun:
    """A private copy of the repository and of the backends, with links to unchanged files."""

    directory: Path
    models: dict[str, str]
    installation: TritonInstallation

    @classmethod
    def prepare(cls, repository: ModelRepository, directory: Path) -> _CheckRun:
        installation = find_installation()
        python = inspect_python(packages=PACKAGES)
        make_backends(directory / "backends", installation, python)
        (directory / "models").mkdir()
        (directory / "home").mkdir()
        for entry in repository.path.iterdir():
            if entry.name not in repository.models:
                (directory / "models" / entry.name).symlink_to(entry.resolve())
        archives = _environments(repository)
        notes = {
            name: _copy(model, directory / "models" / name, archives)
            for name, model in repository.models.items()
        }
        built: list[str] = []
        replace_environments(directory / "models", python.executable, built.append)
        for line in built:
            notes[line.partition("/")[0]] += f" ({line})"
        stand_ins = StandIns(python.packages, python.executable)
        for name, note in _replace_backends(repository, directory, stand_ins):
            notes[name] += note
        return cls(directory, notes, installation)

    @contextmanager
    def server(self) -> Iterator[None]:
        """Start a server without models, on a Unix socket in the private folder."""
        prefix = f"triton_{self.directory.name}_"
        (self.directory / "server").mkdir()
        command = supervisor_command(prefix, self.directory / "server", self.directory)
        # The supervisor ends with its standard input, after it has cleaned up.
        streams = {"stdin": PIPE, "stdout": PIPE, "text": True}
        with Child[str](command, environment=foreign_environment(), is_kept=False, **streams) as supervisor:
            try:
                self._start(supervisor, prefix)
                yield
            finally:
                assert supervisor.stdin is not None
                supervisor.stdin.write('{"stop": true}\n')  # keep the folder of the run

    def _start(self, supervisor: Child[str], prefix: str) -> None:
        python = inspect_python()
        request = {
            "argv": [str(self.installation.executable), *self._flags(prefix)],
            "environment": {
                "HOME": str(self.directory / "home"),
                "PATH": os.pathsep.join([str(python.bin), "/usr/local/bin", "/usr/bin", "/bin"]),
                "LD_LIBRARY_PATH": self.installation.library_path(python),
            },
            "cwd": str(self.directory / "server"),
            "log": str(self.directory / "server.log"),
            "mounted_models": None,
            "private_port": None,
            "has_network": True,
            "grace_seconds": 0,
        }
        assert supervisor.stdin is not None
        assert supervisor.stdout is not None
        supervisor.stdin.write(json.dumps(request) + "\n")
        supervisor.stdin.flush()
        supervisor.stdout.readline()  # that it was started
        deadline = time.monotonic() + _START_SECONDS
        # The next line says that it has ended.
        while time.monotonic() < deadline and not select.select([supervisor.stdout], [], [], 0.05)[0]:
            if self._request("GET", "/v2/health/live", 2.0)[0] == 200:
                return
        tail = (self.directory / "server.log").read_text("utf-8", "replace").splitlines()[-8:]
        raise LocalEndpointError("the Triton server did not start; its log ends with:\n" + "\n".join(tail))

    def _flags(self, prefix: str) -> list[str]:
        return [
            f"--model-repository={self.directory / 'models'}",
            f"--backend-directory={self.directory / 'backends'}",
            "--model-control-mode=explicit",
            f"--http-address=unix:{_SOCKET_NAME}",  # relative to the server's working directory
            "--allow-grpc=false",
            "--allow-metrics=false",
            "--allow-sagemaker=false",
            f"--backend-config=python,shm-region-prefix-name={prefix}",
            "--backend-config=python,shm-default-byte-size=1048576",
        ]

    def ask(self, answers: dict[str, str]) -> None:
        """Load the models that have no answer yet, until the server ends or does not answer."""
        for name, note in self.models.items():
            if name in answers:
                continue
            path = f"/v2/repository/models/{quote(name, safe='')}"
            status, text = self._request("POST", f"{path}/load", _LOAD_SECONDS)
            if status is None:
                answers[name] = f"rejected: {text}{note}"
                return
            answers[name] = ("loads" if status == 200 else f"rejected: {_reason(text)}") + note
            self._request("POST", f"{path}/unload", _LOAD_SECONDS)  # its processes would slow down the others

    def _request(self, method: str, path: str, timeout: float) -> tuple[int | None, str]:
        connection = UnixHTTPConnection(self.directory / "server" / _SOCKET_NAME, timeout=timeout)
        try:
            connection.request(method, path, body=_BODIES.get(path.rpartition("/")[2]))
            response = connection.getresponse()
            return response.status, response.read().decode("utf-8", "replace")
        except TimeoutError:
            return None, f"no answer within {timeout:.0f} s: the server hangs"
        except (OSError, http.client.HTTPException):
            return None, "the server ended"
        finally:
            connection.close()


def _replace_backends(
    repository: ModelRepository, directory: Path, stand_ins: StandIns
) -> Iterator[tuple[str, str]]:
    """Replace the backends that are not installed; yield each model that needs one, with a note.

    Triton looks for a library in the model's folder first, so each model has its own empty backend.
    """
    installed = {path.name for path in (directory / "backends").iterdir()}
    stand_ins.place(directory / "backends")
    for model in repository.models.values():
        backend = infer_backend(model).backend
        if backend not in BACKENDS or backend in installed:
            continue
        if stand_ins.can_run(model, backend):
            runtime = stand_ins.describe(model, backend)
            yield model.name, f" (loaded by {runtime} in place of the backend {backend})"
        else:
            _compile_empty_backend(directory / "models" / model.name, backend)
            yield model.name, f" (an empty backend {backend} was used: only the configuration was checked)"


def _environments(repository: ModelRepository) -> set[str]:
    """Return the names of the archives that Python models have their packages in."""
    configs = (model.config for model in repository.models.values())
    found = (each.parameters[_ENVIRONMENT] for each in configs if each and _ENVIRONMENT in each.parameters)
    return {each.string_value.rpartition("/")[2] for each in found}


def _copy(model: ModelFolder, target: Path, archives: set[str]) -> str:
    """Link the model's files, write a configuration for this machine, and return a note of the change.

    Environments are copied, because those with another Python than the server are replaced.
    """
    target.mkdir()
    for name, is_directory in model.entries.items():
        if name in archives and not is_directory:
            copy_file(model.directory / name, target / name)
        elif name != CONFIG_FILE:
            _mirror(model.directory / name, target / name)
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
            content, note = format_model_config(changed).encode(), " (without its instance groups on GPUs)"
    (target / CONFIG_FILE).write_bytes(content)
    return note


def _mirror(source: Path, target: Path) -> None:
    """Create the same folders with links to the files. Python writes its bytecode beside the links."""
    if source.is_symlink() or not source.is_dir():
        target.symlink_to(source.resolve())
        return
    target.mkdir()
    for folder, folders, files in os.walk(source):
        place = target / Path(folder).relative_to(source)
        for name in [*files, *folders]:
            path = Path(folder, name)
            if name in folders and not path.is_symlink():
                (place / name).mkdir()
            else:
                (place / name).symlink_to(path.resolve())


def _compile_empty_backend(directory: Path, backend: str) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise LocalEndpointError(f"backend {backend}: its replacement needs a C compiler; install gcc")
    source = directory / "empty_backend.c"
    source.write_text(_EMPTY_SOURCE, encoding="ascii")
    library = directory / f"libtriton_{backend}.so"
    done = run_child([compiler, "-shared", "-fPIC", "-o", library, source], seconds=_COMPILE_SECONDS)
    if done.returncode:
        raise LocalEndpointError(
            f"backend {backend}: its replacement cannot be compiled: {done.stderr.strip()}"
        )


def _reason(text: str) -> str:
    with suppress(ValueError, KeyError, TypeError):
        text = str(json.loads(text)["error"])
    return re.sub(r"\s+", " ", text).strip()
