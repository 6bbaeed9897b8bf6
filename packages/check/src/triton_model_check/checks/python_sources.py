"""What the checks of Python models share: their files, and where a problem is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem
from triton_model_check.model.python_class import ModelClass
from triton_model_check.model.python_contract import C_UTILS, UTILS, is_outside_table
from triton_model_check.model.python_source import PythonSource


def with_real_utils(model: ModelUnderCheck) -> Iterator[PythonSource]:
    """Yield the files that certainly import the backend's own modules."""
    folders = [model.folder.entries, *(map(model.folder.list, model.versions_to_load))]
    names = {name.partition(".")[0] for entries in folders for name in entries}
    if not names.isdisjoint((UTILS, C_UTILS)):
        return
    for source in model.python_sources:
        if source.index is not None and b"sys.modules" not in source.content:
            yield source


def classes_with_real_utils(
    model: ModelUnderCheck,
) -> Iterator[tuple[PythonSource, ModelClass]]:
    """Yield those of these files that have a class of which everything is written in the file."""
    for source in with_real_utils(model):
        if source.model_class is not None:
            yield source, source.model_class


def problem_at(source: PythonSource, node: Any, message: str, hint: str | None = None) -> Problem:
    """Return a problem in the line of a node."""
    return Problem(message, path=source.path, line=node.lineno, hint=hint)


def release_of_names(model: ModelUnderCheck) -> str | None:
    """Return the release whose names the Python backend of the target has; ``None`` for all known.

    An image that is only assumed, because the user named none, may be newer than the table. Without
    this, the most frequent check of all would find no misspelt name.
    """
    version = model.target.image_version
    return None if model.target.is_image_assumed and is_outside_table(version) else version
