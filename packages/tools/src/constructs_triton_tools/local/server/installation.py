"""The Triton server on this machine, and the Python that runs its models.

Causes of a server that hangs or fails without a clear message are checked first: the Python backend
waits forever for a stub that cannot start.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import LocalEndpointError, MissingDependencyError
from constructs_triton_core.processes.children import run_child
from constructs_triton_tools.local.server import utf8_text
from constructs_triton_tools.local.server.cached_server import cached_environment, cached_server
from constructs_triton_tools.local.server.libpython import find_libpython, install_command, soname

__all__ = [
    "ModelPython",
    "TritonInstallation",
    "find_installation",
    "inspect_python",
    "make_backends",
    "require_machine",
]

_INSTALL_EXTRA = "pip install 'constructs-triton[server]'"
_ENGINE = "run the image in a container with --engine docker"
#: The wheel's platform tag is manylinux_2_35.
_OLDEST_GLIBC = (2, 35)
#: The newest Python for which NumPy below 2 exists.
_NEWEST_PYTHON = (3, 12)
_STUB = "triton_python_backend_stub"
#: The module that each ``model.py`` imports; what it prints before that stays ASCII.
_UTILITIES = "triton_python_backend_utils.py"
#: The name of the module ``utf8_text`` in the folder of the Python backend. Models import from
#: that folder too, so it is no name that one of their modules has.
_UTF8_TEXT = "constructs_triton_utf8_text"
_PROBE_SECONDS = 60.0
_PROBE = """
import importlib.metadata as metadata, importlib.util, json, os, site, sys, sysconfig
def version(distributions):
    for name in distributions:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return None
packages = {}
for module, distributions in json.loads(sys.argv[1]).items():
    if importlib.util.find_spec(module.split(".")[0]) and importlib.util.find_spec(module):
        packages[module] = version(distributions) or "of unknown version"
libdir, numpy = sysconfig.get_config_var("LIBDIR"), version(["numpy"])
print(json.dumps({
    "version": sys.version_info[:2], "libdir": libdir, "numpy": numpy, "packages": packages,
    "folders": [folder for folder in site.getsitepackages() if os.path.isdir(folder)],
}))
"""


@dataclass(frozen=True, slots=True)
class ModelPython:
    """The Python environment of the models. ``bin`` must be the first folder in the server's PATH.

    ``packages`` has the versions of the packages that :func:`inspect_python` was asked for.
    """

    executable: Path
    version: tuple[int, int]
    library_directory: Path | None
    packages: Mapping[str, str] = field(default_factory=dict)

    @property
    def bin(self) -> Path:
        """The folder in which the embedded interpreter finds ``python3``,
        and from there its packages.
        """
        return self.executable.parent


@dataclass(frozen=True, slots=True)
class TritonInstallation:
    """A tritonserver, its backends and its Python stubs (``None``:
    the Python backend contains one).
    """

    executable: Path
    backends: Path
    libraries: Path
    stubs: Path | None

    @property
    def caches(self) -> Path:
        """The folder of the response caches, which may not exist."""
        return self.executable.parent.parent / "caches"

    def backend_names(self) -> frozenset[str]:
        """Return the backends whose library is installed."""
        return frozenset(path.parent.name for path in self.backends.glob("*/libtriton_*.so"))

    def stub_for(self, python: ModelPython) -> Path:
        """Return the Python backend's stub for this Python version.

        Raises:
            MissingDependencyError: the server has no stub for it.
        """
        if self.stubs is None:
            return self.backends / "python" / _STUB
        path = self.stubs / "{}.{}".format(*python.version) / _STUB
        if not path.is_file():
            have = sorted(
                (p.name for p in self.stubs.iterdir()), key=lambda name: int(name.split(".")[1])
            )
            raise MissingDependencyError(
                f"{python.executable}: the server has no Python backend stub for Python "
                f"{python.version[0]}.{python.version[1]}; "
                f"set --python to a Python of {', '.join(have)}"
            )
        return path

    def library_path(self, python: ModelPython) -> str:
        """Return ``LD_LIBRARY_PATH`` for the server and its stubs."""
        directories = [self.libraries, python.library_directory]
        return os.pathsep.join(str(directory) for directory in directories if directory is not None)


def find_installation(
    tritonserver: Path | None = None, *, may_install: bool = True
) -> TritonInstallation:
    """Find the server: the executable ``tritonserver``, or by default the one in nvidia-pytriton.

    If the wheel is not in this environment, it is installed into the cache, once, unless
    ``may_install`` is false.

    Raises:
        MissingDependencyError: nvidia-pytriton cannot be installed, or does not run on this
            machine.
        LocalEndpointError: ``tritonserver`` is not a Triton server.
    """
    require_machine(tritonserver)
    if tritonserver is not None:
        return _installed_server(tritonserver)
    package = _installed_wheel() or _cached_wheel(may_install=may_install)
    server = package / "tritonserver"
    found = TritonInstallation(
        executable=server / "bin" / "tritonserver",
        backends=server / "backends",
        libraries=package.parent / "nvidia_pytriton.libs",
        stubs=server / "python_backend_stubs",
    )
    if not found.executable.is_file():
        raise MissingDependencyError(
            f"{found.executable}: does not exist; "
            "run `pip install --force-reinstall nvidia-pytriton`"
        )
    return found


def require_machine(tritonserver: Path | None = None) -> None:
    """Check that the server of the wheel, or ``tritonserver``, can run on this machine.

    Raises:
        MissingDependencyError: the system is not Linux, or its glibc is older than the wheel's.
    """
    _require_linux()
    if tritonserver is None:
        _require_glibc()


def _installed_wheel() -> Path | None:
    spec = find_spec("pytriton")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def _cached_wheel(*, may_install: bool) -> Path:
    found = cached_server(may_install=may_install)
    if found is None:
        raise MissingDependencyError(
            "nvidia-pytriton: is not installed yet; the first `constructs-triton local up` "
            f"installs it into the cache, or run `{_INSTALL_EXTRA}`"
        )
    return found / "pytriton"


def _require_linux() -> None:
    if sys.platform != "linux":
        raise MissingDependencyError(
            f"local: the Triton server runs only on Linux, got {sys.platform!r}; "
            f"use Linux or WSL2, or {_ENGINE}"
        )


def _require_glibc() -> None:
    name, version = platform.libc_ver()
    if name == "glibc" and tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_GLIBC:
        raise MissingDependencyError(
            f"local: nvidia-pytriton needs glibc 2.35 or newer, got {version}; "
            f"{_ENGINE}, or use Ubuntu 22.04, Debian 12 or newer"
        )


def _installed_server(path: Path) -> TritonInstallation:
    executable = path.resolve()
    root = executable.parent.parent
    if not executable.is_file() or not (root / "backends").is_dir():
        raise LocalEndpointError(
            f"{path}: must be a tritonserver executable with a folder ../backends; "
            "pass for example --tritonserver /opt/tritonserver/bin/tritonserver"
        )
    return TritonInstallation(executable, root / "backends", root / "lib", None)


def inspect_python(
    executable: Path | None = None,
    packages: Mapping[str, Sequence[str]] | None = None,
    *,
    may_install: bool = True,
) -> ModelPython:
    """Check that an interpreter can run the models, and return it.

    With NumPy 2 models load, but every request fails. ``executable`` defaults to the running
    interpreter. If that has no NumPy below 2, it is one of the cache with NumPy 1 and the same
    packages, which is created once, unless ``may_install`` is false. ``packages`` are modules to
    look for, each with the distributions that may contain it.

    Raises:
        MissingDependencyError: NumPy below 2, libpython or a matching ``python3`` is missing.
        LocalEndpointError: ``executable`` is not a Python interpreter.
    """
    path = Path(os.path.abspath(executable or sys.executable))  # noqa: PTH100 - resolving leaves the venv
    found = _probe(path, packages or {})
    version = (int(found["version"][0]), int(found["version"][1]))
    if executable is None and not _is_old(found["numpy"]) and version <= _NEWEST_PYTHON:
        cached = cached_environment(path, version, found["folders"], may_install=may_install)
        if cached is not None:
            path = cached
            found = _probe(path, packages or {})
    _require_numpy(path, version, found["numpy"])
    _require_python3(path)
    library = find_libpython(version, found["libdir"])
    if library is None:
        raise MissingDependencyError(
            f"{path}: its shared library {soname(version)} is missing; run "
            f"`{install_command(version)}`"
        )
    return ModelPython(path, version, library.directory, found["packages"])


def _probe(path: Path, packages: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Run a program in an interpreter as the server does: without the current folder."""
    try:
        done = run_child([path, "-I", "-c", _PROBE, json.dumps(packages)], seconds=_PROBE_SECONDS)
        if done.returncode:
            raise OSError(f"exit code {done.returncode}")
        return dict(json.loads(done.stdout))
    except (OSError, ValueError) as error:
        raise LocalEndpointError(
            f"{path}: is not a working Python interpreter, got {error}; set --python to another one"
        ) from error


def _require_numpy(path: Path, python: tuple[int, int], numpy: str | None) -> None:
    if _is_old(numpy):
        return
    hint = f"run `{path} -m pip install 'numpy<2'`, or set --python to another environment"
    if python > _NEWEST_PYTHON:
        hint = (
            "set --python to an environment of Python 3.9 to 3.12, which has such a NumPy, or "
            f"{_ENGINE}"
        )
    raise MissingDependencyError(
        f"{path}: the server's Python backend needs NumPy below 2, got {numpy or 'none'}; {hint}"
    )


def _is_old(numpy: str | None) -> bool:
    return numpy is not None and int(numpy.split(".")[0]) < 2


def _require_python3(path: Path) -> None:
    """Check ``python3`` beside ``path``: the embedded interpreter finds its packages through it."""
    found = path.parent / "python3"
    if not found.exists() or found.resolve() != path.resolve():
        raise MissingDependencyError(
            f"{path}: the folder has no python3 that is the same interpreter; run `{path} -m venv "
            "DIRECTORY`, install the models' packages there, "
            "and set --python to DIRECTORY/bin/python"
        )


def make_backends(directory: Path, installation: TritonInstallation, python: ModelPython) -> None:
    """Create links to the installed backends, and a copy of the Python backend with the stub for
    ``python``.

    A server changes the mode of a stub that fails, even through a link. It rejects a ``runtime``
    that is a link to a file outside the backend's folder. Python models write and read text in
    UTF-8, as those of the images do. ``directory`` must not exist yet.

    Raises:
        MissingDependencyError: the server has no stub for this Python version.
    """
    stub = installation.stub_for(python)
    directory.mkdir()
    for backend in installation.backends.iterdir():
        if backend.name != "python":
            (directory / backend.name).symlink_to(backend)
    (directory / "python").mkdir()
    for file in (installation.backends / "python").iterdir():
        if file.is_file() and file.name != stub.name:
            shutil.copy(file, directory / "python" / file.name)
    shutil.copy(stub, directory / "python" / stub.name)
    shutil.copy(utf8_text.__file__, directory / "python" / f"{_UTF8_TEXT}.py")
    with (directory / "python" / _UTILITIES).open("a", encoding="utf-8") as utilities:
        utilities.write(f'\n\n__import__("{_UTF8_TEXT}").use_utf8()\n')
