"""The folder in place of S3, called by boto3, ``ModelLibrary`` and the client without credentials."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError
from fake_container import CONFIG, write_archive
from test_local_gateway import echo, running

from constructs_triton.operations import ModelLibrary
from constructs_triton_client.transports.sagemaker_transport import SageMakerTransport


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take all credentials away."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def _with_gateway(folder: Path, test: Any) -> None:
    """Run a blocking test beside a gateway whose S3 is a folder; it gets the URL of the gateway."""

    async def run() -> None:
        async with running(folder, echo, bucket_folder=folder / "s3") as gateway:
            url = f"http://127.0.0.1:{gateway.client.port}"
            await asyncio.wait_for(asyncio.to_thread(test, url), 60)

    asyncio.run(run())


def _s3(url: str) -> Any:
    config = Config(signature_version=UNSIGNED, retries={"total_max_attempts": 1})
    return boto3.client("s3", endpoint_url=url, config=config)


def _code(call: Any, **arguments: Any) -> str:
    with pytest.raises(ClientError) as refused:
        call(Bucket="b", **arguments)
    return str(refused.value.response["Error"]["Code"])


def test_a_model_library_and_the_client_share_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model is added, found through the index and removed, and its archive is a file of the folder."""
    archive = write_archive(tmp_path / "m.tar.gz", {"m/config.pbtxt": CONFIG, "m/1/x": b""})
    folder = tmp_path / "s3" / "b" / "models"

    def test(url: str) -> None:
        transport = SageMakerTransport("e", endpoint_url=url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
        library = ModelLibrary("b", "models/")
        target = library.add("m", archive).target_models["m"]
        assert (folder / target).read_bytes() == archive.read_bytes()
        assert library.add("m", archive).uploaded == ()
        assert [model.size_bytes for model in library.models()] == [archive.stat().st_size]
        monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
        assert transport.read_index("s3://b/models/index.json").target_model("m") == target
        library.remove("m", delete_archive=True)
        assert not (folder / target).exists()

    _with_gateway(tmp_path, test)


def test_objects_are_written_read_and_listed_as_in_s3(tmp_path: Path) -> None:
    """With metadata, ranges and conditions; an upload in parts becomes one object."""
    large = tmp_path / "large"
    large.write_bytes(bytes(range(256)) * (9 << 12))

    def test(url: str) -> None:
        s3 = _s3(url)
        s3.upload_file(str(large), "b", "deep/large", ExtraArgs={"Metadata": {"owner": "me"}})
        assert s3.head_object(Bucket="b", Key="deep/large")["Metadata"] == {"owner": "me"}
        part = s3.get_object(Bucket="b", Key="deep/large", Range="bytes=254-257")["Body"].read()
        assert part == bytes([254, 255, 0, 1])
        assert (tmp_path / "s3/b/deep/large").read_bytes() == large.read_bytes()
        written = s3.put_object(Bucket="b", Key="a&b", Body=b"1", IfNoneMatch="*")["ETag"]
        assert _code(s3.put_object, Key="a&b", Body=b"2", IfNoneMatch="*") == "PreconditionFailed"
        assert _code(s3.put_object, Key="a&b", Body=b"2", IfMatch='"other"') == "PreconditionFailed"
        s3.put_object(Bucket="b", Key="a&b", Body=b"22", IfMatch=written)
        rows = s3.list_objects_v2(Bucket="b", Prefix="")["Contents"]
        assert [(row["Key"], row["Size"]) for row in rows] == [("a&b", 2), ("deep/large", 9 << 20)]
        s3.delete_object(Bucket="b", Key="a&b")
        assert _code(s3.get_object, Key="a&b") == "NoSuchKey"
        assert _code(s3.upload_part, Key="k", UploadId="../x", PartNumber=1, Body=b"") == "NoSuchUpload"
        upload = s3.create_multipart_upload(Bucket="b", Key="k")["UploadId"]
        for number in (0, 10_001):
            part = {"Key": "k", "UploadId": upload, "PartNumber": number, "Body": b""}
            assert _code(s3.upload_part, **part) == "InvalidArgument"

    _with_gateway(tmp_path, test)


@pytest.mark.parametrize("path", ["/b/..%2f..%2fsecret", "/..%2fx/secret", "/.metadata/b/k.json"])
def test_nothing_outside_the_buckets_is_served(tmp_path: Path, path: str) -> None:
    """Neither a file above the folder nor the run's own notes."""
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "s3" / ".metadata" / "b").mkdir(parents=True)
    (tmp_path / "s3" / ".metadata" / "b" / "k.json").write_text("[]")

    async def run() -> None:
        async with running(tmp_path, echo, bucket_folder=tmp_path / "s3") as gateway:
            answer = await gateway.client.get(path)
            assert answer.status in (400, 404)

    asyncio.run(run())
