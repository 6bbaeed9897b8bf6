"""What tests of several folders use: a separate cache, and AWS APIs on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache for each test, so that none uses the developer's cache."""
    directory = tmp_path / "cache"
    monkeypatch.setenv("CONSTRUCTS_TRITON_CACHE_DIR", str(directory))
    return directory


@pytest.fixture(scope="module")
def aws_url() -> Iterator[str]:
    """The URL of AWS APIs on loopback."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(aws_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """S3 with an empty bucket ``models``; boto3 finds it by a variable."""
    import boto3

    monkeypatch.setenv("AWS_ENDPOINT_URL", aws_url)
    client = boto3.client("s3")
    client.create_bucket(Bucket="models")
    yield client
    for item in client.list_objects_v2(Bucket="models").get("Contents", ()):
        client.delete_object(Bucket="models", Key=item["Key"])
    client.close()
