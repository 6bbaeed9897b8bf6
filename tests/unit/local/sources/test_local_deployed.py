"""Downloads for deployed endpoints, without AWS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from constructs_triton.errors import LocalEndpointError
from constructs_triton.local.sources.deployed import _Objects


class Bucket:
    """An S3 client whose downloads succeed or fail with an error code."""

    def __init__(self, code: str | None = None) -> None:
        self.code = code

    def download_file(self, bucket: str, key: str, path: str) -> None:
        if self.code is not None:
            raise ClientError({"Error": {"Code": self.code}}, "HeadObject")
        Path(path).write_text(f"{bucket} {key}")


class Listing(Bucket):
    """An S3 client with objects of these keys."""

    def __init__(self, *keys: str) -> None:
        super().__init__()
        self._keys = keys

    def get_paginator(self, _: str) -> Listing:
        return self

    def paginate(self, **_: str) -> Iterator[dict[str, Any]]:
        for key in self._keys:
            yield {"Contents": [{"Key": key}]}


def test_files_below_a_prefix_are_downloaded(tmp_path: Path) -> None:
    """Each object is a file with the rest of its key as its path."""
    bucket = Listing("p/net/config.pbtxt", "p/net/1/a", "p/net/1/a.part")
    files = _Objects(bucket, tmp_path).fetch_below("s3://models/p/")
    assert {path: content.path.read_text() for path, content in files.items()} == {
        "net/config.pbtxt": "models p/net/config.pbtxt",
        "net/1/a": "models p/net/1/a",
        "net/1/a.part": "models p/net/1/a.part",
    }


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ((), "there are no objects; deploy the endpoint again"),
        (("p/net/", "p/net/1/a"), "has an empty name"),
        (("p/../../a",), r'"\.\." in its path'),
        (("p/net", "p/net/1/a"), "is below a file"),
    ],
)
def test_files_that_sagemaker_cannot_place_are_errors(
    tmp_path: Path, keys: tuple[str, ...], words: str
) -> None:
    """Nothing is downloaded if a name is not valid."""
    with pytest.raises(LocalEndpointError, match=words):
        _Objects(Listing(*keys), tmp_path).fetch_below("s3://models/p/")
    assert list(tmp_path.iterdir()) == []


def test_object_is_below_its_bucket(tmp_path: Path) -> None:
    """The complete download has the object's own name."""
    path = _Objects(Bucket(), tmp_path).fetch("s3://models/p/a.tar.gz")
    assert path == tmp_path / "models" / "p" / "a.tar.gz"
    assert path.read_text() == "models p/a.tar.gz"


@pytest.mark.parametrize("code", ["404", "NoSuchKey", "NotFound"])
def test_missing_object_is_no_error_unless_it_is_required(tmp_path: Path, code: str) -> None:
    """A model may be missing below a prefix; the archive of a model must exist."""
    objects = _Objects(Bucket(code), tmp_path)
    assert objects.fetch("s3://models/a.tar.gz") is None
    with pytest.raises(LocalEndpointError, match=r"s3://models/a.tar.gz: the object does not exist"):
        objects.fetch_required("s3://models/a.tar.gz")


def test_denied_download_is_an_error(tmp_path: Path) -> None:
    """Any other error of S3 is raised."""
    with pytest.raises(ClientError, match="AccessDenied"):
        _Objects(Bucket("AccessDenied"), tmp_path).fetch("s3://models/a.tar.gz")
