"""Lays out a model repository: configurations and files in, folders out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Self

from constructs_triton.errors import InvalidValueError, RepositoryError
from constructs_triton.model_config import Ensemble, ModelConfig
from constructs_triton.model_config.folder import CONFIG_FILE
from constructs_triton.model_repository.partial_folder import partial_folder

if TYPE_CHECKING:
    from constructs_triton.model_repository.repository import ModelRepository

__all__ = ["ModelRepositoryBuilder", "Source"]

Source = str | os.PathLike[str] | bytes
"""A file or folder to copy, by its path, or the content of a file as bytes."""

# Where a backend looks when default_model_filename is not given.
_MODEL_FILES = {
    "python": "model.py",
    "onnxruntime": "model.onnx",
    "tensorrt": "model.plan",
    "pytorch": "model.pt",
    "openvino": "model.xml",
    "dali": "model.dali",
    "vllm": "model.json",
    "onnxruntime_onnx": "model.onnx",
    "tensorrt_plan": "model.plan",
    "pytorch_libtorch": "model.pt",
    "tensorflow_savedmodel": "model.savedmodel",
    "tensorflow_graphdef": "model.graphdef",
}
_FIL_FILES = {
    "": "xgboost.model",
    "xgboost": "xgboost.model",
    "xgboost_json": "xgboost.json",
    "xgboost_ubj": "xgboost.ubj",
    "lightgbm": "model.txt",
    "treelite_checkpoint": "checkpoint.tl",
}


@dataclass(frozen=True)
class _PlannedModel:
    config: ModelConfig
    version: int
    files: Mapping[PurePosixPath, Source]


class ModelRepositoryBuilder:
    """Assembles a model repository from configurations and files.

    ::

        builder = ModelRepositoryBuilder()
        builder.add_model(resnet, model_file="build/model.pt", files={"labels.txt": "labels.txt"})
        repository = builder.write_to("models")

    Nothing is written before :meth:`write_to`.
    """

    def __init__(self) -> None:
        self._models: dict[str, _PlannedModel] = {}

    def __repr__(self) -> str:
        return f"ModelRepositoryBuilder({', '.join(self._models)})"

    def add_model(
        self,
        config: ModelConfig | Ensemble,
        model_file: Source | None = None,
        *,
        version: int = 1,
        files: Mapping[str, Source] | None = None,
    ) -> Self:
        """Add a model, in a folder of the configuration's name, and give the builder back for the next one.

        ``model_file`` (weights, ``model.py``, or a folder) goes into the folder of ``version``, under the
        name that the configuration or the backend asks for. ``files`` holds everything else by its path in
        the model's folder: label files and conda-pack archives beside ``config.pbtxt``, or further versions
        (``"2/model.onnx"``). An ensemble's models are added on their own.

        :raises InvalidValueError: for a name taken already, a source that is not there, or a path that leads
            out of the folder.
        """
        settled = config.to_config() if isinstance(config, Ensemble) else config
        if not isinstance(settled, ModelConfig):
            raise InvalidValueError(
                f"model: must be a ModelConfig or an Ensemble, got {settled!r}; make it one"
            )
        _refuse_name(settled.name, self._models)
        if not isinstance(version, int) or version < 1:
            raise InvalidValueError(
                f'model "{settled.name}" version: must be at least 1, got {version}; use 1'
            )
        planned = {_inside(settled.name, path): source for path, source in (files or {}).items()}
        if model_file is not None:
            place = PurePosixPath(str(version), _model_file_name(settled))
            if place in planned:
                raise InvalidValueError(
                    f'model "{settled.name}" files: holds the model file too, got {str(place)!r}; keep one'
                )
            planned[place] = model_file
        for path, source in planned.items():
            _refuse_missing(settled.name, path, source)
        self._models[settled.name] = _PlannedModel(settled, version, planned)
        return self

    def write_to(self, directory: str | os.PathLike[str], *, overwrite: bool = False) -> ModelRepository:
        """Write the repository into ``directory`` and check it, its files included.

        The folder appears whole or not at all, beneath an existing parent or new ones. With ``overwrite`` it
        takes the place of a folder that is there; without, only of an empty one. Equal builders write equal
        repositories.

        :raises RepositoryError: with every error that the checks find; nothing is written then.
        :raises InvalidValueError: where the folder is not empty, or cannot be written.
        """
        target = Path(directory)
        self._refuse_existing(target, overwrite)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with partial_folder(target.parent) as scratch:
                draft = scratch / "repository"
                self._write(draft)
                _check(draft, target)
                _put_in_place(draft, target, scratch / "replaced")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InvalidValueError(
                f"{target}: cannot be written ({reason}); name a folder that can be made"
            ) from error
        return _repository(target)

    def _refuse_existing(self, target: Path, overwrite: bool) -> None:
        if not self._models:
            raise InvalidValueError(f"{target}: no model was added, got {self!r}; call add_model first")
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            raise InvalidValueError(f"{target}: is no folder; name a new one")
        if not overwrite and target.exists() and any(target.iterdir()):
            raise InvalidValueError(f"{target}: is not empty; name a new folder, or write overwrite=True")

    def _write(self, draft: Path) -> None:
        for name, model in self._models.items():
            folder = draft / name
            (folder / str(model.version)).mkdir(parents=True)
            for path, source in model.files.items():
                _copy(source, folder / path)
            (folder / CONFIG_FILE).write_text(model.config.to_text(), encoding="utf-8")


# --- what may be added ------------------------------------------------------------------------------------


def _refuse_name(name: str, taken: Mapping[str, object]) -> None:
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise InvalidValueError(f"model config name: must be the name of a folder, got {name!r}; give it one")
    if name in taken:
        raise InvalidValueError(f"model {name!r}: was added already; rename one of the two")


def _inside(model: str, path: str) -> PurePosixPath:
    inside = PurePosixPath(path)
    if not path or inside.is_absolute() or ".." in inside.parts or "\\" in path:
        raise InvalidValueError(
            f'model "{model}" files: must stay in the model\'s folder, got {path!r}; '
            'write "1/model.onnx" or "labels.txt"'
        )
    if inside == PurePosixPath(CONFIG_FILE):
        raise InvalidValueError(
            f'model "{model}" files: {CONFIG_FILE} comes from the configuration, got {path!r}; leave it out'
        )
    return inside


def _refuse_missing(model: str, path: PurePosixPath, source: Source) -> None:
    if not isinstance(source, str | bytes | os.PathLike):
        raise InvalidValueError(
            f'model "{model}" file {str(path)!r}: must be a path or bytes, got {source!r}; '
            "name a file or a folder, or give its content as bytes"
        )
    if not isinstance(source, bytes) and not Path(source).exists():
        raise InvalidValueError(
            f'model "{model}" file {str(path)!r}: there is no such file, got {os.fspath(source)!r}; '
            "name a file or a folder, or give its content as bytes"
        )


def _model_file_name(config: ModelConfig) -> str:
    if config.default_model_filename:
        return config.default_model_filename
    if config.backend == "fil":
        name = _FIL_FILES.get(config.parameters.get("model_type", ""))
    else:
        name = _MODEL_FILES.get(config.platform) or _MODEL_FILES.get(str(config.backend))
    if name is None:
        raise InvalidValueError(
            f'model "{config.name}" model_file: its name is not known for this backend, got '
            f"{config.backend or config.platform!r}; "
            'set default_model_filename, or use files={"1/<name>": ...}'
        )
    return name


# --- writing ----------------------------------------------------------------------------------------------


def _copy(source: Source, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(source, bytes):
        target.write_bytes(source)
    elif Path(source).is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def _repository(path: Path) -> ModelRepository:
    from constructs_triton.model_repository.repository import ModelRepository  # noqa: PLC0415 - after its builder

    return ModelRepository.from_directory(path)


def _check(draft: Path, target: Path) -> None:
    errors = _repository(draft).check().errors
    if errors:
        raise RepositoryError(str(target), errors)


def _put_in_place(draft: Path, target: Path, replaced: Path) -> None:
    """One rename where nothing is there yet; else the old folder steps aside and goes with the scratch."""
    if target.exists():
        target.rename(replaced)
    try:
        draft.rename(target)
    except OSError:
        if replaced.exists():
            replaced.rename(target)
        raise
