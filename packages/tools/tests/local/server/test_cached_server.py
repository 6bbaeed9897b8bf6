"""The server and NumPy 1 in the cache: installed once, never half, and with the user's packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from constructs_triton_core.errors import MissingDependencyError
from constructs_triton_tools.local.server import cached_server as module
from constructs_triton_tools.local.server.cached_server import cached_environment, cached_server
from constructs_triton_tools.local.server.installation import inspect_python


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the cache of this test."""
    monkeypatch.setenv("CONSTRUCTS_TRITON_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Return what was installed; a small package takes the place of each wheel."""
    calls: list[tuple[str, ...]] = []

    def install(folder: Path, packages: tuple[str, ...]) -> None:
        calls.append(packages)
        name = "numpy" if packages == ("numpy<2",) else "pytriton"
        write_package(folder, name, "1.26.4")

    monkeypatch.setattr(module, "install_wheels", install)
    return calls


def write_package(folder: Path, name: str, version: str) -> None:
    """Write a package as an installer does, with its metadata."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(f"__version__ = {version!r}\n")
    information = folder / f"{name}-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    )


def test_the_server_is_installed_once(installed: list[tuple[str, ...]]) -> None:
    """The second run installs nothing, and a damaged file is replaced."""
    assert cached_server(may_install=False) is None
    found = cached_server(may_install=True)
    assert found is not None
    assert cached_server(may_install=False) == found
    assert cached_server(may_install=True) == found
    assert len(installed) == 1

    (found / "pytriton" / "__init__.py").write_text("other code\n")
    assert cached_server(may_install=False) is None
    assert cached_server(may_install=True) == found
    assert len(installed) == 2


def test_an_interrupted_installation_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C there is neither a server nor a part of one."""

    def interrupted(folder: Path, _: object) -> None:
        write_package(folder, "pytriton", "0.7.0")
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "install_wheels", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cached_server(may_install=True)
    assert [path.suffix for path in (cache / "server").iterdir()] == [".lock"]


def test_without_a_network_the_other_ways_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that does not answer is an error with the extra and with ``--engine``."""
    for name, value in {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "uv")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(
        MissingDependencyError, match=r"constructs-triton\[server\].*--engine docker"
    ):
        cached_server(may_install=True)


def test_models_find_the_packages_of_the_user_behind_numpy_1(
    installed: list[tuple[str, ...]], tmp_path: Path
) -> None:
    """NumPy is that of the cache; packages, also editable and later ones, are those of the user."""
    packages, checkout = tmp_path / "site-packages", tmp_path / "checkout"
    write_package(packages, "numpy", "2.4.6")
    write_package(packages, "sklearn", "1.9")
    write_package(checkout, "own", "1")
    (packages / "own.pth").write_text(f"{checkout}\n")

    def of_cache() -> Path | None:
        python = Path(sys.executable)
        return cached_environment(python, sys.version_info[:2], [str(packages)], may_install=True)

    python = of_cache()
    assert python is not None
    write_package(packages, "later", "3")
    program = (
        "import numpy, sklearn, own, later; print(numpy.__version__, sklearn.__version__, "
        "own.__version__, later.__version__)"
    )
    done = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1.26.4", "1.9", "1", "3"]
    assert inspect_python(python).bin == python.parent
    assert of_cache() == python
    assert len(installed) == 1
