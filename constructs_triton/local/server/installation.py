"""The Triton server that is installed here, and the Python that its models run in.

Everything that would make the server hang or fail in a way nobody understands is looked for first: the
Python backend waits for ever for a stub that cannot start.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from constructs_triton.errors import LocalEndpointError, MissingDependencyError
from constructs_triton.local.server.libpython import find_libpython, install_command, soname

__all__ = ["ModelPython", "TritonInstallation", "find_installation", "inspect_python"]

_INSTALL_EXTRA = "pip install 'constructs-triton[local]'"
#: The wheel's platform tag is manylinux_2_35.
_OLDEST_GLIBC = (2, 35)
_STUB = "triton_python_backend_stub"
_PROBE = """
import importlib.metadata as metadata, json, sys, sysconfig
try:
    numpy = metadata.version("numpy")
except metadata.PackageNotFoundError:
    numpy = None
libdir = sysconfig.get_config_var("LIBDIR")
print(json.dumps({"version": sys.version_info[:2], "libdir": libdir, "numpy": numpy}))
"""


@dataclass(frozen=True, slots=True)
class ModelPython:
    """The environment that Python models run in. ``bin`` must come first on the server's PATH."""

    executable: Path
    version: tuple[int, int]
    library_directory: Path | None

    @property
    def bin(self) -> Path:
        """Where the embedded interpreter finds ``python3`` and, beside it, its packages."""
        return self.executable.parent


@dataclass(frozen=True, slots=True)
class TritonInstallation:
    """A tritonserver, its backends, and the stubs by Python version (``None``: the backend has its own)."""

    executable: Path
    backends: Path
    libraries: Path
    stubs: Path | None

    def backend_names(self) -> frozenset[str]:
        """The backends whose library is here."""
        return frozenset(path.name for path in self.backends.iterdir() if any(path.glob("libtriton_*.so")))

    def stub_for(self, python: ModelPython) -> Path:
        """The stub that embeds this Python; raises ``MissingDependencyError`` where there is none."""
        if self.stubs is None:
            return self.backends / "python" / _STUB
        path = self.stubs / "{}.{}".format(*python.version) / _STUB
        if not path.is_file():
            have = sorted((p.name for p in self.stubs.iterdir()), key=lambda name: int(name.split(".")[1]))
            raise MissingDependencyError(
                f"{python.executable}: the server has no Python backend stub for Python "
                f"{python.version[0]}.{python.version[1]}; use --python with one of {', '.join(have)}"
            )
        return path

    def library_path(self, python: ModelPython) -> str:
        """The ``LD_LIBRARY_PATH`` of the server, with which its stub finds its libraries too."""
        directories = [self.libraries, python.library_directory]
        return os.pathsep.join(str(directory) for directory in directories if directory is not None)


def find_installation(tritonserver: Path | None = None) -> TritonInstallation:
    """The server of ``tritonserver`` (a path), else the one that the nvidia-pytriton wheel carries.

    Raises ``MissingDependencyError`` naming the command that installs what is absent.
    """
    _require_linux()
    if tritonserver is not None:
        return _installed_server(tritonserver)
    _require_glibc()
    spec = find_spec("pytriton")
    if spec is None or not spec.submodule_search_locations:
        raise MissingDependencyError(f"nvidia-pytriton: is not installed in {sys.prefix}; {_INSTALL_EXTRA}")
    package = Path(spec.submodule_search_locations[0])
    server = package / "tritonserver"
    found = TritonInstallation(
        executable=server / "bin" / "tritonserver",
        backends=server / "backends",
        libraries=package.parent / "nvidia_pytriton.libs",
        stubs=server / "python_backend_stubs",
    )
    if not found.executable.is_file():
        raise MissingDependencyError(f"{found.executable}: is absent from nvidia-pytriton; {_INSTALL_EXTRA}")
    return found


def _require_linux() -> None:
    if sys.platform != "linux":
        raise MissingDependencyError(
            f"local: the Triton server runs on Linux, got {sys.platform!r}; "
            "use Linux, WSL2 or a Linux container"
        )


def _require_glibc() -> None:
    name, version = platform.libc_ver()
    if name == "glibc" and tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_GLIBC:
        raise MissingDependencyError(
            f"local: the bundled Triton server needs glibc 2.35 or newer, got {version}; "
            "use Ubuntu 22.04, Debian 12 or newer, or --tritonserver PATH"
        )


def _installed_server(path: Path) -> TritonInstallation:
    executable = path.resolve()
    root = executable.parent.parent
    if not executable.is_file() or not (root / "backends").is_dir():
        raise LocalEndpointError(
            f"{path}: must be a tritonserver executable with a backends folder beside its bin; "
            "for instance /opt/tritonserver/bin/tritonserver"
        )
    return TritonInstallation(executable, root / "backends", root / "lib", None)


def inspect_python(executable: Path | None = None) -> ModelPython:
    """The environment of an interpreter, checked for what the stub needs of it.

    ``executable`` defaults to the running one. Raises ``MissingDependencyError`` for NumPy 2 or none at
    all (with NumPy 2 models load and every request fails) and for an absent libpython.
    """
    path = Path(os.path.abspath(executable or sys.executable))  # noqa: PTH100 - resolving leaves the venv
    found = _probe(path)
    version = (int(found["version"][0]), int(found["version"][1]))
    _require_numpy(path, found["numpy"])
    _require_python3(path)
    library = find_libpython(version, found["libdir"])
    if library is None:
        raise MissingDependencyError(
            f"{path}: its shared library {soname(version)} is not found; {install_command(version)}"
        )
    return ModelPython(path, version, library.directory)


def _probe(path: Path) -> dict[str, str]:
    try:
        done = subprocess.run([path, "-c", _PROBE], capture_output=True, text=True, check=True)
        return dict(json.loads(done.stdout))
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        # The exception of a command that failed quotes the whole program.
        got = f"exit code {error.returncode}" if isinstance(error, subprocess.CalledProcessError) else error
        raise LocalEndpointError(
            f"{path}: is no working Python interpreter, got {got}; name another with --python"
        ) from error


def _require_numpy(path: Path, version: str | None) -> None:
    if version is None or int(version.split(".")[0]) >= 2:
        raise MissingDependencyError(
            f"{path}: the server's Python backend needs NumPy below 2, got {version or 'none'}; "
            f"{path} -m pip install 'numpy<2', or name another environment with --python"
        )


def _require_python3(path: Path) -> None:
    """The embedded interpreter finds its packages through ``python3`` on PATH, not through ``path``."""
    found = path.parent / "python3"
    if not found.exists() or found.resolve() != path.resolve():
        raise MissingDependencyError(
            f"{path}: the python3 beside it is another interpreter or absent; "
            f"make an environment with `{path} -m venv DIRECTORY` and name its bin/python"
        )
