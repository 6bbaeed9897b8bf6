"""Uploads to S3 are compared with their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from constructs_triton_core.errors import ArchiveError
from constructs_triton_tools.aws import verified_upload
from constructs_triton_tools.aws.verified_upload import upload_verified

PART = 5 << 20  # the smallest that S3 takes
BUCKET = "uploads"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def client(address: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    client = boto3.client("s3", endpoint_url=address, region_name="us-east-1")
    client.create_bucket(Bucket=BUCKET)
    return client


def file_of(folder: Path, size: int) -> Path:
    file = folder / "model.bin"
    file.write_bytes(os.urandom(size))
    return file


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 2 * PART])
def test_a_file_of_any_size_is_compared(
    size: int, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in one piece, in one part and in several parts has the checksum of S3."""
    monkeypatch.setattr(verified_upload, "_PART_BYTES", PART)
    assert upload_verified(client, file_of(tmp_path, size), BUCKET, "model.bin") == ""


def replaced_after_upload(client: Any, content: bytes, **options: str) -> None:
    """Replace each object with other content before it is compared."""
    plain = boto3.client("s3", endpoint_url=client.meta.endpoint_url, region_name="us-east-1")

    def replace(**_: object) -> None:
        plain.put_object(Bucket=BUCKET, Key="model.bin", Body=content, **options)

    client.meta.events.register("after-call.s3.PutObject", replace)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"WEIGHTS", "its content is not that of the file"), (b"weigh", "must have 7 bytes, got 5")],
)
def test_another_object_is_an_error(
    content: bytes, message: str, client: Any, tmp_path: Path
) -> None:
    """An object of other content or another size than the file is an error."""
    file = tmp_path / "model.bin"
    file.write_bytes(b"weights")
    replaced_after_upload(client, content, ChecksumAlgorithm="SHA256")
    with pytest.raises(ArchiveError, match=message):
        upload_verified(client, file, BUCKET, "model.bin")


def without_checksum(client: Any) -> None:
    replaced_after_upload(client, b"weights")


def denied(client: Any) -> None:
    """Refuse HeadObject as S3 does: without a body, so the code is the status."""

    def refuse(request: Any, **_: object) -> Any:
        from botocore.awsrequest import AWSResponse
        from botocore.compat import HTTPHeaders

        response: Any = AWSResponse(request.url, 403, HTTPHeaders(), None)
        response._content = b""
        return response

    client.meta.events.register("before-send.s3.HeadObject", refuse)


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [(without_checksum, "only the size was compared"), (denied, "s3:GetObject is denied")],
)
def test_what_cannot_be_compared_is_named(
    prepare: Callable[[Any], None], reason: str, client: Any, tmp_path: Path
) -> None:
    """A store without checksums, or a role that may only write, is no error, and is not silent."""
    file = tmp_path / "model.bin"
    file.write_bytes(b"weights")
    prepare(client)
    assert reason in upload_verified(client, file, BUCKET, "model.bin")
