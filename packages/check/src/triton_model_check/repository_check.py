"""The checks from Python, without a terminal."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.report import Report
from triton_model_check.choosing.settings import Settings
from triton_model_check.cli.chosen import choose
from triton_model_check.cli.target_check import place_files, without_imports
from triton_model_check.model_config.target import PLATFORMS, Platform, Target
from triton_model_check.model_repository.repository import ModelRepository


def check_repository(
    path: str | os.PathLike[str],
    target: Platform | Target = "server",
    *,
    image_version: str | None = None,
    local_files: bool = True,
    settings: str | os.PathLike[str] | None = None,
) -> Report:
    """Return what is wrong with a model repository. No model code runs.

    Comments in the files that ignore findings count.

    Args:
        path: A folder with one subfolder for each model.
        target: Where the models run: a name such as ``"kubernetes"``, or a ``Target`` with more
            facts.
        image_version: Triton release of the image, such as ``"26.05"``. Default: that of the
            target.
        local_files: ``False`` if weights and version folders are stored elsewhere.
        settings: A folder. The nearest settings in it, or above it, say what to select and to
            ignore. Default: everything is reported.

    Raises:
        InvalidValueError: the folder cannot be read, the target is unknown, or the settings are
            wrong.
    """
    place = replace(_target(target, image_version), local_files=local_files)
    repository = ModelRepository.from_directory(path)
    placed, problem = place_files(repository, local_files=local_files)
    report = without_imports(placed.check(place, is_packed=False), repository, problem)
    return report if settings is None else choose(report, Settings.of(Path(settings)))


def _target(target: Platform | Target, image_version: str | None) -> Target:
    if isinstance(target, Target):
        return target if image_version is None else replace(target, image_version=image_version)
    if target not in PLATFORMS:
        hint = did_you_mean(target, PLATFORMS, f"use one of {quoted(PLATFORMS)}")
        raise InvalidValueError(f'target: is unknown, got "{target}"; {hint}')
    return Target.named(target, image_version=image_version)
