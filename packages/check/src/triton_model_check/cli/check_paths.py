"""Finds the repositories of the paths that a user names: folders, models, and files of models."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from triton_model_check.checks.report import Report
from triton_model_check.model.folder import CONFIG_FILE, ModelFolder
from triton_model_check.model_repository import ModelRepository


class NamedModels(NamedTuple):
    """A repository, and those of its models that are named; none means all."""

    repository: Path
    models: frozenset[str]


def find_repositories(paths: Iterable[str]) -> list[NamedModels]:
    """Return each repository of the paths once.

    The path of a model, or of a file in one, names this model. A file beside the models names the
    repository. Other paths are returned as they are, so that reading them raises the usual error.
    """
    found: dict[str, tuple[Path, set[str]]] = {}
    whole: set[str] = set()
    for path in map(Path, paths):
        model = _model_of(path)
        repository = _repository_of(path, model)
        # Two paths may lead to one folder, of which the first is the one that is printed.
        place = os.path.realpath(repository)
        _, names = found.setdefault(place, (repository, set()))
        if model is None:
            whole.add(place)
        else:
            names.add(model.name)

    named = []
    for place, (repository, names) in found.items():
        models = () if place in whole else names
        named.append(NamedModels(repository, frozenset(models)))
    return named


def _repository_of(path: Path, model: Path | None) -> Path:
    """Return the repository that a path names, as the user wrote it."""
    if model is not None:
        return model.parent if path.is_absolute() else Path(os.path.relpath(model.parent))
    if path.is_file() and _has_models(path.parent):
        return path.parent
    return path


def _has_models(folder: Path) -> bool:
    return any(model.has_config or model.versions for model in _folders(folder))


def _model_of(path: Path) -> Path | None:
    """Return the absolute folder of the model that a path is, or is in."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() follows links
    if _is_model(absolute):
        return absolute
    if not path.exists():
        return None
    is_repository = path.is_dir() and any(model.has_config for model in _folders(absolute))
    if is_repository:
        return None

    for folder in absolute.parents:
        if (folder / CONFIG_FILE).is_file():
            return folder
    # A model may have no configuration: then its version folder shows what it is.
    is_in_version = path.is_file() and absolute.parent.name.isdecimal()
    return absolute.parents[1] if is_in_version else None


def _is_model(folder: Path) -> bool:
    """Whether a folder is one model: it has a configuration or versions, and contains no model."""
    model = ModelFolder(folder.name, folder)
    if not (model.has_config or model.versions):
        return False
    for inner in _folders(folder):
        if inner.has_config:
            return False
        # Without a configuration of the folder, the inner folders with versions are the models.
        if inner.versions and not model.has_config:
            return False
    return True


def _folders(folder: Path) -> Iterator[ModelFolder]:
    listed = ModelFolder(folder.name, folder).list()
    return (ModelFolder(name, folder / name) for name, is_folder in listed.items() if is_folder)


def of_named_models(report: Report, named: NamedModels) -> Report:
    """Return the findings of the named models, and of the models that need one of them."""
    if not named.models:
        return report
    repository = ModelRepository.from_directory(named.repository)
    reported = {_model(finding.path) for finding in (*report.findings, *report.ignored)}
    reported |= {_model_of_line(line) for line in report.not_checked}
    kept = set(named.models)
    for name in reported & repository.models.keys():
        if not named.models.isdisjoint(repository.closure(name)):
            kept.add(name)

    return replace(
        report,
        findings=tuple(found for found in report.findings if _model(found.path) in kept),
        ignored=tuple(found for found in report.ignored if _model(found.path) in kept),
        not_checked=tuple(line for line in report.not_checked if _model_of_line(line) in kept),
    )


def _model(path: str) -> str:
    """Return the model whose folder has a file; its path is relative to the repository."""
    return path.partition("/")[0]


def _model_of_line(line: str) -> str:
    """Return the model of a line ``PATH: what was not checked``."""
    return _model(line.partition(": ")[0])
