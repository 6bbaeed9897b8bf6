"""Downloads for deployed endpoints, without AWS."""

from __future__ import annotations

from pathlib import Path

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
