"""The bytes of an archive: one gzip member, the same for any number of threads,
readable by other tools.
"""

from __future__ import annotations

import gzip
import io
import random
import subprocess
import tarfile
import zlib
from pathlib import Path

import pytest
from sample_repositories import write_repository

from constructs_triton_core.errors import ArchiveError, InvalidValueError
from triton_model_check.model_repository.archive import BLOCK_BYTES, write_archive
from triton_model_check.model_repository.members import Member, collect_members


@pytest.fixture
def members(tmp_path: Path) -> list[Member]:
    """Files around the ends of blocks, an empty one, and a name that needs a long header."""
    chance, long_name = random.Random(3), "x" * 150
    write_repository(
        tmp_path / "r",
        {
            "m/1/a": chance.randbytes(BLOCK_BYTES),
            "m/1/b": chance.randbytes(3 * BLOCK_BYTES - 1536),
            "m/1/c": b"",
            f"m/1/{long_name}/{long_name}": b"long",
            "m/1/é": b"text " * 50_000,
        },
    )
    return collect_members(tmp_path / "r", ["m"])


def archive_of(members: list[Member], compression_level: int = 2, workers: int = 2) -> bytes:
    output = io.BytesIO()
    write_archive(members, output, compression_level=compression_level, workers=workers)
    return output.getvalue()


def test_number_of_threads_does_not_change_the_bytes(members: list[Member]) -> None:
    """One, two and five threads write the same archive."""
    assert len({archive_of(members, workers=workers) for workers in (1, 2, 5)}) == 1


def test_archive_is_one_gzip_member(members: list[Member]) -> None:
    """A reader that stops at the first gzip member has read everything."""
    reader = zlib.decompressobj(wbits=31)
    stream = reader.decompress(archive_of(members))
    assert reader.eof
    assert reader.unused_data == b""
    assert len(stream) % tarfile.RECORDSIZE == 0


@pytest.mark.parametrize("level", range(4))
def test_other_tools_can_read_it(members: list[Member], tmp_path: Path, level: int) -> None:
    """Python's tarfile and GNU tar unpack every member as it was, at every level."""
    content = archive_of(members, compression_level=level)
    (tmp_path / "a.tar.gz").write_bytes(content)
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "-xzf", tmp_path / "a.tar.gz", "-C", tmp_path / "out"], check=True)
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content))) as tar:
        assert tar.getnames() == [member.name for member in members]
    for member in members:
        assert (tmp_path / "out" / member.name).is_dir() == member.is_directory
        if not member.is_directory:
            assert (tmp_path / "out" / member.name).read_bytes() == Path(member.source).read_bytes()


def test_file_that_was_deleted_is_named(members: list[Member]) -> None:
    """The error names a file that was deleted after the folder was listed."""
    gone = next(Path(member.source) for member in members if member.name == "m/1/b")
    gone.unlink()
    with pytest.raises(ArchiveError, match=f"{gone}: cannot be read \\(no such file"):
        archive_of(members)


def test_unknown_level_is_an_error(members: list[Member]) -> None:
    """The error of a level that does not exist has those that do."""
    with pytest.raises(
        InvalidValueError, match=r"compression_level: must be 0 \(store\) to 3, got 9"
    ):
        archive_of(members, compression_level=9)
