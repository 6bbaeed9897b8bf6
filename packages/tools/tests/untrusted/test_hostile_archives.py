"""Archives that are crafted or damaged: one error, in bounded time, and nothing left behind."""

from __future__ import annotations

import gzip
import io
import os
import random
import resource
import subprocess
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from cpu_limit import cpu_limit

from constructs_triton_core.errors import ArchiveError, InvalidValueError
from constructs_triton_tools.local.server.unpacking import _unpack_all, unpack
from triton_model_check.model_repository.archive_inspection import inspect_archive
from triton_model_check.model_repository.archive_outline import outline_archive
from triton_model_check.untrusted.tar_reader import UnpackLimits

pytestmark = pytest.mark.usefixtures("own_cache")

CONFIG = b'backend: "onnxruntime"\n'
FILES = {"net/config.pbtxt": CONFIG, "net/1/model.onnx": bytes(3000)}


def tar(
    *members: tarfile.TarInfo, files: dict[str, bytes] = FILES, tar_format: int = tarfile.PAX_FORMAT
) -> bytes:
    """A tar stream of ``files``, and then of ``members``."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tar_format) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in members:
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    return stream.getvalue()


def pax(**records: str) -> tarfile.TarInfo:
    """A file with PAX records."""
    info = tarfile.TarInfo("net/1/a")
    info.pax_headers = records
    return info


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content, 1, mtime=0))
    return path


def readers(tmp_path: Path) -> list[Callable[[Path], object]]:
    """Everything that reads an archive."""
    return [inspect_archive, outline_archive, lambda path: unpack(path, tmp_path / "unpacked")]


def sparse(**changes: str) -> tarfile.TarInfo:
    return pax(
        **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "9", **changes}
    )


HOSTILE = {
    "sparse-size": (tar(sparse(**{"GNU.sparse.realsize": "abc"})), "is a sparse file"),
    "sparse-20-gb": (tar(sparse(**{"GNU.sparse.realsize": str(20 << 30)})), "is a sparse file"),
    "sparse-endless": (tar(sparse(**{"GNU.sparse.realsize": str(10**30)})), "is a sparse file"),
    "nul": (tar(pax(path="net/1/a\0b")), "has a NUL in its name"),
    "mtime": (tar(pax(mtime="9" * 400)), "invalid mtime"),
    "mtime-negative": (tar(pax(mtime="-1")), "invalid mtime"),
    "size-negative": (tar(pax(size="-1")), "invalid size"),
    "size-huge": (tar(pax(size="9" * 30)), "invalid size"),
    "absolute": (tar(pax(path="/etc/passwd")), "would be unpacked outside its folder"),
    "long": (tar(pax(path="net/" + "a" * 300)), "has a name that is too long"),
    "deep": (tar(pax(path="net/" + "a/" * 5000)), "has a name that is too long"),
    "folders": (tar(pax(path="net/" + "a/" * 100 + "b")), "is in more than 100 folders"),
    "below-file": (tar(pax(path="net/config.pbtxt/a")), "is below a file"),
    "file-and-folder": (tar(pax(path="net/1")), "occurs twice"),
    "link": (tar(pax(path="net/1/model.onnx/../../../b")), "would be unpacked outside its folder"),
}


def numbered(size: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Three headers whose size is the twelve bytes of its field, and the end of a tar stream."""
    header = bytearray(tarfile.TarInfo("net/1/a").tobuf(tarfile.USTAR_FORMAT))
    header[124:136] = size
    header[156:157] = kind
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) * 3 + bytes(1024)


#: A negative size leads back to a header that was read, for ever: CVE-2025-8194 of Python's
#: ``tarfile``, and CVE-2026-59874 of node-tar.
HOSTILE |= {
    f"size-{name}-{kind.decode()}": (numbered(size, kind), "invalid size|size that is negative")
    for name, size in {
        "below-zero": b"\xff" * 12,
        "minus-one": b"-0000000001\0",
        "binary": b"\x80" + b"\x7f" * 11,
    }.items()
    for kind in (tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME)
}

#: A chain of extended headers, which must not exhaust the stack.
_CHAIN = tar(pax(comment="x"), files={})[:1024] * 5000 + bytes(1024)
HOSTILE["headers"] = (_CHAIN, "too many headers")
#: Python's ``tarfile`` would read this header: https://github.com/python/cpython/issues/155633.
_GIGABYTE = tarfile.TarInfo("././@PaxHeader")
_GIGABYTE.type, _GIGABYTE.size = tarfile.XHDTYPE, 1 << 30
_LARGE = _GIGABYTE.tobuf(tarfile.USTAR_FORMAT) + bytes(1 << 20)
HOSTILE["large-header"] = (_LARGE, "a header is larger than 1 MiB")


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_archive_raises_one_error_and_leaves_nothing(
    tmp_path: Path, own_cache: Path, case: str
) -> None:
    """Each reader raises this package's error at once, and no folder is left."""
    content, reason = HOSTILE[case]
    path = write(tmp_path / "a.tar.gz", content)
    with cpu_limit():
        for read in readers(tmp_path):
            with pytest.raises(ArchiveError, match=reason):
                read(path)
    assert not (tmp_path / "unpacked").exists()
    assert {entry.name for entry in tmp_path.iterdir()} <= {"a.tar.gz", own_cache.name}
    assert list((own_cache / "outlines").glob("*")) == []


@pytest.mark.parametrize("name", ["long.gnu", "long.pax", "long.ustar", "long.v7"])
def test_formats_of_gnu_tar_are_read(tmp_path: Path, name: str) -> None:
    """Long names, in each format of GNU tar, give the same files."""
    tar_format = name.partition(".")[2]
    folder = "d" * (60 if tar_format in ("ustar", "v7") else 120)
    (tmp_path / "r/net/1" / folder).mkdir(parents=True)
    (tmp_path / "r/net/config.pbtxt").write_bytes(CONFIG)
    (tmp_path / "r/net/1" / folder / ("f" * 20)).write_bytes(b"x" * 700)
    path = tmp_path / "a.tar.gz"
    subprocess.run(
        ["tar", f"--format={tar_format}", "-czf", path, "-C", tmp_path / "r", "net"], check=True
    )
    unpack(path, tmp_path / "unpacked")
    assert (tmp_path / "unpacked/net/1" / folder / ("f" * 20)).read_bytes() == b"x" * 700
    assert inspect_archive(path).unpacked_size_bytes == 700 + len(CONFIG)


def test_content_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds on bytes and members, as an argument or as an environment variable."""
    path = write(tmp_path / "a.tar.gz", tar())
    with pytest.raises(
        ArchiveError, match=r"unpacks to more than 5000 bytes.* CONSTRUCTS_TRITON_UNPACK"
    ):
        unpack(path, tmp_path / "unpacked", UnpackLimits(max_bytes=5000))
    with pytest.raises(ArchiveError, match="has more than 1 members"):
        unpack(path, tmp_path / "unpacked", UnpackLimits(max_members=1))
    monkeypatch.setenv("CONSTRUCTS_TRITON_UNPACK_BYTES", "5000")
    with pytest.raises(ArchiveError, match="unpacks to more than 5000 bytes"):
        inspect_archive(path)
    monkeypatch.setenv("CONSTRUCTS_TRITON_UNPACK_BYTES", "5 GB")
    with pytest.raises(InvalidValueError, match="must be a whole number of bytes, got '5 GB'"):
        inspect_archive(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.tar.gz"]


def test_error_in_the_middle_of_a_file_is_the_archives(tmp_path: Path) -> None:
    """The content of a large file is damaged, cut off or too long: one error,
    and nothing is left.
    """
    content = random.Random(1).randbytes(3 << 20)
    whole = gzip.compress(tar(files={**FILES, "net/1/weights.bin": content}), 1, mtime=0)
    path = tmp_path / "a.tar.gz"
    damaged = whole[: 2 << 20] + b"\xff" * 1000 + whole[(2 << 20) + 1000 :]
    for broken in (damaged, whole[: 2 << 20]):
        path.write_bytes(broken)
        for read in readers(tmp_path):
            with pytest.raises(ArchiveError, match=r"a\.tar\.gz: cannot be read as \.tar\.gz"):
                read(path)
    path.write_bytes(whole)
    with pytest.raises(ArchiveError, match="unpacks to more than 2000000 bytes"):
        unpack(path, tmp_path / "unpacked", UnpackLimits(max_bytes=2_000_000))
    assert not (tmp_path / "unpacked").exists()


def test_bomb_is_bounded_by_the_size_of_its_archive() -> None:
    """Beyond one GiB, the content may be 200 times as large as the archive,
    unless the user sets a bound.
    """
    assert UnpackLimits().bytes_for(1000) == 1 << 30
    assert UnpackLimits().bytes_for(100 << 20) == 200 * (100 << 20)
    assert UnpackLimits(max_bytes=10).bytes_for(1000) == 10


def test_unpacked_files_have_two_modes_and_no_other_attribute(tmp_path: Path) -> None:
    """A set-user-id bit of the archive is not set on this machine."""
    info = tarfile.TarInfo("net/1/run")
    info.mode = 0o6777
    unpack(write(tmp_path / "a.tar.gz", tar(info)), tmp_path / "unpacked")
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (tmp_path / "unpacked").rglob("*")}
    assert modes["run"] == modes["net"] == modes["1"] == 0o755
    assert modes["model.onnx"] == 0o644


def test_failed_unpacking_leaves_nothing(tmp_path: Path) -> None:
    """A name that exists on this file system, as on one without case,
    is an error that leaves nothing.
    """
    with pytest.raises(ArchiveError, match=r"a\.tar\.gz: cannot be read"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "unpacked")
    path = write(tmp_path / "a.tar.gz", tar())
    (tmp_path / "unpacked/other").mkdir(parents=True)
    with pytest.raises(ArchiveError, match="cannot be unpacked to"):
        unpack(path, tmp_path / "unpacked")
    assert [entry.name for entry in (tmp_path / "unpacked").iterdir()] == ["other"]


class WithoutCase(type(Path())):  # type: ignore[misc]
    """A folder on a file system that does not distinguish upper and lower case letters."""

    def __truediv__(self, name: str) -> Path:
        return Path(self, name.lower())


@pytest.mark.parametrize("name", ["NET/1/other", "net/1/MODEL.onnx", "Net"])
def test_names_that_are_the_same_on_this_file_system_are_an_error(
    tmp_path: Path, name: str
) -> None:
    """Two models would be merged, or a file overwritten."""
    info = tarfile.TarInfo(name)
    info.type = tarfile.REGTYPE if "/" in name else tarfile.DIRTYPE
    path = write(tmp_path / "a.tar.gz", tar(info))
    unpack(path, tmp_path / "with_case")
    with pytest.raises(ArchiveError, match=f"member '{name}/?' exists already"):
        _unpack_all(path, WithoutCase(tmp_path / "without_case"), None)


def test_folders_of_long_paths_take_little_memory(tmp_path: Path) -> None:
    """The names of folders within each other are kept once, not once for each path."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for index in range(500):
            archive.addfile(tarfile.TarInfo(f"net/{index}/" + "a/" * 90 + "f"))
    path = write(tmp_path / "a.tar.gz", stream.getvalue())
    tracemalloc.start()
    try:
        inspect_archive(path)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_named_pipe_is_not_opened_as_an_archive(tmp_path: Path) -> None:
    """A pipe in place of an archive is an error."""
    os.mkfifo(tmp_path / "a.tar.gz")
    for read in readers(tmp_path):
        with pytest.raises(ArchiveError, match="a named pipe instead of a file"):
            read(tmp_path / "a.tar.gz")


@pytest.mark.parametrize("tar_format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_mutated_archives_raise_only_archive_errors(tmp_path: Path, tar_format: int) -> None:
    """Hundreds of damaged headers, with valid checksums, give an error or a result."""
    source = bytearray(
        tar(pax(comment="x" * 100), pax(path="net/1/" + "b" * 90), tar_format=tar_format)
    )
    rng = random.Random(7)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for index in range(500):
        content = bytearray(source)
        for _ in range(rng.randint(1, 4)):
            content[rng.randrange(len(content))] = rng.choice(
                [0, 0x20, 0x2F, 0x30, 0x37, 0x78, 0x80, 0xFF]
            )
        path = write(tmp_path / "a.tar.gz", bytes(fix_checksums(content) if index % 3 else content))
        for read in (inspect_archive, lambda path: unpack(path, tmp_path / "unpacked")):
            try:
                read(path)
            except ArchiveError:
                continue
        subprocess.run(
            ["rm", "-rf", tmp_path / "unpacked"], check=True
        ) if index % 50 == 0 else None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def fix_checksums(content: bytearray) -> bytearray:
    """Correct the checksum of every block that looks like a header."""
    for start in range(0, len(content) - 511, 512):
        if content[start + 257 : start + 262] == b"ustar":
            total = (
                sum(content[start : start + 148]) + sum(content[start + 156 : start + 512]) + 256
            )
            content[start + 148 : start + 156] = b"%06o\0 " % total
    return content
