"""A private copy of a repository, which the Triton server of this machine can load.

Models of backends that nvidia-pytriton does not contain are loaded by the stand-ins of the local
run. Where a stand-in cannot run, an empty backend takes its place, compiled with the system's C
compiler: Triton's core then checks the configuration, but the model file is not checked.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_core.processes.children import run_child
from constructs_triton_tools.local.server.installation import (
    TritonInstallation,
    inspect_python,
    make_backends,
)
from constructs_triton_tools.local.stand_ins.environments import replace_environments
from constructs_triton_tools.local.stand_ins.frameworks import PACKAGES
from constructs_triton_tools.local.stand_ins.stand_ins import StandIns
from triton_model_check.model.backends import infer_backend
from triton_model_check.model.folder import CONFIG_FILE, ModelFolder
from triton_model_check.model_config.server_answer import Loader
from triton_model_check.model_config.text import format_model_config
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.uncompressed.copying import copy_file

BACKENDS = frozenset(
    {
        "dali",
        "fil",
        "onnxruntime",
        "openvino",
        "pytorch",
        "tensorflow",
        "tensorrt",
        "tensorrtllm",
        "vllm",
    }
)
"""Backends of NVIDIA's images that are replaced. The server reports any other name as missing."""

_KIND_GPU = 1
_ENVIRONMENT = "EXECUTION_ENV_PATH"
_COMPILE_SECONDS = 60.0
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


@dataclass(frozen=True)
class CopiedModel:
    """How a model of the copy differs from the user's: what was changed, and what loads it."""

    notes: tuple[str, ...] = ()
    loader: Loader = "backend"

    @property
    def note(self) -> str:
        """What was changed or replaced, in words; may be empty."""
        return "; ".join(self.notes)

    def noting(self, note: str, loader: Loader | None = None) -> CopiedModel:
        """Return the model with one more note."""
        return CopiedModel((*self.notes, note), loader or self.loader)


def copy_models(
    repository: ModelRepository, directory: Path, installation: TritonInstallation
) -> dict[str, CopiedModel]:
    """Fill ``directory`` with ``models``, ``backends`` and ``home``, with links to unchanged files.

    Returns:
        The models by name.
    """
    python = inspect_python(packages=PACKAGES)
    make_backends(directory / "backends", installation, python)
    (directory / "models").mkdir()
    (directory / "home").mkdir()
    for entry in repository.path.iterdir():
        if entry.name not in repository.models:
            (directory / "models" / entry.name).symlink_to(entry.resolve())
    models = directory / "models"
    archives = _environments(repository)
    copied = {
        name: CopiedModel(_copy(model, models / name, archives))
        for name, model in repository.models.items()
    }
    built: list[str] = []
    replace_environments(models, python.executable, built.append)
    for line in built:
        name = line.partition("/")[0]
        copied[name] = copied[name].noting(line)
    stand_ins = StandIns(python.packages, python.executable)
    for name, note, loader in _replace_backends(repository, directory, stand_ins):
        copied[name] = copied[name].noting(note, loader)
    return copied


def has_gpu() -> bool:
    """Return whether this machine has an NVIDIA GPU."""
    return Path("/dev/nvidia0").exists()


def _replace_backends(
    repository: ModelRepository, directory: Path, stand_ins: StandIns
) -> Iterator[tuple[str, str, Loader]]:
    """Replace the backends that are not installed.

    Yields each model that needs another one, with a note and with what loads it.

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
            note = f"loaded by {runtime} in place of the backend {backend}"
            yield model.name, note, "stand-in"
        else:
            _compile_empty_backend(directory / "models" / model.name, backend)
            note = f"an empty backend {backend} was used: only the configuration was checked"
            yield model.name, note, "empty-backend"


def _environments(repository: ModelRepository) -> set[str]:
    """Return the names of the archives that Python models have their packages in."""
    names = set()
    for model in repository.models.values():
        config = model.config
        if config and _ENVIRONMENT in config.parameters:
            path = config.parameters[_ENVIRONMENT].string_value
            names.add(path.rpartition("/")[2])
    return names


def _copy(model: ModelFolder, target: Path, archives: set[str]) -> tuple[str, ...]:
    """Link the model's files, write a configuration for this machine, and return notes of the
    change.

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
        return ()
    config = model.config
    notes: tuple[str, ...] = ()
    if config is not None and not has_gpu():
        kept = [group for group in config.instance_group if group.kind != _KIND_GPU]
        if len(kept) < len(config.instance_group):
            changed = type(config)()
            changed.CopyFrom(config)
            del changed.instance_group[:]
            changed.instance_group.extend(kept)
            content = format_model_config(changed).encode()
            notes = ("without its instance groups on GPUs",)
    (target / CONFIG_FILE).write_bytes(content)
    return notes


def _mirror(source: Path, target: Path) -> None:
    """Create the same folders with links to the files.

    Python writes its bytecode beside the links.
    """
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
        raise LocalEndpointError(
            f"backend {backend}: its replacement needs a C compiler; install gcc"
        )
    source = directory / "empty_backend.c"
    source.write_text(_EMPTY_SOURCE, encoding="ascii")
    library = directory / f"libtriton_{backend}.so"
    done = run_child(
        [compiler, "-shared", "-fPIC", "-o", library, source], seconds=_COMPILE_SECONDS
    )
    if done.returncode:
        raise LocalEndpointError(
            f"backend {backend}: its replacement cannot be compiled: {done.stderr.strip()}"
        )
