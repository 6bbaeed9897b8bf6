"""Writes a model repository from configurations and files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

from constructs_triton_core.errors import InvalidValueError, RepositoryError
from constructs_triton_core.untrusted.drafts import partial_folder
from constructs_triton_core.untrusted.regular_files import explained
from triton_model_check.builder.checking import ModelInMemory
from triton_model_check.model.backends import infer_backend
from triton_model_check.model.folder import CONFIG_FILE
from triton_model_check.model.loaded_files import tree_model_type
from triton_model_check.model_config import Ensemble, ModelConfig
from triton_model_check.model_files.model_file import TREE_MODEL_FILES
from triton_model_check.model_repository.repository import ModelRepository

Source = str | os.PathLike[str] | bytes
"""The path of a file or folder to copy, or the content of a file as bytes."""

# Of backends whose files Triton's core does not know.
_MODEL_FILES = {"dali": "model.dali", "vllm": "model.json"}


@dataclass(frozen=True)
class _PlannedModel:
    config: ModelConfig
    version: int
    files: Mapping[PurePosixPath, Source]

    @property
    def has_version_files(self) -> bool:
        """Whether there is a file for the folder of a version."""
        return any(path.parts[0].isdigit() for path in self.files)


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
        """Add a model, and return the builder so that calls can be chained.

        The model's folder has the name of the configuration. Add the models of an ensemble
        separately. A model file may be added to the folder later, but an endpoint requires it.

        Args:
            config: Configuration of the model; it must have a name.
            model_file: Weights, ``model.py``, or a folder. It is copied into the folder of
                ``version``, under the name that the configuration or the backend requires. Default:
                none.
            version: Version of ``model_file``, at least 1.
            files: Other files by their path in the model's folder: label files and environments
                beside ``config.pbtxt``, or further versions (``"2/model.onnx"``). Default: none.

        Raises:
            InvalidValueError: the name is already in use, a source does not exist, or a path leads
                out of the model's folder.
        """
        settled = config.to_config() if isinstance(config, Ensemble) else config
        if not isinstance(settled, ModelConfig):
            raise InvalidValueError(
                f"model: must be a ModelConfig or an Ensemble, got {settled!r}; create one"
            )
        _check_name(settled.name, self._models)
        if not isinstance(version, int) or version < 1:
            raise InvalidValueError(
                f'model "{settled.name}" version: must be at least 1, got {version}; use 1'
            )
        planned = {_inside(settled.name, path): source for path, source in (files or {}).items()}
        if model_file is not None:
            place = PurePosixPath(str(version), _model_file_name(settled))
            if place in planned:
                raise InvalidValueError(
                    f'model "{settled.name}" files: contains the model file, '
                    f"got {str(place)!r}; remove one"
                )
            planned[place] = model_file
        for path, source in planned.items():
            _check_source(settled.name, path, source)
        self._models[settled.name] = _PlannedModel(settled, version, planned)
        return self

    def write_to(
        self, directory: str | os.PathLike[str], *, overwrite: bool = False
    ) -> ModelRepository:
        """Check the repository and write it to a folder.

        The folder is created complete or not at all; missing parents are created. Equal builders
        write equal repositories.

        Args:
            directory: The folder; it must be empty or not exist.
            overwrite: Whether to replace a folder that is not empty.

        Raises:
            RepositoryError: the checks found errors; it has all of them, and nothing is written.
            InvalidValueError: the folder is not empty, or cannot be written.
        """
        target = Path(directory)
        self._check_target(target, overwrite)
        with explained(target, "cannot be written", "choose a folder that you may write"):
            target.parent.mkdir(parents=True, exist_ok=True)
            with partial_folder(target.parent) as scratch:
                draft = scratch / "repository"
                self._write(draft)
                self._check(draft, target)
                _put_in_place(draft, target, scratch / "replaced")
        return ModelRepository.from_directory(target)

    def _check(self, draft: Path, target: Path) -> None:
        """Raise all errors; a model file that was not given may be added later."""
        incomplete = {name for name, model in self._models.items() if not model.has_version_files}
        errors = [
            error
            for error in ModelRepository.from_directory(draft).check().errors
            if error.code != "model-file-missing" or error.path.split("/")[0] not in incomplete
        ]
        if errors:
            raise RepositoryError(str(target), errors)

    def _check_target(self, target: Path, overwrite: bool) -> None:
        """Raise ``InvalidValueError`` unless the folder can be written."""
        if not self._models:
            raise InvalidValueError(f"{target}: no model was added; call add_model first")
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            raise InvalidValueError(f"{target}: is not a folder; choose another path")
        if not overwrite and target.exists() and any(target.iterdir()):
            raise InvalidValueError(
                f"{target}: is not empty; choose a new folder, or set overwrite=True"
            )

    def _write(self, draft: Path) -> None:
        """Write the models into a folder."""
        for name, model in self._models.items():
            folder = draft / name
            (folder / str(model.version)).mkdir(parents=True)
            for path, source in model.files.items():
                _copy(source, folder / path)
            (folder / CONFIG_FILE).write_text(
                model.config.to_text(), encoding="utf-8", newline="\n"
            )


# --- checking what is added -----------------------------------------------------------------------


def _check_name(name: str, taken: Mapping[str, object]) -> None:
    if not name or "/" in name or "\0" in name or name in (".", ".."):
        raise InvalidValueError(
            "model config name: must be usable as the name of a folder, "
            f"got {name!r}; rename the model"
        )
    if name in taken:
        raise InvalidValueError(f"model {name!r}: was already added; rename one of the two")


def _inside(model: str, path: str) -> PurePosixPath:
    """Return a checked path inside the folder of a model."""
    inside = PurePosixPath(path)
    if not path or inside.is_absolute() or ".." in inside.parts or "\\" in path:
        raise InvalidValueError(
            f'model "{model}" files: must be a path inside the model\'s folder, got {path!r}; '
            'write "1/model.onnx" or "labels.txt"'
        )
    if inside == PurePosixPath(CONFIG_FILE):
        raise InvalidValueError(
            f'model "{model}" files: {CONFIG_FILE} is written '
            "from the configuration; remove it from files"
        )
    return inside


def _check_source(model: str, path: PurePosixPath, source: Source) -> None:
    """Raise ``InvalidValueError`` unless the source of a file exists."""
    if not isinstance(source, str | bytes | os.PathLike):
        raise InvalidValueError(
            f'model "{model}" file {str(path)!r}: must be a path or bytes, got {source!r}; '
            "give the path of a file or folder, or its content as bytes"
        )
    if not isinstance(source, bytes) and not Path(source).exists():
        raise InvalidValueError(
            f'model "{model}" file {str(path)!r}: the source does not exist, got '
            f"{os.fspath(source)!r}; give the path of a file or folder, or its content as bytes"
        )


def _model_file_name(config: ModelConfig) -> str:
    """Return the name by which the backend looks for the model file."""
    message = config.to_message()
    if config.backend == "fil" and not config.default_model_filename:
        name = TREE_MODEL_FILES.get(tree_model_type(message) or "xgboost", "")
    else:
        name = infer_backend(ModelInMemory(message)).model_file or _MODEL_FILES.get(
            str(config.backend), ""
        )
    if not name:
        raise InvalidValueError(
            f'model "{config.name}" model_file: this backend has no default file name, got '
            f"{config.backend or config.platform!r}; "
            'set default_model_filename, or use files={"1/<name>": ...}'
        )
    return name


# --- writing --------------------------------------------------------------------------------------


def _copy(source: Source, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(source, bytes):
        target.write_bytes(source)
    elif Path(source).is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def _put_in_place(draft: Path, target: Path, replaced: Path) -> None:
    """Rename the draft. An existing folder is first moved away,
    and deleted with the scratch folder.
    """
    if target.exists():
        target.rename(replaced)
    try:
        draft.rename(target)
    except OSError:
        if replaced.exists():
            replaced.rename(target)
        raise
