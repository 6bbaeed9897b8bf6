"""Keeps the digests of files, so that an unchanged file is not read again.

A digest is used only if path, device, inode, size, mtime and ctime are the same. Files of at most
16 KiB are read each time. The cache is one SQLite file, which several processes may use at the same
time. A cache that cannot be used counts as empty, and a row whose own digest is wrong as missing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from blake3 import blake3

from constructs_triton_core.untrusted.cache_contract import (
    SMALL_BYTES,
    is_own,
    is_settled,
    own_folder,
)
from triton_model_check.model_repository.content_digest import ContentDigest
from triton_model_check.model_repository.members import Member

__all__ = ["DigestCache"]

_TABLE = """
CREATE TABLE IF NOT EXISTS digests (
    path TEXT PRIMARY KEY, device TEXT, inode TEXT, size INTEGER,
    mtime_ns INTEGER, ctime_ns INTEGER, digest BLOB NOT NULL
) WITHOUT ROWID
"""
_FIND = """
SELECT digest FROM digests
WHERE path=? AND device=? AND inode=? AND size=? AND mtime_ns=? AND ctime_ns=?
"""
_ADD = "INSERT OR REPLACE INTO digests VALUES (?, ?, ?, ?, ?, ?, ?)"

_VERSION = 2
_MOST_PAGES = 32_768  # of 4 KiB: half a million digests
_CHECK_BYTES = 8
_LOCK_TIMEOUT_SECONDS = 5.0


class DigestCache:
    """The digests of one user's files, in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "digests.sqlite3"

    def find(self, members: Sequence[Member]) -> dict[str, ContentDigest]:
        """Return the known digests of ``members`` by member name,
        without those of changed files.
        """
        found: dict[str, ContentDigest] = {}
        files = [member for member in members if member.size > SMALL_BYTES]

        def look_up(database: sqlite3.Connection) -> None:
            for file in files:
                key = _key(file)
                (value,) = database.execute(_FIND, key).fetchone() or (None,)
                if isinstance(value, bytes) and _checked(key, value[:-_CHECK_BYTES]) == value:
                    found[file.name] = value[:-_CHECK_BYTES]

        if files and self._path.is_file():
            self._use_database(look_up)
        return found

    def add(
        self, members: Sequence[Member], digests: Mapping[str, ContentDigest], read_since_ns: int
    ) -> None:
        """Keep ``digests`` of files that were read after ``read_since_ns`` (from ``time.time_ns``).

        Files that were less than two seconds old then are left out: a later write could have the
        same mtime.
        """
        rows = [
            (*_key(member), _checked(_key(member), digests[member.name]))
            for member in members
            if member.state is not None
            and member.size > SMALL_BYTES
            and member.name in digests
            and is_settled(member.state.mtime_ns, read_since_ns)
        ]

        def insert(database: sqlite3.Connection) -> None:
            with database:
                _make_room(database)
                database.executemany(_ADD, rows)

        if rows:
            self._use_database(insert)

    def _use_database(self, action: Callable[[sqlite3.Connection], None]) -> None:
        """Call ``action`` with the open database; an error of the database is ignored."""
        try:
            own_folder(self._path.parent, create=True)
            if self._path.exists() and not is_own(self._path.lstat()):
                return
            with closing(sqlite3.connect(self._path, timeout=_LOCK_TIMEOUT_SECONDS)) as database:
                _make_table(database)
                action(database)
        except (OSError, sqlite3.OperationalError):
            pass  # read-only, locked for too long, or the directory cannot be created
        except sqlite3.DatabaseError:
            self._path.unlink(missing_ok=True)  # damaged: start again


def _make_table(database: sqlite3.Connection) -> None:
    if database.execute("PRAGMA user_version").fetchone() != (_VERSION,):
        database.execute("DROP TABLE IF EXISTS digests")
        database.execute(f"PRAGMA user_version = {_VERSION}")
    database.execute(_TABLE)


def _make_room(database: sqlite3.Connection) -> None:
    """Forget all digests when there are too many.

    Counting them would take as long as there are digests.
    """
    pages, free = (
        database.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count")
    )
    if pages - free > _MOST_PAGES:
        database.execute("DELETE FROM digests")


_Key = tuple[str, str, str, int, int, int]


def _checked(key: _Key, digest: ContentDigest) -> bytes:
    """Return a digest followed by one of itself and its key:
    SQLite does not notice changed bytes.
    """
    return digest + blake3(repr(key).encode("utf-8", "surrogateescape") + digest).digest(
        _CHECK_BYTES
    )


def _key(member: Member) -> _Key:
    assert member.state is not None
    device, inode, size, mtime_ns, ctime_ns = member.state
    return member.source, str(device), str(inode), size, mtime_ns, ctime_ns
