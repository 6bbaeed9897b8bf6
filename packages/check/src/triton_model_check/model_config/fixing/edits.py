"""Turns the steps of a fix into edits of a model's file."""

from __future__ import annotations

from constructs_triton_core.findings import Edit, Fix
from triton_model_check.model_config.fixing.steps import Remedy
from triton_model_check.model_config.folder import ModelFolder
from triton_model_check.model_config.locations import Locations
from triton_model_check.model_config.text import decode


def fix_in(folder: ModelFolder | None, path: str, remedy: Remedy | None) -> Fix | None:
    """Return the edits of a file of the folder, or ``None`` if the file does not have what they change."""
    if remedy is None or folder is None:
        return None
    if path == folder.config_path:
        text, locations = folder.config_text, folder.locations
    else:
        content = folder.read(*path.removeprefix(f"{folder.path}/").split("/"))
        text, locations = None if content is None else decode(content), Locations("")
    changes = None if text is None or locations is None else remedy.changes(text, locations)
    return None if changes is None else Fix(remedy.is_safe, tuple(Edit(path, *each) for each in changes))
