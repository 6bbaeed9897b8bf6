"""Finds the files of SageMaker's data capture, in S3 or in a folder, and reads their lines.

The keys end in ``<endpoint>/<variant>/yyyy/mm/dd/hh/<name>.jsonl``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from constructs_triton_core.aws.aws_reader import AwsReader
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.regular_files import open_regular
from constructs_triton_tools.operations.captured_requests import CapturedRequest, read_capture

if TYPE_CHECKING:
    import boto3

_SUFFIX = ".jsonl"
_CHUNK_BYTES = 1 << 20
#: A line has a request and a response of at most 25 MiB each, in BASE64.
_MOST_BYTES = 80 << 20
#: Folders of a key between the variant and the file: year, month, day and hour.
_TIME_FOLDERS = 4
Read = Callable[[int], bytes]


def read_capture_files(
    source: str,
    open_session: Callable[[], boto3.Session],
    *,
    variant: str | None = None,
    since: datetime | None = None,
) -> Iterator[CapturedRequest]:
    """Read all captured requests, in the order of the files' names."""
    if source.startswith("s3://"):
        files = _objects(AwsReader(open_session()), source, since)
    else:
        files = _local_files(Path(source))
    found = False
    for name, read in files:
        if variant is None or _variant(name) == variant:
            found = True
            for request in read_capture(_lines(read, name), name):
                if since is None or request.time is None or request.time >= since:
                    yield request
    if not found:
        of_variant = f" of variant {variant}" if variant else ""
        raise InvalidValueError(
            f"{source}: has no {_SUFFIX} file{of_variant}; give the prefix of data_capture, "
            "s3://bucket/prefix, or a folder with a copy of it"
        )


def _variant(name: str) -> str:
    folders = PurePosixPath(name).parts[: -_TIME_FOLDERS - 1]
    return folders[-1] if folders else ""


def _objects(reader: AwsReader, source: str, since: datetime | None) -> Iterator[tuple[str, Read]]:
    bucket, _, prefix = source.removeprefix("s3://").partition("/")
    for each in reader.members("s3", "list_objects_v2", "Contents", Bucket=bucket, Prefix=prefix):
        # An object is written after its requests, so an older one has none of those that are asked for.
        if each["Key"].endswith(_SUFFIX) and (since is None or each["LastModified"] >= since):
            body = reader.require("s3", "get_object", Bucket=bucket, Key=each["Key"])["Body"]
            yield f"s3://{bucket}/{each['Key']}", body.read


def _local_files(path: Path) -> Iterator[tuple[str, Read]]:
    files = sorted(path.rglob(f"*{_SUFFIX}")) if path.is_dir() else [path]
    for file in files:
        try:
            with open_regular(file) as stream:
                yield file.as_posix(), stream.read
        except OSError as error:
            raise InvalidValueError(f"{file}: cannot be read ({error.strerror}); check the path") from None


def _lines(read: Read, name: str) -> Iterator[bytes]:
    rest = b""
    while chunk := read(_CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
        if len(rest) > _MOST_BYTES:
            raise InvalidValueError(
                f"{name}: a line must have at most {_MOST_BYTES >> 20} MiB; give a file of SageMaker's data "
                "capture"
            )
    if rest:
        yield rest
