"""Archives and index of multi-model endpoints in a folder that takes the place of S3."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local.sources.bucket_archives import with_archives_of
from constructs_triton_tools.local.sources.specs import ContainerSpec, EndpointSpec, VariantSpec


def _place(folder: Path, indexed: Mapping[str, Mapping[str, str]]) -> Any:
    container = ContainerSpec("Model", "image", "s3://bucket/models/", indexed=indexed)
    with_archives_of(EndpointSpec("many", "many", (VariantSpec("AllTraffic", container),)), folder)
    path = folder / "bucket" / "models" / "index.json"
    return json.loads(path.read_text())["target_models"] if path.exists() else None


def test_an_index_has_the_names_of_the_last_deployment(tmp_path: Path) -> None:
    """A name that the stack no longer has is removed, and one that ModelLibrary added is kept."""
    assert _place(tmp_path, {"Sync": {"a": "a-1.tar.gz", "b": "b-1.tar.gz"}}) == {
        "a": "a-1.tar.gz",
        "b": "b-1.tar.gz",
    }
    path = tmp_path / "bucket" / "models" / "index.json"
    index = json.loads(path.read_text())
    index["target_models"]["mine"] = "mine-1.tar.gz"
    path.write_text(json.dumps(index))
    assert _place(tmp_path, {"Sync": {"a": "a-2.tar.gz"}}) == {
        "a": "a-2.tar.gz",
        "mine": "mine-1.tar.gz",
    }


def test_a_prefix_that_no_stack_fills_gets_no_index(tmp_path: Path) -> None:
    """An index is written for the archives of a deployment only."""
    assert _place(tmp_path, {}) is None


def test_a_damaged_index_is_an_error(tmp_path: Path) -> None:
    """The message names the file, and says to delete it."""
    path = tmp_path / "bucket" / "models" / "index.json"
    path.parent.mkdir(parents=True)
    path.write_text("{")
    with pytest.raises(
        LocalEndpointError, match=r"index\.json: is not an index of models.*delete this file"
    ):
        _place(tmp_path, {"Sync": {"a": "a-1.tar.gz"}})
    assert path.read_text() == "{"


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """A file in the place of the bucket's folder is reported with its path."""
    (tmp_path / "bucket").write_text("")
    with pytest.raises(
        LocalEndpointError, match=r"index\.json: cannot be written.*a --bucket-folder that"
    ):
        _place(tmp_path, {"Sync": {"a": "a-1.tar.gz"}})
