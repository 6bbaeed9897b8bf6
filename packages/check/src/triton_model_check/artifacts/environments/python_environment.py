"""A Python environment as a CDK app names it: found in the cache at synth, never built there."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.facts.images import DEFAULT_VERSION

if TYPE_CHECKING:
    from triton_model_check.artifacts.environments.lock import EnvironmentLock
    from triton_model_check.artifacts.environments.target import EnvironmentTarget

_NOT_BUILT = "its environment was not built on this machine, or was changed in the cache"


class EnvironmentNotBuiltError(InvalidValueError):
    """An environment has to be built first."""


@dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """Python packages for models of the Python backend; create one with :meth:`from_requirements`.

    Args:
        requirements: ``requirements.txt``, ``pyproject.toml`` or ``uv.lock``.
        image_version: Triton release of the image.
        within: Folder that contains all files of requirements. Default: any folder.
    """

    requirements: Path
    image_version: str
    within: Path | None = field(default=None, compare=False, repr=False)

    @classmethod
    def from_requirements(
        cls, path: str | PathLike[str], *, image_version: str = DEFAULT_VERSION
    ) -> PythonEnvironment:
        """Use the packages that a file requires, with the versions of the lock file beside it.

        ``constructs-triton env build`` writes the lock file and builds the environment. Synth
        resolves and downloads nothing: it finds the environment in the cache, or raises an error
        with the command.

        Args:
            path: ``requirements.txt``, ``pyproject.toml`` or ``uv.lock``. A relative path is
                relative to the current directory.
            image_version: Triton release of the endpoint's image, such as ``"26.05"``.
        """
        return cls(Path(fspath(path)), image_version)

    def find_archive(self) -> Path:
        """Return the tar file of the environment in the cache.

        Raises:
            EnvironmentNotBuiltError: the lock file is missing or old, or the environment was not
                built on this machine, or was changed in the cache; the message has the command that
                builds it.
            InvalidValueError: the requirements or the lock file cannot be read.
        """
        from triton_model_check.artifacts.environments.cache import cached_archive
        from triton_model_check.artifacts.environments.lock import lock_path, read_lock_file
        from triton_model_check.artifacts.environments.target import image_target

        target = image_target(self.image_version)
        path = lock_path(self.requirements, target)
        lock = read_lock_file(path)
        problem = self._problem(lock, target, path)
        archive = None if problem or lock is None else cached_archive(lock.key(target))
        if archive is None:
            fix = f"run `{self._command}`"
            raise EnvironmentNotBuiltError(f"{self.requirements}: {problem or _NOT_BUILT}; {fix}")
        return archive

    def _problem(self, lock: EnvironmentLock | None, target: EnvironmentTarget, path: Path) -> str:
        """Return why a lock file cannot be used; "" if it can."""
        from triton_model_check.artifacts.environments.requirements import read_requirements

        extras = () if lock is None else lock.extras
        requirements = read_requirements(self.requirements, extras, within=self.within)
        if lock is None:
            return f"the lock file {path.name} does not exist"
        if not lock.is_for(requirements, target, lock.options):
            return f"it has changed since the lock file {path.name} was written"
        return ""

    @property
    def _command(self) -> str:
        words = ["constructs-triton", "env", "build", str(self.requirements)]
        if self.image_version != DEFAULT_VERSION:
            words += ["--image-version", self.image_version]
        return shlex.join(words)
