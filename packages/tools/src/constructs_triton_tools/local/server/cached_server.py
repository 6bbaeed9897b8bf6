"""The Triton server and NumPy 1 in the cache, for environments that must not have them.

The wheel nvidia-pytriton needs glibc 2.35 and NumPy below 2. As a requirement of this library, it
would keep NumPy 2 out of every environment that runs `local up`. The server needs none of
the wheel's Python packages, so only the wheel is installed, into a folder of the cache.

Models need NumPy below 2, because the server's interpreter imports it, and they need the packages
of the environment that the user works in. So an environment of the cache has NumPy 1 and, behind
it, the packages of that environment. They are not copied: a package that is installed later is
found, too.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError, MissingDependencyError
from constructs_triton_core.processes.children import STDOUT, run_child
from constructs_triton_core.processes.wheel_installation import install_wheels, sole_installation
from constructs_triton_core.untrusted.cache_contract import Seal, own_folder
from constructs_triton_core.untrusted.terminal import print_note, show_work
from triton_model_check.untrusted.cache_location import cache_directory

__all__ = ["SERVER_WHEEL", "cached_environment", "cached_server"]

SERVER_WHEEL = "nvidia-pytriton>=0.7,<0.8"
_NUMPY = "numpy<2"
_FOLDER = "server"
_OTHERWISE = (
    "connect to the network for the first run, run `pip install 'constructs-triton[server]'` in an "
    "environment of Python 3.11 or 3.12, or run the image with --engine docker"
)


def cached_server(*, may_install: bool) -> Path | None:
    """Return the folder of the server's wheel; ``None`` if it is not installed and must not be.

    Raises:
        MissingDependencyError: it cannot be installed.
    """
    name = f"pytriton-{hashlib.sha256(SERVER_WHEEL.encode()).hexdigest()[:8]}"

    def install(draft: Path) -> None:
        install_wheels(draft, (SERVER_WHEEL,))

    return _entry(name, "the Triton server (145 MB)", install, may_install=may_install)


def cached_environment(
    python: Path, version: tuple[int, int], packages: Sequence[str], *, may_install: bool
) -> Path | None:
    """Return an interpreter with NumPy 1 that finds the packages of another one behind it.

    Args:
        python: The interpreter, whose minor version the new one has.
        version: Its version.
        packages: The folders of its packages.
        may_install: Whether the environment may be created; ``None`` is returned otherwise.

    Raises:
        MissingDependencyError: it cannot be created.
    """
    home = os.path.realpath(python)
    digest = hashlib.sha256("\0".join([home, *packages]).encode()).hexdigest()[:16]
    site_packages = Path("lib", "python{}.{}".format(*version), "site-packages")

    def install(draft: Path) -> None:
        done = run_child(
            [python, "-I", "-m", "venv", "--without-pip", "--symlinks", draft],
            seconds=None,
            stderr=STDOUT,
        )
        if done.returncode:
            raise InvalidValueError(f"python -m venv failed ({done.stdout.strip()[-300:]})")
        install_wheels(draft / site_packages, (_NUMPY,))
        # addsitedir also reads the .pth files there, which editable packages have.
        lines = [f"import site; site.addsitedir({folder!r})" for folder in packages]
        (draft / site_packages / "packages_of_models.pth").write_text("\n".join(lines) + "\n")

    folder = _entry(f"python-{digest}", "NumPy 1 for the models", install, may_install=may_install)
    return None if folder is None else folder / "bin" / "python3"


def _entry(
    name: str, what: str, install: Callable[[Path], None], *, may_install: bool
) -> Path | None:
    """Return a folder of the cache, which is complete and unchanged since it was installed."""
    root = cache_directory()
    path = root / _FOLDER / name
    seal_path = path.with_name(f"{name}.json")
    if _is_complete(root, name):
        return path
    if not may_install:
        return None
    try:
        own_folder(root, _FOLDER, create=True)
        with sole_installation(root / _FOLDER, name, what) as draft:
            if _is_complete(root, name):  # the command that this one has waited for installed it
                return path
            print_note(f"installing {what} into {path}, once")
            with show_work(f"installing {what} into {path}"):
                install(draft)
            seal_path.unlink(missing_ok=True)
            shutil.rmtree(path, ignore_errors=True)
            os.replace(draft, path)  # noqa: PTH105 - the draft has this name if it succeeds
            Seal.of(name, _files(path)).write(seal_path)
    except (OSError, InvalidValueError) as error:
        raise MissingDependencyError(
            f"local: cannot install {what} into {path} ({error}); {_OTHERWISE}"
        ) from error
    return path


def _is_complete(root: Path, name: str) -> bool:
    path = root / _FOLDER / name
    seal_path = path.with_name(f"{name}.json")
    try:
        own_folder(root, _FOLDER)
        Seal.read(seal_path, name).use(seal_path, _files(path))
    except (OSError, ValueError):
        return False
    return True


def _files(folder: Path) -> Mapping[str, Path]:
    """Return the files of an entry. Python writes bytecode beside them later.

    Raises:
        OSError: there is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    return {
        str(path.relative_to(folder)): path
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path.parent.name != "__pycache__"
    }
