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
    for path in map(Path, paths):
        model = _model_of(path)
        repository = path
        if model is not None:
            # As the user wrote the path: absolute, or from the working folder.
            repository = model.parent if path.is_absolute() else Path(os.path.relpath(model.parent))
        elif path.is_file() and any(
            each.has_config or each.versions for each in _folders(path.parent)
        ):
            repository = path.parent
        _, names = found.setdefault(os.path.realpath(repository), (repository, set()))
        names.add("" if model is None else model.name)
    return [
        NamedModels(repository, frozenset() if "" in names else frozenset(names))
        for repository, names in found.values()
    ]


def _model_of(path: Path) -> Path | None:
    """Return the absolute folder of the model that a path is, or is in."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() follows links
    if _is_model(absolute):
        return absolute
    if not path.exists() or (path.is_dir() and any(each.has_config for each in _folders(absolute))):
        return None
    configured = (each for each in absolute.parents if (each / CONFIG_FILE).is_file())
    is_in_version = path.is_file() and absolute.parent.name.isdecimal()
    return next(configured, absolute.parents[1] if is_in_version else None)


def _is_model(folder: Path) -> bool:
    """Whether a folder is one model: it has a configuration or versions, and contains no model."""
    model = ModelFolder(folder.name, folder)
    if not (model.has_config or model.versions):
        return False
    inner = _folders(folder)
    return not any(each.has_config or (each.versions and not model.has_config) for each in inner)


def _folders(folder: Path) -> Iterator[ModelFolder]:
    listed = ModelFolder(folder.name, folder).list()
    return (ModelFolder(name, folder / name) for name, is_folder in listed.items() if is_folder)


def of_named_models(report: Report, named: NamedModels) -> Report:
    """Return the findings of the named models, and of the models that need one of them."""
    if not named.models:
        return report
    repository = ModelRepository.from_directory(named.repository)
    paths = [each.path for each in (*report.findings, *report.ignored)]
    paths += [line.partition(": ")[0] for line in report.not_checked]
    others = {_model(path) for path in paths} & repository.models.keys()
    users = {name for name in others if not named.models.isdisjoint(repository.closure(name))}
    kept = named.models | users

    findings, ignored = (
        tuple(each for each in found if _model(each.path) in kept)
        for found in (report.findings, report.ignored)
    )
    not_checked = tuple(
        line for line in report.not_checked if _model(line.partition(": ")[0]) in kept
    )
    return replace(report, findings=findings, ignored=ignored, not_checked=not_checked)


def _model(path: str) -> str:
    return path.partition("/")[0]
