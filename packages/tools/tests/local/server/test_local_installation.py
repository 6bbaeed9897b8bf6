"""What a local run needs on this machine, checked before anything starts."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from constructs_triton_core.errors import LocalEndpointError, MissingDependencyError
from constructs_triton_tools.local.options import RunOptions
from constructs_triton_tools.local.server import installation, libpython
from constructs_triton_tools.local.server.installation import (
    ModelPython,
    find_installation,
    inspect_python,
)
from constructs_triton_tools.local.server.machine import Machine

needs_wheel = pytest.mark.skipif(
    importlib.util.find_spec("pytriton") is None, reason="needs nvidia-pytriton"
)


def test_libpython_needs_nothing_installed() -> None:
    """The system check loads the file by its path in an interpreter without site-packages."""
    program = (
        "import importlib.util, sys; spec = importlib.util.spec_from_file_location('libpython', "
        "sys.argv[1]);module = importlib.util.module_from_spec(spec); sys.modules['libpython'] = "
        "module;spec.loader.exec_module(module); print(module.soname((3, 12)), "
        "module.install_command((3, 12)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, libpython.__file__],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "libpython3.12.so.1.0 apt-get install libpython3.12"


def test_the_interpreters_own_library_comes_first(tmp_path: Path) -> None:
    """Its patch version matches the standard library;
    the loader is asked only if it does not exist.
    """
    (tmp_path / "libpython3.99.so.1.0").touch()
    found = libpython.find_libpython((3, 99), str(tmp_path))
    assert found == libpython.LibPython("libpython3.99.so.1.0", tmp_path)
    assert libpython.find_libpython((3, 98), str(tmp_path)) is None


@needs_wheel
def test_the_bundled_server_and_its_stub_are_found() -> None:
    """The wheel's server, its backends and the stub of the running minor."""
    found = find_installation()
    assert "python" in found.backend_names()
    assert found.stub_for(ModelPython(Path("p"), sys.version_info[:2], None)).is_file()
    assert str(found.libraries) in found.library_path(ModelPython(Path("p"), (3, 11), None))


@needs_wheel
def test_a_minor_without_a_stub_names_those_that_have_one() -> None:
    """The versions that have a stub are listed, newest last."""
    with pytest.raises(
        MissingDependencyError, match=r"no Python backend stub for Python 3\.99; .* 3\.9, 3\.10, "
    ):
        find_installation().stub_for(ModelPython(Path("p"), (3, 99), None))


FIND_SPEC = "constructs_triton_tools.local.server.installation.find_spec"


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ({"sys.platform": "darwin"}, "runs only on Linux, got 'darwin'; .*--engine docker"),
        (
            {"platform.libc_ver": lambda: ("glibc", "2.34")},
            r"glibc 2\.35 or newer, got 2\.34; .*--engine",
        ),
        (
            {FIND_SPEC: lambda *_: None},
            r"first `constructs-triton local up` installs .*'constructs-triton\[server\]'",
        ),
    ],
    ids=["system", "glibc", "wheel"],
)
def test_what_the_bundled_server_needs_is_named(
    monkeypatch: pytest.MonkeyPatch, machine: dict[str, object], words: str, tmp_path: Path
) -> None:
    """Linux, the glibc that nvidia-pytriton is built for,
    and the wheel with the command that installs it.
    """
    for name, value in machine.items():
        monkeypatch.setattr(name, value)
    monkeypatch.setenv("CONSTRUCTS_TRITON_CACHE_DIR", str(tmp_path))
    with pytest.raises(MissingDependencyError, match=words):
        find_installation(may_install=False)


@pytest.mark.parametrize(
    ("version", "numpy", "words"),
    [
        ([3, 11], None, r"NumPy below 2, got none; .*pip install"),
        ([3, 11], "2.2.6", r"NumPy below 2, got 2\.2\.6; .*pip install"),
        # `pip install 'numpy<2'` would fail with Python 3.13, so the hint is --python.
        ([3, 13], "2.1.0", r"got 2\.1\.0; set --python to .* 3\.9 to 3\.12, .*--engine docker"),
        ([3, 12], "1.26.4", r"libpython3\.12\.so\.1\.0 is missing; run `apt-get install"),
    ],
)
def test_an_interpreter_that_cannot_serve_is_rejected(
    monkeypatch: pytest.MonkeyPatch, version: list[int], numpy: str | None, words: str
) -> None:
    """With NumPy 2 every request fails, and without libpython the server waits
    for its stub forever.
    """
    found = {"version": version, "libdir": None, "numpy": numpy}
    monkeypatch.setattr(installation, "_probe", lambda *_: found)
    monkeypatch.setattr(installation, "find_libpython", lambda *_: None)
    with pytest.raises(MissingDependencyError, match=words):
        inspect_python(Path(sys.executable))


def test_an_environment_without_numpy_is_rejected(tmp_path: Path) -> None:
    """A real, empty virtual environment."""
    venv.create(tmp_path / "empty", symlinks=True)
    with pytest.raises(MissingDependencyError, match="NumPy below 2, got none"):
        inspect_python(tmp_path / "empty" / "bin" / "python")


def test_interpreter_is_checked_before_the_server_is_installed(tmp_path: Path) -> None:
    """Nothing is downloaded for an interpreter that cannot run the models: that error comes first,
    here before the one about the server.
    """
    venv.create(tmp_path / "empty", symlinks=True)
    python = tmp_path / "empty" / "bin" / "python"
    options = RunOptions(tmp_path, python=python, tritonserver=tmp_path / "nothing")
    with pytest.raises(MissingDependencyError, match="NumPy below 2, got none"):
        asyncio.run(Machine.inspect(options, print))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("absent", "absent: is not a working"),
        ("/bin/ls", r"^/bin/ls: .*, got exit code 2; set --python"),
    ],
)
def test_another_program_is_no_interpreter(tmp_path: Path, path: str, words: str) -> None:
    """A path that does not exist, and a program with its exit code and without
    the text of the probe.
    """
    with pytest.raises(LocalEndpointError, match=words):
        inspect_python(tmp_path / path)


def test_a_wrong_server_is_reported(tmp_path: Path) -> None:
    """A server has a backends folder."""
    with pytest.raises(LocalEndpointError, match="nothing: must be a tritonserver executable"):
        find_installation(tmp_path / "nothing")


def test_a_folder_without_python3_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The embedded interpreter looks for python3 there, or it finds no packages."""
    found = {"version": [3, 11], "libdir": None, "numpy": "1.26.4"}
    monkeypatch.setattr(installation, "_probe", lambda *_: found)
    (tmp_path / "python").touch()
    for content in (None, "another"):
        if content is not None:
            (tmp_path / "python3").write_text(content)
        with pytest.raises(MissingDependencyError, match="no python3 that is the same interpreter"):
            inspect_python(tmp_path / "python")


def test_an_installed_server_uses_its_own_folders(tmp_path: Path) -> None:
    """The folders beside bin, and the stub of its Python backend whatever the Python version."""
    executable = tmp_path / "bin" / "tritonserver"
    backend = tmp_path / "backends" / "onnxruntime"
    for folder in (executable.parent, backend, tmp_path / "backends" / "empty"):
        folder.mkdir(parents=True)
    executable.touch()
    (backend / "libtriton_onnxruntime.so").touch()
    found = find_installation(executable)
    assert found.backend_names() == {"onnxruntime"}
    python = ModelPython(Path("/p/bin/python"), (3, 99), Path("/p/lib"))
    assert found.stub_for(python).parent == tmp_path / "backends" / "python"
    assert found.library_path(python) == f"{tmp_path / 'lib'}:/p/lib"
    assert python.bin == Path("/p/bin")
