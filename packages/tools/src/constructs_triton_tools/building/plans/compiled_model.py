"""Writes a compiled model into the folder of compiled models."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.building.plans.plan_files import BuiltPlan
from triton_model_check.model_files.plan_manifest import MANIFEST_FILE
from triton_model_check.model_repository.temporary_folders import partial_folder, remove_abandoned


def check_destination(folder: Path) -> None:
    """Refuse to replace a folder that this command has not written."""
    if os.path.lexists(folder) and not (folder / MANIFEST_FILE).is_file():
        raise InvalidValueError(
            f"{folder}: already exists and was not compiled; choose another folder with --output, or "
            f"another --name"
        )


def write_compiled(output: Path, gpu_folder: str, config_text: str, name: str, built: BuiltPlan) -> Path:
    """Write the model's folder into the repository of the GPU; it is there complete or not at all."""
    repository = output / gpu_folder
    target = repository / name
    try:
        repository.mkdir(parents=True, exist_ok=True)
        check_destination(target)
        remove_abandoned(output)
        with partial_folder(output) as draft:
            model = draft / name
            (model / "1").mkdir(parents=True)
            shutil.copyfile(built.plan, model / "1" / "model.plan")
            shutil.copyfile(built.folder / MANIFEST_FILE, model / MANIFEST_FILE)
            (model / "config.pbtxt").write_text(config_text, encoding="utf-8", newline="\n")
            with suppress(FileNotFoundError):
                target.replace(draft / "replaced")
            model.replace(target)
        logs = output / "logs" / gpu_folder
        logs.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built.log, logs / f"{name}.log")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidValueError(
            f"{target}: cannot be written ({reason}); choose a folder that you may write with --output"
        ) from None
    return target
