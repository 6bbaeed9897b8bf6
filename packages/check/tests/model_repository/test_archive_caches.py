"""The caches of digests, of finished archives, and of the results of checks."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sample_repositories import write_repository

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.model_repository import digest_cache
from triton_model_check.model_repository.archive_cache import ArchiveCache, ArchiveKey
from triton_model_check.model_repository.digest_cache import DigestCache
from triton_model_check.model_repository.kept import report_cache
from triton_model_check.model_repository.kept.report_cache import ReportCache
from triton_model_check.model_repository.members import FileState, Member, collect_members
from triton_model_check.untrusted.cache_location import cache_bytes, cache_directory

MARK = b"a digest that no content has...."
LATER_NS = 10**10


@pytest.fixture
def keeps_digests_of_small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of any size are looked up by their times."""
    monkeypatch.setattr(digest_cache, "SMALL_BYTES", 0)


def files_of(root: Path) -> list[Member]:
    return [member for member in collect_members(root, ["m"]) if not member.is_directory]


def overwrite_in_place(path: Path) -> None:
    """Same size, same inode, and the modification time is set back."""
    before = path.stat()
    path.write_bytes(b"b")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(path: Path) -> None:
    """Same size and modification time in another inode."""
    before = path.stat()
    (path.parent / "new").write_bytes(b"b")
    os.utime(path.parent / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
    (path.parent / "new").replace(path)


@pytest.mark.usefixtures("keeps_digests_of_small_files")
@pytest.mark.parametrize(
    "change",
    [
        overwrite_in_place,
        replace,
        lambda path: path.write_bytes(b"aa"),
        lambda path: os.utime(path, ns=(0, 1)),
    ],
    ids=["in place", "replaced", "size", "time"],
)
def test_digest_is_used_only_for_an_unchanged_file(tmp_path: Path, change) -> None:  # type: ignore[no-untyped-def]
    """A known digest is found until the file's size, modification time or inode differs."""
    write_repository(tmp_path / "r", {"m/a": b"a"})
    cache, files = DigestCache(tmp_path / "c"), files_of(tmp_path / "r")
    cache.add(files, {"m/a": MARK}, time.time_ns() + LATER_NS)
    assert cache.find(files_of(tmp_path / "r")) == {"m/a": MARK}
    change(tmp_path / "r/m/a")
    assert cache.find(files_of(tmp_path / "r")) == {}


@pytest.fixture
def fill(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Add archives of 100 bytes, one second of use apart."""

    def add(cache: ArchiveCache, *names: str) -> None:
        for age, name in enumerate(reversed(names)):
            (tmp_path / name).write_bytes(name.encode() * 100)
            cache.add(ArchiveKey(name, 1, 2), tmp_path / name)
            record = next((tmp_path / "c/archives").glob(f"*/{name}.json"))
            os.utime(record, (1_000_000 - age, 1_000_000 - age))

    return add


def test_least_recently_used_archive_is_deleted_first(tmp_path: Path, fill) -> None:  # type: ignore[no-untyped-def]
    """Above the limit, the archive is deleted that was last used longest ago,
    not the one added first.
    """
    cache = ArchiveCache(tmp_path / "c", 250)
    fill(cache, "a", "b")
    assert cache.place(ArchiveKey("a", 1, 2), tmp_path / "used")
    fill(cache, "d")
    found = {name: cache.place(ArchiveKey(name, 1, 2), tmp_path / "out") for name in "abd"}
    assert found == {"a": True, "b": False, "d": True}
    assert sum(path.stat().st_size for path in (tmp_path / "c/archives").glob("*/*.tar.gz")) == 200


def test_archive_above_the_limit_is_not_kept(tmp_path: Path) -> None:
    """One archive larger than the limit does not delete all others."""
    (tmp_path / "a").write_bytes(bytes(100))
    ArchiveCache(tmp_path / "c", 99).add(ArchiveKey("a", 1, 2), tmp_path / "a")
    assert not (tmp_path / "c").exists()


def test_archive_is_copied_where_it_cannot_be_linked(tmp_path: Path) -> None:
    """An archive is copied to another file system, where hard links are not possible."""
    other = Path("/dev/shm")
    if not os.access(other, os.W_OK) or other.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs a second file system")
    (tmp_path / "a").write_bytes(b"whole")
    cache = ArchiveCache(tmp_path / "c", 99, shares_files=True)
    target = other / f"constructs-triton-{os.getpid()}.tar.gz"
    cache.add(ArchiveKey("a", 1, 2), tmp_path / "a")
    try:
        assert cache.place(ArchiveKey("a", 1, 2), target)
        assert target.read_bytes() == b"whole"
        assert cache.is_placed(ArchiveKey("a", 1, 2), target)
        time.sleep(0.02)  # the clock of the file system
        before = target.stat()
        target.write_bytes(b"other")
        os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert not cache.is_placed(ArchiveKey("a", 1, 2), target)
    finally:
        target.unlink(missing_ok=True)


def test_default_cache_is_in_the_users_cache_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without CONSTRUCTS_TRITON_CACHE_DIR it is below XDG_CACHE_HOME on Linux."""
    monkeypatch.delenv("CONSTRUCTS_TRITON_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory().name == "constructs-triton"


@pytest.mark.parametrize("text", ["20GB", "-1", "1.5"])
def test_cache_size_is_a_number_of_bytes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a limit that is not a number of bytes has the variable's name."""
    monkeypatch.setenv("CONSTRUCTS_TRITON_CACHE_BYTES", text)
    with pytest.raises(
        InvalidValueError, match="CONSTRUCTS_TRITON_CACHE_BYTES: must be a whole number"
    ):
        cache_bytes()


@pytest.mark.usefixtures("keeps_digests_of_small_files")
def test_digests_are_forgotten_when_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache starts again; its size is known without counting the digests."""
    cache = DigestCache(tmp_path / "c")
    members = [Member(name, 0o644, str(tmp_path / name), FileState(1, 2, 3, 4, 5)) for name in "ab"]
    cache.add(members[:1], {"a": MARK}, LATER_NS)
    assert set(cache.find(members)) == {"a"}
    monkeypatch.setattr(digest_cache, "_MOST_PAGES", 0)
    cache.add(members[1:], {"b": MARK}, LATER_NS)
    assert set(cache.find(members)) == {"b"}


@pytest.mark.usefixtures("keeps_digests_of_small_files")
@pytest.mark.parametrize(("age_ns", "is_kept"), [(2_000_000_000, False), (2_000_000_001, True)])
def test_digest_is_kept_of_files_older_than_two_seconds(
    tmp_path: Path, age_ns: int, is_kept: bool
) -> None:
    """The age is that of the file when it was read."""
    member = Member("a", 0o644, str(tmp_path / "a"), FileState(1, 2, 3, 10**18, 10**18))
    cache = DigestCache(tmp_path / "c")
    cache.add([member], {"a": b"digest"}, read_since_ns=10**18 + age_ns)
    assert cache.find([member]) == ({"a": b"digest"} if is_kept else {})


def test_value_is_found_by_another_run(tmp_path: Path) -> None:
    """A value is found by the next run under its key, and under no other key."""
    ReportCache(tmp_path).add("key", {"errors": [], "warnings": ["a"]})
    assert ReportCache(tmp_path).find("key") == {"errors": [], "warnings": ["a"]}
    assert ReportCache(tmp_path).find("other") is None


def test_least_recently_used_report_is_deleted_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above the limit, the value is deleted that was last used longest ago,
    not the one added first.
    """
    monkeypatch.setattr(report_cache, "_MOST_REPORTS", 2)
    cache = ReportCache(tmp_path)
    for age, key in enumerate(("b", "a")):
        cache.add(key, key)
        os.utime(tmp_path / f"reports/{key}.json", (1_000_000 - age, 1_000_000 - age))
    assert cache.find("a") == "a"
    cache.add("c", "c")
    assert [cache.find(key) for key in "abc"] == ["a", None, "c"]


def test_cache_that_cannot_be_written_is_empty(tmp_path: Path) -> None:
    """If the cache directory cannot be created, nothing is kept, and there is no error."""
    (tmp_path / "reports").write_bytes(b"")
    cache = ReportCache(tmp_path)
    cache.add("key", 1)
    assert cache.find("key") is None


def test_parallel_runs_leave_one_complete_value(tmp_path: Path) -> None:
    """Several writers of one key leave one complete value and no temporary files."""
    value = list(range(2_000))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ReportCache(tmp_path).add("key", value), range(24)))
    assert ReportCache(tmp_path).find("key") == value
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["key.json"]
