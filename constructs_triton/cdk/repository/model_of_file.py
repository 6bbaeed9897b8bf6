"""The model of one model file, whose configuration is derived from it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from constructs_triton.cdk.repository.loaded_models import PackedModels
from constructs_triton_core.findings import Finding
from triton_model_check.builder.config import ModelConfig
from triton_model_check.builder.derived_config import derive
from triton_model_check.checks.report import Report
from triton_model_check.model.folder import CONFIG_FILE
from triton_model_check.model_config.target import Target
from triton_model_check.model_config.text import format_model_config
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.composition import CompositionOptions
from triton_model_check.model_repository.new_model import NewModel
from triton_model_check.model_repository.temporary_folders import scratch_directory


class ModelOfFile(PackedModels):
    """A repository of one model, which links to the user's files,
    so that large ones are not copied.
    """

    def __init__(self, repository: ModelRepository, file: Path) -> None:
        super().__init__(repository)
        self._file = file

    @property
    def description(self) -> str:
        return str(self._file)

    def check(self, target: Target | None) -> Report:
        found = super().check(target)
        return replace(found, findings=tuple(map(self._located, found.findings)))

    def _located(self, finding: Finding) -> Finding:
        """Name the user's file; the user has not written the configuration,
        so a line would mislead.
        """
        is_config = finding.path.endswith(CONFIG_FILE)
        path = f"{self._file} ({CONFIG_FILE})" if is_config else str(self._file)
        return replace(finding, path=path, line=None, column=None)


def load_model_file(path: Path, composition: CompositionOptions, **given: Any) -> ModelOfFile:
    """Derive the configuration of a model file, and write it with links to the model's files.

    ``given`` are the other arguments of ``derive``.

    Raises:
        InvalidValueError: the configuration cannot be derived, the model has data outside its
            folder, or ``composition`` contains another model.
    """
    derived, directory = derive(ModelConfig.draft, path, **given), scratch_directory()
    files = derived.files
    NewModel(derived.message.name, format_model_config(derived.message), files).fill(
        directory, _link
    )
    linked_files = [os.path.realpath(path) for path in files.values()]
    repository = ModelRepository.from_directory(directory, linked_files=linked_files)
    repository.compose(composition)
    return ModelOfFile(repository, derived.file.path)


def _link(source: Path, destination: Path) -> None:
    destination.symlink_to(source.resolve())
