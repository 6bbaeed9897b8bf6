"""Copies of a model repository, one for each candidate."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blake3 import blake3

from constructs_triton_tools.measuring.tuning.candidates import Candidate, ModelSettings
from constructs_triton_tools.measuring.tuning.model_settings import write_settings
from triton_model_check.model.folder import CONFIG_FILE, ModelFolder
from triton_model_check.model_config.schema import new_model_config
from triton_model_check.model_config.text import format_model_config
from triton_model_check.model_repository import ModelRepository

# A smaller file is copied, so that a model may write into it.
_LINKED_BYTES = 1 << 20


@dataclass(frozen=True)
class TunedRepository:
    """A repository whose models a search changes.

    Args:
        repository: The repository with its Python environments; it is not changed.
        model: Name of the model that is served.
        present: Settings of each model that is searched.
        own: The repository of the user, whose configurations a result changes. Default:
            ``repository``.
    """

    repository: ModelRepository
    model: str
    present: Candidate
    own: ModelRepository | None = field(default=None, kw_only=True)

    @property
    def folders(self) -> list[ModelFolder]:
        """The model with all models that it needs."""
        return [self.repository.models[name] for name in self.repository.closure(self.model)]

    @property
    def calls(self) -> dict[str, tuple[str, ...]]:
        """What is declared of the calls of these models, for a copy of them."""
        declared = self.repository.composition.calls
        return {
            folder.name: declared[folder.name] for folder in self.folders if folder.name in declared
        }

    def digest(self) -> str:
        """Return a digest of the files of these models."""
        digest = blake3()
        for folder in self.folders:
            for path in sorted(path for path in folder.directory.rglob("*") if path.is_file()):
                content = blake3().update_mmap(path).hexdigest()
                digest.update(
                    f"{folder.name}/{path.relative_to(folder.directory)} {content}\n".encode()
                )
        return digest.hexdigest()[:16]

    def copy(self, candidate: Candidate, target: Path) -> None:
        """Write the models with the settings of a candidate to a folder that does not exist.

        Large files are hard links where the file system allows it. The response cache is off: the
        requests of a search repeat.
        """
        for folder in self.folders:
            copy = target / folder.name
            shutil.copytree(folder.directory, copy, copy_function=_link_or_copy)
            config = self._measured_config(folder, candidate)
            if config is not None:
                (copy / CONFIG_FILE).unlink(missing_ok=True)
                (copy / CONFIG_FILE).write_text(format_model_config(config), encoding="utf-8")

    def _measured_config(self, folder: ModelFolder, candidate: Candidate) -> Any | None:
        """Return the configuration to measure; ``None`` if it is that of the file."""
        settings = dict(candidate.models).get(folder.name)
        is_changed = settings is not None and settings != self.present[folder.name]
        has_cache = folder.config is not None and folder.config.response_cache.enable
        if not is_changed and not has_cache:
            return None
        config = new_model_config()
        config.CopyFrom(self.config(folder, settings) if settings is not None else folder.config)
        config.ClearField("response_cache")
        return config

    def changed(self, candidate: Candidate) -> list[ModelFolder]:
        """Return the models of the user whose settings are not the present ones."""
        models = dict(candidate.models)
        present = dict(self.present.models)
        own = self.own or self.repository
        names = (folder.name for folder in self.folders)
        return [own.models[name] for name in names if models.get(name) != present.get(name)]

    def config(self, folder: ModelFolder, settings: ModelSettings) -> Any:
        """Return the configuration of a model with these settings."""
        written = folder.config if folder.config is not None else new_model_config()
        return write_settings(written, self.present[folder.name], settings)


def _link_or_copy(source: str, target: str) -> str:
    source = os.path.realpath(source)  # a copy must not link out of itself
    if os.stat(source).st_size >= _LINKED_BYTES:  # noqa: PTH116 - copytree calls it with strings
        try:
            os.link(source, target)
        except OSError:
            pass
        else:
            return target
    return shutil.copy2(source, target)
