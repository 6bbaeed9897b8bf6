"""The archives of a multi-model endpoint, which ``adopt`` downloads and checks."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from constructs_triton_tools.operations.adopting.findings import Adoption
from constructs_triton_tools.operations.adopting.models import ModelReader
from constructs_triton_tools.operations.adopting.reading import Downloads, RecordingReader

_CONFIG = b'name: "net"\nbackend: "onnxruntime"\n'
#: Small in place of the gibibytes of --max-download, so that the test is fast.
_BUDGET_BYTES = 204 << 20
_ZEROS = 20 << 20


def archive(config: bytes = _CONFIG, zeros: int = 0) -> bytes:
    """An archive of one model, with a file of zeros."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in (("net/config.pbtxt", config), ("net/1/model.onnx", bytes(zeros))):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return gzip.compress(stream.getvalue(), 1, mtime=0)


class Bucket:
    """Answers the calls of S3, in place of AWS."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects, self.not_read = objects, list[str]()

    def read(self, *_: str, **__: Any) -> dict[str, Any]:
        return {"Contents": [{"Key": key, "Size": len(body)} for key, body in self.objects.items()]}

    def require(self, _: str, operation: str, Key: str, **__: Any) -> dict[str, Any]:  # noqa: N803 - boto3's
        body = self.objects[Key]
        return (
            {"Body": SimpleNamespace(iter_chunks=lambda _: [body])}
            if operation == "get_object"
            else {}
        )


def read_all(bucket: Bucket, folder: Path) -> Adoption:
    """Adopt all archives of the bucket."""
    adoption = Adoption("many")
    downloads = Downloads(cast(RecordingReader, bucket), folder, 1 << 30)
    downloads.budget.bytes_left = _BUDGET_BYTES
    container = {"ModelDataUrl": "s3://models/many/", "Mode": "MultiModel"}
    ModelReader(downloads, folder, adoption).read("many", container, None, "models")
    return adoption


@pytest.mark.parametrize(("cut", "damaged"), [(None, 0), (-20, 10)])
def test_archives_together_are_bounded_and_leave_nothing(
    tmp_path: Path, cut: int | None, damaged: int
) -> None:
    """Twelve archives of 20 MiB unpack to more than 204 MiB, damaged ones up to their error:
    two are left.
    """
    body = archive(zeros=_ZEROS)[:cut]
    bucket = Bucket({f"many/{number:02}.tar.gz": body for number in range(12)})
    adoption = read_all(bucket, tmp_path)
    unchecked = [line.partition(": was not checked")[0] for line in bucket.not_read]
    assert unchecked == ["s3://models/many/10.tar.gz", "s3://models/many/11.tar.gz"]
    assert "add --max-download with more MiB" in bucket.not_read[0]
    assert [each.code for each in adoption.problems].count("archive") == damaged
    assert list(tmp_path.iterdir()) == []


def test_errors_of_one_kind_are_summed(tmp_path: Path) -> None:
    """Of many errors with one code, the first are listed, and the number of the others."""
    wrong = archive(_CONFIG + b"unknown: 1\n")
    adoption = read_all(Bucket({f"many/{number}.tar.gz": wrong for number in range(25)}), tmp_path)
    (code,) = {each.code for each in adoption.problems}
    assert [each.code for each in adoption.problems] == [code] * 21
    assert adoption.problems[0].message.startswith("s3://models/many/0.tar.gz: net/config.pbtxt")
    assert "5 more errors of this kind" in adoption.problems[-1].message
