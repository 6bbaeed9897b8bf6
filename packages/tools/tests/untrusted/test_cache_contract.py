"""What each cache does with entries that are damaged, or belong to another version or user."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from handmade_wheels import write_wheels
from sample_repositories import write_repository

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted import cache_contract
from constructs_triton_core.untrusted.cache_contract import Seal, sha256_of, write_value
from constructs_triton_core.untrusted.drafts import DRAFT_PREFIX
from constructs_triton_tools.building.environments.building import build
from constructs_triton_tools.building.environments.cache_writing import local_lock
from constructs_triton_tools.building.plans.plan_files import LOG_FILE, PLAN_FILE, PlanCache
from triton_model_check.artifacts.environments.python_environment import PythonEnvironment
from triton_model_check.artifacts.environments.requirements import read_requirements
from triton_model_check.artifacts.environments.target import image_target
from triton_model_check.model_files.plan_manifest import PlanManifest
from triton_model_check.model_repository import ModelRepository, pack
from triton_model_check.model_repository.archive_outline import outline_archive
from triton_model_check.model_repository.cached_repository import CachedRepository
from triton_model_check.model_repository.packing import fingerprint

WEIGHTS = random.Random(0).randbytes(200_000)
CONFIG = b"""
backend: "python"
input [{ name: "x" data_type: TYPE_FP32 dims: [1] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [1] }]
"""
FILES = {
    "net/config.pbtxt": CONFIG,
    "net/1/model.py": b"class TritonPythonModel:\n    def execute(self, requests): ...\n",
    "net/1/weights.bin": WEIGHTS,
}
LATER_NS = 10**10


@pytest.fixture(autouse=True)
def files_are_old(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large files were written long before they are read, so that what is kept of them is used."""
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + LATER_NS)
    monkeypatch.setattr(cache_contract, "_warned", set())


# --- the caches -----------------------------------------------------------------------------------


def repository(folder: Path) -> ModelRepository:
    if not (folder / "models").exists():
        write_repository(folder / "models", FILES)
    return ModelRepository.from_directory(folder / "models")


def packed(folder: Path) -> bytes:
    """An archive that is copied from the cache to a new place."""
    out = folder / f"out-{time.time_ns()}"
    return pack(repository(folder), ["net"], out).path.read_bytes()


def placed(folder: Path) -> bytes:
    """An archive that is a hard link to the one in the cache."""
    return pack(repository(folder), ["net"], folder / "out", shares_files=True).path.read_bytes()


def digest(folder: Path) -> bytes:
    return fingerprint(repository(folder), ["net"]).encode()


def report(folder: Path) -> bytes:
    found = CachedRepository(repository(folder))
    return repr((found.check(), dict(found.top_level), dict(found.identities))).encode()


def outline(folder: Path) -> bytes:
    archive = folder / "foreign.tar.gz"
    if not archive.exists():
        pack(repository(folder), ["net"], folder, archive_name=archive.name, use_cache=False)
    found = outline_archive(archive)
    root = found.repository.path
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    return repr((found.archive, names, (root / "net/config.pbtxt").read_bytes())).encode()


def environment(folder: Path) -> bytes:
    if not (folder / "wheels").exists():
        write_wheels(folder / "wheels")
        (folder / "requirements.txt").write_text("--no-index\n--find-links ./wheels\npure\n")
    return build(
        read_requirements(folder / "requirements.txt"), image_target()
    ).archive.read_bytes()


def lock_of_local_server(folder: Path) -> bytes:
    with local_lock("k" * 64, "server") as path:
        if not path.exists():
            path.write_bytes(b"helper==1.0\n")
        return path.read_bytes()


def plan(folder: Path) -> bytes:
    cache = PlanCache()
    found = cache.find("key")
    if found is None:
        with cache.draft() as draft:
            (draft / "content").mkdir()
            (draft / "content" / PLAN_FILE).write_bytes(WEIGHTS)
            (draft / "content" / LOG_FILE).write_bytes(b"log")
            texts = dict.fromkeys(PlanManifest.__dataclass_fields__, "")
            numbers = {"plan_bytes": len(WEIGHTS), "build_seconds": 1, "arguments": ("--fp16",)}
            numbers |= {"inputs": (), "outputs": ()}
            sha256 = sha256_of(draft / "content" / PLAN_FILE)
            manifest = PlanManifest(**{**texts, **numbers, "key": "key", "plan_sha256": sha256})  # type: ignore[arg-type]
            found = cache.keep(draft, manifest)
    return (
        b"".join(each.read_bytes() for each in (found.plan, found.log))
        + repr(found.manifest).encode()
    )


USES = [packed, placed, digest, report, outline, environment, lock_of_local_server, plan]
#: Their content is what was asked for, so the command stops without them.
REQUIRED = {environment, lock_of_local_server, plan}


# --- the damage -----------------------------------------------------------------------------------


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def scramble(path: Path) -> None:
    """Write other bytes of the same number, and set the modification time back."""
    before = path.stat()
    path.write_bytes(random.Random(1).randbytes(before.st_size))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def change_one_byte(path: Path) -> None:
    before, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def give_away(path: Path) -> None:
    """Write other bytes into a file of another user."""
    scramble(path)
    os.chown(path, 12345, 12345)


def let_others_write(path: Path) -> None:
    scramble(path)
    path.chmod(0o666)


def make_older(path: Path) -> None:
    """Turn it into a file of another version, if it says of which one it is."""
    content = path.read_bytes()
    if content.startswith(b"SQLite"):
        path.unlink()
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE digests (path TEXT PRIMARY KEY, digest BLOB)")
            database.execute("INSERT INTO digests VALUES ('a', 'b')")
        database.close()
    else:
        path.write_bytes(content.replace(b"triton cache 1 ", b"triton cache 0 ", 1))


def remove(path: Path) -> None:
    path.unlink()


def link_elsewhere(path: Path) -> None:
    """Put a link to a file with other bytes in its place."""
    path.rename(path.with_name("elsewhere"))
    scramble(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


DAMAGES = [
    cut,
    scramble,
    change_one_byte,
    empty,
    let_others_write,
    make_older,
    remove,
    link_elsewhere,
]
if hasattr(os, "geteuid") and os.geteuid() == 0:
    DAMAGES.append(give_away)


def entries(cache: Path) -> Iterator[Path]:
    """The files of a cache, of which some may be replaced together with another one."""
    for path in sorted(cache.rglob("*")):
        if path.is_file() and path.name not in ("evicted", "elsewhere"):
            yield path


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("use", USES)
def test_damaged_entry_is_made_again(
    use: Callable[[Path], bytes], damage: Callable[[Path], None], tmp_path: Path, own_cache: Path
) -> None:
    """Each use gives the right answer, whichever file of the cache is damaged,
    and repairs the cache.
    """
    expected = use(tmp_path)
    assert list(entries(own_cache))
    for path in entries(own_cache):
        if path.is_file():
            damage(path)
            assert use(tmp_path) == expected
            assert use(tmp_path) == expected
    assert not list(own_cache.rglob(f"{DRAFT_PREFIX}*"))


@pytest.mark.parametrize("use", USES)
def test_cache_of_another_user_is_not_used(
    use: Callable[[Path], bytes],
    tmp_path: Path,
    own_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A command goes on with one warning, or stops if the cache has what it was asked for."""
    expected = use(tmp_path)
    if os.geteuid() == 0:
        os.chown(own_cache, 12345, 12345)
    else:
        own = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    before = {path: path.read_bytes() for path in entries(own_cache)}
    if use in REQUIRED:
        with pytest.raises(
            InvalidValueError, match=r"belongs to another user.* CONSTRUCTS_TRITON_CACHE_DIR"
        ):
            use(tmp_path)
    else:
        assert use(tmp_path) == use(tmp_path) == expected
        assert capsys.readouterr().err.count("warning: ") == 1
    assert {path: path.read_bytes() for path in entries(own_cache)} == before


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_cache_that_others_may_write_is_not_used(
    mode: int, tmp_path: Path, own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everybody may write it, or a group; but not if it is the group that belongs to the user."""
    expected = report(tmp_path)
    own_cache.chmod(mode)
    os.chown(own_cache, -1, os.getegid())
    is_own_group = mode == 0o770 and os.getegid() == os.geteuid()
    assert report(tmp_path) == expected
    assert ("other users may write it" in capsys.readouterr().err) is not is_own_group


def test_cache_is_created_for_its_user_alone(tmp_path: Path, own_cache: Path) -> None:
    """Whatever the umask, no other user can read or change a cache."""
    before = os.umask(0)
    try:
        for use in USES:
            use(tmp_path)
    finally:
        os.umask(before)
    assert {
        path.stat().st_mode & 0o777 for path in (own_cache, *own_cache.iterdir()) if path.is_dir()
    } == {0o700}


@pytest.mark.parametrize("damage", DAMAGES)
def test_synth_does_not_use_a_damaged_environment(
    damage: Callable[[Path], None], tmp_path: Path, own_cache: Path
) -> None:
    """Synth stops with the command that builds the environment again."""
    environment(tmp_path)
    found = PythonEnvironment.from_requirements(tmp_path / "requirements.txt")
    damaged = found.find_archive()
    damage(damaged)
    if damage is make_older:  # a tar file says nothing of a version
        assert found.find_archive() == damaged
        return
    with pytest.raises(
        InvalidValueError, match=r"was changed in the cache; run `constructs-triton env build"
    ):
        found.find_archive()


@pytest.mark.parametrize(
    "value", ["CAST(zeroblob(32) || substr(digest, 33) AS BLOB)", "'text'", "1"]
)
def test_changed_digest_is_not_used(tmp_path: Path, own_cache: Path, value: str) -> None:
    """SQLite does not notice a changed byte of a row, or a value of another type."""
    expected = digest(tmp_path)
    with sqlite3.connect(own_cache / "digests.sqlite3") as database:
        changed = database.execute(f"UPDATE digests SET digest = {value}")
        assert changed.rowcount == 1
    database.close()
    assert digest(tmp_path) == expected


# --- when a large file is read again --------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "reads"), [(1, 1), (3, 0)])
def test_large_file_is_read_again_if_it_was_young(
    seconds: float, reads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within two seconds of its modification it may change again without another time,
    but only once.
    """
    path, seal, counted = tmp_path / "large", tmp_path / "seal", list[Path]()
    path.write_bytes(WEIGHTS)
    changed = path.stat().st_mtime_ns
    monkeypatch.setattr(time, "time_ns", lambda: changed + int(seconds * 1e9))
    Seal.of("key", {"large": path}).write(seal)

    def count(read: Path) -> str:
        counted.append(read)
        return sha256_of(read)

    monkeypatch.setattr(time, "time_ns", lambda: changed + LATER_NS)
    for _ in range(2):
        Seal.read(seal, "key").use(seal, {"large": path}, digest_of=count)
    assert len(counted) == reads


def test_value_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk leaves neither a value nor a draft."""
    monkeypatch.setattr(
        os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "no space left"))
    )
    with pytest.raises(OSError, match="no space left"):
        write_value(tmp_path / "value", 1)
    assert not list(tmp_path.iterdir())
