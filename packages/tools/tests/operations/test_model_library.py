"""The models of a deployed multi-model endpoint, against a real S3 API on loopback."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sample_repositories import write_models

from constructs_triton_core.errors import InvalidValueError, RepositoryError
from constructs_triton_tools.operations import ModelLibrary


def test_files_of_models_are_no_archives(tmp_path: Path, s3: Any) -> None:
    """An archive among the files that a deployment has placed is not listed, and blocks no name."""
    s3.put_object(
        Bucket="models", Key=f"team/files/net/{'0' * 32}/net/env-3f9c2a1b.tar.gz", Body=b""
    )
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
    with pytest.raises(
        InvalidValueError, match=r"^prune_after: must be at least 1 day, got 1:00:00"
    ):
        library.sync(path, prune_after=timedelta(hours=1))
    (path / "net/1/model.py").unlink()
    with pytest.raises(RepositoryError):
        library.sync(path)
    assert s3.list_objects_v2(Bucket="models")["KeyCount"] == 0
    assert library.sync(path, check=False).uploaded


INDEX = b'{"version": 1, "target_models": {"tenant": "scorer-1a2b3c4d.tar.gz"}}'


@pytest.mark.parametrize(
    ("key", "body", "message"),
    [
        ("scorer-backbone.tar.gz", b"", r'grants for "scorer" allow .* "scorer-backbone\.tar\.gz"'),
        # The index lists this archive under another name.
        ("index.json", INDEX, "rename the model or that archive"),
        *(
            (f"{each}.tar.gz", b"", "")
            for each in ("scorer-1a2b3c4d", "scorer-backbones", "other-backbone")
        ),
    ],
)
def test_name_whose_grant_allows_another_archive_is_refused(
    tmp_path: Path, s3: Any, key: str, body: bytes, message: str
) -> None:
    """A grant for "scorer" allows scorer-????????.tar.gz, which is only its own digests."""
    library = ModelLibrary("models")
    path = write_models(tmp_path / "r", "net")
    s3.put_object(Bucket="models", Key=f"models/{key}", Body=body)
    with pytest.raises(InvalidValueError, match=message) if message else nullcontext():
        library.add("scorer", path)
