"""Reports models of decision trees that a stand-in reads, and the image does not or may not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from triton_model_check.facts.tree_formats import unsupported_xgboost
from triton_model_check.model_config.backends import infer_backend
from triton_model_check.model_config.folder import ModelFolder
from triton_model_check.model_config.loaded_files import describe_file, file_to_load
from triton_model_check.model_files.model_file import ModelFile
from triton_model_check.model_files.trees import FIRST_UNPUBLISHED_XGBOOST

__all__ = ["image_version_of", "tree_notices"]

_TAG = re.compile(r":(\d\d\.\d\d)-py3")


def image_version_of(image: str) -> str | None:
    """Return the Triton release in the tag of an image's URI, or ``None`` if the tag has none."""
    found = _TAG.search(image)
    return found[1] if found else None


def tree_notices(model: ModelFolder, image_version: str | None) -> Iterator[str]:
    """Yield a line for each XGBoost file that the image of the endpoint does not read, or may not read."""
    for file in _files(model):
        version = file.versions.get("xgboost")
        if version is None:
            continue
        written = f"{file.path.name} was written by XGBoost {version}, which the stand-in reads"
        major, _, minor = version.partition(".")
        reads = image_version and unsupported_xgboost(
            image_version, file.model_type, (int(major), int(minor))
        )
        if reads:
            yield f"{written}, but image {image_version} supports {reads}"
        elif int(major) >= FIRST_UNPUBLISHED_XGBOOST:
            yield f"{written}; which images read it is not published"


def _files(model: ModelFolder) -> Iterator[ModelFile]:
    file = file_to_load(infer_backend(model), model.config)
    if file is None or file.format != "tree":
        return
    for name in model.version_directories:
        yield describe_file(file, model.directory / name, model.config, None, None)
