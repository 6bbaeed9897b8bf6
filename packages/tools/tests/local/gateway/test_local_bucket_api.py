"""The folder in place of S3, called by boto3,
``ModelLibrary`` and the client without credentials.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import aiohttp
import boto3
import pytest
import urllib3
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError
from fake_container import CONFIG, in_loop, write_archive
from test_local_gateway import echo, running
from yarl import URL

from constructs_triton_client.transports.sagemaker_transport import SageMakerTransport
from constructs_triton_tools.local.gateway import bucket_api
from constructs_triton_tools.operations import ModelLibrary


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all credentials away."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give the disk room, which a machine with a full disk does not have."""
    set_room(monkeypatch, tmp_path, 2**40)


def set_room(monkeypatch: pytest.MonkeyPatch, folder: Path, free: int) -> None:
    """Let the disk of a folder have a number of free bytes."""
    usage = shutil.disk_usage(folder)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The URL of a gateway, in a thread of its own, whose S3 is a folder."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    gateway = running(tmp_path, echo, bucket_folder=tmp_path / "s3")
    run = asyncio.run_coroutine_threadsafe(gateway.__aenter__(), loop).result(60)
    yield f"http://127.0.0.1:{run.client.port}"
    asyncio.run_coroutine_threadsafe(gateway.__aexit__(None, None, None), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def _s3(url: str) -> Any:
    """A client of S3 without credentials that does not try again."""
    config = Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1})
    return boto3.client("s3", endpoint_url=url, config=config)


def _code(call: Any, **arguments: Any) -> str:
    """The code of the error with which a call on the bucket ``b`` is refused."""
    with pytest.raises(ClientError) as refused:
        call(Bucket="b", **arguments)
    return str(refused.value.response["Error"]["Code"])


def _pages(url: str, **settings: Any) -> list[dict[str, Any]]:
    """The pages of a listing of the bucket ``b``."""
    return list(_s3(url).get_paginator("list_objects_v2").paginate(Bucket="b", **settings))


def _keys(pages: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    for page in pages:
        found += [row["Key"] for row in page.get("Contents", [])]
    return found


def _common_prefixes(pages: list[dict[str, Any]]) -> list[str]:
    found: list[str] = []
    for page in pages:
        found += [row["Prefix"] for row in page.get("CommonPrefixes", [])]
    return found


def test_a_model_library_and_the_client_share_the_folder(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model is added, found through the index and removed,
    and its archive is a file of the folder.
    """
    archive = write_archive(tmp_path / "m.tar.gz", {"m/config.pbtxt": CONFIG, "m/1/x": b""})
    folder = tmp_path / "s3" / "b" / "models"
    transport = SageMakerTransport("e", endpoint_url=url)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
    library = ModelLibrary("b", "models/")

    target = library.add("m", archive).target_models["m"]
    assert (folder / target).read_bytes() == archive.read_bytes()
    assert library.add("m", archive).uploaded == ()
    assert [model.size_bytes for model in library.models()] == [archive.stat().st_size]

    # The client knows the URL of the gateway without the variable.
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    assert transport.read_index("s3://b/models/index.json").target_model("m") == target

    library.remove("m", delete_archive=True)
    assert not (folder / target).exists()


def test_objects_are_written_read_and_listed_as_in_s3(tmp_path: Path, url: str) -> None:
    """With metadata, ranges and conditions; an upload in parts becomes one object."""
    large = tmp_path / "large"
    large.write_bytes(bytes(range(256)) * (9 << 12))
    s3 = _s3(url)

    # A large file is uploaded in parts.
    s3.upload_file(str(large), "b", "deep/large", ExtraArgs={"Metadata": {"owner": "me"}})
    assert s3.head_object(Bucket="b", Key="deep/large")["Metadata"] == {"owner": "me"}
    part = s3.get_object(Bucket="b", Key="deep/large", Range="bytes=254-257")["Body"].read()
    assert part == bytes([254, 255, 0, 1])
    assert (tmp_path / "s3/b/deep/large").read_bytes() == large.read_bytes()

    # Conditions decide whether an object is replaced.
    written = s3.put_object(Bucket="b", Key="a&b", Body=b"1", IfNoneMatch="*")["ETag"]
    assert _code(s3.put_object, Key="a&b", Body=b"2", IfNoneMatch="*") == "PreconditionFailed"
    assert _code(s3.put_object, Key="a&b", Body=b"2", IfMatch='"other"') == "PreconditionFailed"
    s3.put_object(Bucket="b", Key="a&b", Body=b"22", IfMatch=written)
    rows = s3.list_objects_v2(Bucket="b", Prefix="")["Contents"]
    assert [(row["Key"], row["Size"]) for row in rows] == [("a&b", 2), ("deep/large", 9 << 20)]

    s3.delete_object(Bucket="b", Key="a&b")
    assert _code(s3.get_object, Key="a&b") == "NoSuchKey"

    # Parts belong to an upload, and have numbers from 1 to 10,000.
    assert _code(s3.upload_part, Key="k", UploadId="../x", PartNumber=1, Body=b"") == "NoSuchUpload"
    upload = s3.create_multipart_upload(Bucket="b", Key="k")["UploadId"]
    for number in (0, 10_001):
        part = {"Key": "k", "UploadId": upload, "PartNumber": number, "Body": b""}
        assert _code(s3.upload_part, **part) == "InvalidArgument"


@pytest.mark.parametrize(
    "path",
    [
        "/b/..%2f..%2fsecret",
        "/..%2fx/secret",
        "/.metadata/b/k.json",
        "/..",
        "/.metadata",
        "/.partial",
    ],
)
@in_loop
async def test_nothing_outside_the_buckets_is_served(tmp_path: Path, path: str) -> None:
    """Neither a file above the folder nor the run's own notes."""
    (tmp_path / "secret").write_text("hidden")
    (tmp_path / "s3" / ".metadata" / "b").mkdir(parents=True)
    (tmp_path / "s3" / ".metadata" / "b" / "k.json").write_text("[]")
    async with running(tmp_path, echo, bucket_folder=tmp_path / "s3") as gateway:
        url = URL(f"http://127.0.0.1:{gateway.client.port}{path}?list-type=2", encoded=True)
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            assert (answer.status, "hidden" in await answer.text()) == (400, False)


def test_listings_have_pages(tmp_path: Path, url: str) -> None:
    """At most 1,000 keys in S3's order, continued by a token;
    links out of the bucket are not listed.
    """
    numbered = [f"a/{number}" for number in range(1001)]
    keys = sorted([*numbered, "a-b", "a.b", "a/b/ü &", "b", "z/1/2"], key=str.encode)
    for key in keys:
        file = tmp_path / "s3" / "b" / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (tmp_path / "s3/b/link").symlink_to(tmp_path)
    (tmp_path / "s3/b/file").symlink_to(__file__)
    s3 = _s3(url)

    first = s3.list_objects_v2(Bucket="b")
    assert (first["KeyCount"], first["IsTruncated"]) == (1000, True)

    assert _keys(_pages(url)) == keys
    assert _keys(_pages(url, MaxKeys=70)) == keys
    assert _keys(_pages(url, Prefix="a/1")) == [key for key in keys if key.startswith("a/1")]
    after = keys[keys.index("a/b/ü &") :]
    assert _keys(_pages(url, StartAfter="a/b/a")) == after

    pages = _pages(url, Delimiter="/", MaxKeys=2)
    assert _keys(pages) == ["a-b", "a.b", "b"]
    assert _common_prefixes(pages) == ["a/", "z/"]

    assert _code(s3.list_objects_v2, ContinuationToken="$") == "InvalidArgument"
    assert s3.list_objects_v2(Bucket="empty")["KeyCount"] == 0


def test_keys_that_no_file_can_have_are_refused(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With an error of S3, without a traceback, and without a partial file."""
    s3 = _s3(url)
    s3.put_object(Bucket="b", Key="deep/f", Body=b"")

    assert _code(s3.put_object, Key="a\0") == "InvalidURI"
    assert _code(s3.put_object, Key="a" * 300) == "KeyTooLongError"
    assert _code(s3.put_object, Key="a/" * 511 + "abc") == "KeyTooLongError"

    # A file cannot be a folder at the same time.
    for key in ("deep/f/g", "deep"):
        assert _code(s3.put_object, Key=key) == "NotImplemented"
        assert _code(s3.get_object, Key=key) == "NoSuchKey"
        s3.delete_object(Bucket="b", Key=key)

    s3.put_object(Bucket="b", Key="a/" * 511 + "a", Body=b"")
    assert s3.list_objects_v2(Bucket="b")["KeyCount"] == 2
    assert not list((tmp_path / "s3/.partial").iterdir())
    assert not caplog.records


def test_uploads_leave_room_on_the_disk(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body has S3's limit, and neither one body nor many can fill the disk,
    with a length or without.
    """
    monkeypatch.setattr(bucket_api, "_CHECKED_BYTES", 1000)

    def chunks() -> Iterator[bytes]:
        yield from [b"x" * 900] * 4

    s3 = _s3(url)
    s3.put_object(Bucket="b", Key="k", Body=b"x" * 10)

    set_room(monkeypatch, tmp_path, free=2**30 + 1500)
    assert _code(s3.put_object, Key="m", Body=b"x" * 1600) == "InsufficientStorage"
    answer = urllib3.request("PUT", f"{url}/b/m", body=chunks())
    assert answer.status == 507

    monkeypatch.setattr(bucket_api, "_MOST_BODY_BYTES", 1000)
    assert _code(s3.put_object, Key="m", Body=b"x" * 1100) == "EntityTooLarge"
    assert urllib3.request("PUT", f"{url}/b/m", body=chunks()).status == 400

    assert [row["Key"] for row in s3.list_objects_v2(Bucket="b")["Contents"]] == ["k"]
    assert not list((tmp_path / "s3/.partial").iterdir())
