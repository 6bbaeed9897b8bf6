"""The private backend directory that a server is started with."""

from __future__ import annotations

import shutil
from pathlib import Path

from constructs_triton.local.server.installation import ModelPython, TritonInstallation

__all__ = ["make_backends"]


def make_backends(directory: Path, installation: TritonInstallation, python: ModelPython) -> None:
    """Create links to the installed backends, and a copy of the Python backend with the stub for ``python``.

    A server changes the mode of a stub that fails, even through a link. It rejects a ``runtime`` that is a
    link to a file outside the backend's folder.
    ``directory`` must not exist yet.

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
