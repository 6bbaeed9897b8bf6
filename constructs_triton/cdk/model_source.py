"""Where the models of a repository come from."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from constructs_triton.model_repository import ModelRepository

__all__ = ["ModelSource"]


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The models of a repository; made by one of the ``from_*`` functions."""

    path: Path

    @classmethod
    def from_directory(cls, path: str | PathLike[str]) -> ModelSource:
        """A Triton model repository on this machine: a folder with one folder a model.

        ``path`` is taken relative to the current directory, as all of CDK takes paths. Nothing is read
        before the source is handed to a :class:`TritonModelRepository`.
        """
        return cls(Path(fspath(path)))

    def load(self) -> ModelRepository:
        """The models as they are on disk now; raises :class:`RepositoryError` where the folder is not one."""
        return ModelRepository.from_directory(self.path)
