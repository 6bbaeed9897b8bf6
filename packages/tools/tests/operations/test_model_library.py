"""The models of a deployed multi-model endpoint, against a real S3 API on loopback."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sample_repositories import write_models

from constructs_triton_core.errors import InvalidValueError, RepositoryError
from constructs_triton_tools.operations import ModelLibrary


def test_files_of_models_are_no_archives(tmp_path: Path, s3: Any) -> None:
    """An archive among the files that a deployment has placed is not listed, and blocks no name."""
    s3.put_object(Bucket="models", Key=f"team/files/net/{'0' * 32}/net/env-3f9c2a1b.tar.gz", Body=b"")
    s3.put_object(Bucket="models", Key="team/files/old.tar.gz", Body=b"")
    library = ModelLibrary("models", "team/")
    assert library.archives_without_name() == ["files/old.tar.gz"]
    library.add("env", write_models(tmp_path / "r", "net"), model="net")


def test_models_are_added_listed_and_removed(tmp_path: Path, s3: Any) -> None:
    """A change says what was uploaded, and the list follows it."""
    library = ModelLibrary("models", "team/")
    assert library.url == "s3://models/team/"
    path = write_models(tmp_path / "r", "net", "other")
    added = library.add("resnet", path, model="net")
    assert added.uploaded == (added.target_models["resnet"],)
    assert library.add("resnet", path, model="net").uploaded == ()
    assert [model.name for model in library.models()] == ["resnet"]
    changed = library.sync(path, prune_after=timedelta(days=1))
    assert sorted(changed.target_models) == ["net", "other"]
    assert changed.deleted == ()
    removed = library.remove("other")
    assert library.archives_without_name() == [removed]


def test_rejected_model_and_short_retention_are_refused(tmp_path: Path, s3: Any) -> None:
    """Nothing is uploaded; ``check=False`` uploads the model without its file."""
    library = ModelLibrary("models")
    path = write_models(tmp_path / "r", "net")
    with pytest.raises(InvalidValueError, match=r"^prune_after: must be at least 1 day, got 1:00:00"):
        library.sync(path, prune_after=timedelta(hours=1))
    (path / "net/1/model.py").unlink()
    with pytest.raises(RepositoryError):
        library.sync(path)
    assert s3.list_objects_v2(Bucket="models")["KeyCount"] == 0
    assert library.sync(path, check=False).uploaded


@pytest.mark.parametrize(
    ("key", "is_refused"),
    [
        ("scorer-backbone.tar.gz", True),
        ("scorer-1a2b3c4d.tar.gz", False),
        ("scorer-backbones.tar.gz", False),
        ("other-backbone.tar.gz", False),
    ],
)
def test_name_whose_grant_allows_another_archive_is_refused(
    tmp_path: Path, s3: Any, key: str, is_refused: bool
) -> None:
    """A grant for "scorer" allows scorer-????????.tar.gz, which is only its own digests."""
    library = ModelLibrary("models")
    path = write_models(tmp_path / "r", "net")
    s3.put_object(Bucket="models", Key=f"models/{key}", Body=b"")
    if is_refused:
        with pytest.raises(
            InvalidValueError, match=r'grants for "scorer" allow .* "scorer-backbone\.tar\.gz"'
        ):
            library.add("scorer", path)
    else:
        library.add("scorer", path)


def test_archive_of_another_name_is_refused(tmp_path: Path, s3: Any) -> None:
    """An archive that the index lists under another name is not covered by a new grant."""
    library = ModelLibrary("models")
    path = write_models(tmp_path / "r", "net")
    index = b'{"version": 1, "target_models": {"tenant": "scorer-1a2b3c4d.tar.gz"}}'
    s3.put_object(Bucket="models", Key="models/index.json", Body=index)
    with pytest.raises(InvalidValueError, match="rename the model or that archive"):
        library.add("scorer", path)
