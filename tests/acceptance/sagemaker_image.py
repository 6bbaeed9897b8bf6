"""Builds an image that behaves as SageMaker's Triton image, from the wheel's server and this
machine's files.

No registry and no package mirror is needed: programs, shared libraries and Python's standard
library are copied from the running system.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from constructs_triton_tools.local.server.installation import (
    TritonInstallation,
    find_installation,
    inspect_python,
)

_IS_REQUIRED = bool(os.environ.get("CONSTRUCTS_TRITON_REQUIRE_SERVER"))
_HAS_PODMAN = (
    shutil.which("podman") is not None and shutil.which("runc") is not None and os.geteuid() == 0
)
needs_podman = pytest.mark.skipif(
    not _HAS_PODMAN and not _IS_REQUIRED, reason="podman and runc, as root, are required"
)
# crun does not start containers on hosts with both versions of cgroups, and hard limits may be low.
_CONFIGURATION = """
[engine]
runtime = "runc"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
"""

#: What the `serve` script and the engine run in the container.
_PROGRAMS = ("bash", "cat", "env", "find", "mkdir", "sleep")
_SERVE = Path(__file__).with_name("sagemaker_serve")
_LIBRARIES, _PYTHON, _TRITON = "/opt/libraries", "/opt/python", "/opt/tritonserver"
_UNUSED = (
    "__pycache__",
    "site-packages",
    "test",
    "tests",
    "idlelib",
    "tkinter",
    "ensurepip",
    "lib2to3",
)
_ENVIRONMENT = {
    "PATH": f"{_PYTHON}/bin:{_TRITON}/bin:/usr/bin:/bin",
    "LD_LIBRARY_PATH": f"{_LIBRARIES}:{_PYTHON}/lib",
}


def podman(*arguments: str) -> str:
    """What podman prints."""
    done = subprocess.run(["podman", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def set_up_podman(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Write podman's settings for this machine to a folder, and let podman use them."""
    (folder / "containers.conf").write_text(_CONFIGURATION)
    patch.setenv("CONTAINERS_CONF", str(folder / "containers.conf"))


def build_image(engine: str, name: str, folder: Path, *, python_of_system: str = "") -> None:
    """Write a root file system below ``folder`` and import it as the image ``name``.

    With ``python_of_system``, a minor version, the models' Python is Debian's ``/usr/bin/python3``
    with NumPy in ``dist-packages``, as in SageMaker's image. Otherwise it is that of the tests.
    """
    root = folder / "root"
    installation, python = find_installation(None), inspect_python(None)
    for place in ("tmp", "dev", "proc", "sys", "etc", "bin", "usr/bin"):
        (root / place).mkdir(parents=True)
    _copy_programs(root)
    _copy_server(root, installation, python_of_system or "{}.{}".format(*python.version))
    if python_of_system:
        _copy_python_of_system(root, python_of_system)
    else:
        _copy_python(root)
    _copy_libraries(root, installation.library_path(python))
    _import(engine, name, root)


def build_small_image(engine: str, name: str, folder: Path, programs: Mapping[str, str]) -> None:
    """Import an image with bash, Python and ``programs``: their text by their path."""
    root = folder / "root"
    for place in ("tmp", "dev", "proc", "sys", "etc", "bin", "usr/bin"):
        (root / place).mkdir(parents=True)
    _copy_programs(root)
    _copy_python(root)
    for path, text in programs.items():
        program = root / path.lstrip("/")
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    _copy_libraries(root, os.environ.get("LD_LIBRARY_PATH", ""))
    _import(engine, name, root)


def _copy_programs(root: Path) -> None:
    for program in _PROGRAMS:
        found = shutil.which(program)
        assert found is not None
        shutil.copy(found, root / "usr" / "bin" / program)
    for shell in ("bash", "sh"):
        (root / "bin" / shell).symlink_to("/usr/bin/bash")
    shutil.copy(_SERVE, root / "usr" / "bin" / "serve")
    (root / "usr" / "bin" / "serve").chmod(0o755)


def _copy_server(root: Path, installation: TritonInstallation, minor: str) -> None:
    """The wheel has the Python backend's stubs in another place than the image."""
    source = installation.executable.parent.parent
    target = root / _TRITON.lstrip("/")
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("python_backend_stubs"))
    stub = source / "python_backend_stubs" / minor / "triton_python_backend_stub"
    shutil.copy(stub, target / "backends" / "python" / stub.name)


def _copy_python(root: Path) -> None:
    target = root / _PYTHON.lstrip("/")
    standard = Path(sysconfig.get_path("stdlib"))
    library = target / "lib" / standard.name
    shutil.copytree(standard, library, ignore=shutil.ignore_patterns(*_UNUSED, "config-*", "*.a"))
    (target / "bin").mkdir()
    shutil.copy(os.path.realpath(sys.executable), target / "bin" / "python3")
    # In the standard library's folder, because distributions name the folder of packages
    # differently.
    packages = Path(np.__file__).parent.parent
    for package in ("numpy", "numpy.libs"):
        if (packages / package).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "tests", "*.a")
            shutil.copytree(packages / package, library / package, ignore=ignored)


def _copy_python_of_system(root: Path, minor: str) -> None:
    python = f"python{minor}"
    shutil.copy(f"/usr/bin/{python}", root / "usr" / "bin" / python)
    (root / "usr" / "bin" / "python3").symlink_to(python)
    ignored = shutil.ignore_patterns(*_UNUSED, "config-*", "*.a")
    shutil.copytree(f"/usr/lib/{python}", root / "usr" / "lib" / python, ignore=ignored)
    packages = root / "usr" / "local" / "lib" / python / "dist-packages"
    for package in ("numpy", "numpy.libs"):
        found = Path(np.__file__).parent.parent / package
        if found.is_dir():
            shutil.copytree(
                found, packages / package, ignore=shutil.ignore_patterns("__pycache__", "tests")
            )
    (root / _LIBRARIES.lstrip("/")).mkdir(parents=True)
    for library in Path("/usr/lib").glob(f"*/libpython{minor}.so.1.0"):
        shutil.copy(library, root / _LIBRARIES.lstrip("/"))


def _copy_libraries(root: Path, library_path: str) -> None:
    """Copy the shared libraries of everything in ``root``, and the loader under its own name."""
    target = root / _LIBRARIES.lstrip("/")
    target.mkdir(parents=True, exist_ok=True)
    for folder in library_path.split(os.pathsep):
        for library in Path(folder).glob("*.so*") if Path(folder).name.endswith(".libs") else ():
            shutil.copy(library, target)
    for path in sorted(set(_needed(_binaries(root), library_path))):
        if not (target / path.name).exists():
            shutil.copy(path, target)
        if path.name.startswith("ld-linux"):
            loader = root / str(path).lstrip("/")
            loader.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, loader)


def _binaries(root: Path) -> Iterator[Path]:
    for path in root.rglob("*"):
        if (
            path.is_file()
            and not path.is_symlink()
            and (os.access(path, os.X_OK) or ".so" in path.name)
        ):
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def _needed(binaries: Iterable[Path], library_path: str) -> Iterator[Path]:
    environment = {**os.environ, "LD_LIBRARY_PATH": library_path}
    listing = subprocess.run(
        ["ldd", *binaries], capture_output=True, text=True, check=False, env=environment
    ).stdout
    for found in re.finditer(r"(?:=>|^)\s*(/\S+) \(0x", listing, re.MULTILINE):
        yield Path(found[1])


def _import(engine: str, name: str, root: Path) -> None:
    changes = [f"--change=ENV {key}={value}" for key, value in _ENVIRONMENT.items()]
    with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
        subprocess.run([engine, "import", *changes, "-", name], stdin=tar.stdout, check=True)
    assert tar.returncode == 0
