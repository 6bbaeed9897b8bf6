"""Keeps the digests of files, so that an unchanged file is not read again.

A digest is used only if path, device, inode, size, mtime and ctime are the same. The cache is one SQLite
file, which several processes may use at the same time. A cache that cannot be used counts as empty.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from constructs_triton.model_repository.content_digest import ContentDigest
from constructs_triton.model_repository.members import Member

__all__ = ["DigestCache"]

_TABLE = """
CREATE TABLE IF NOT EXISTS digests (
    path TEXT PRIMARY KEY, device TEXT, inode TEXT, size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER,
    digest BLOB NOT NULL
) WITHOUT ROWID
"""
_FIND = """
SELECT digest FROM digests WHERE path=? AND device=? AND inode=? AND size=? AND mtime_ns=? AND ctime_ns=?
"""
_ADD = "INSERT OR REPLACE INTO digests VALUES (?, ?, ?, ?, ?, ?, ?)"

_MOST_PAGES = 32_768  # of 4 KiB: half a million digests
# A file system's clock may have this resolution, so a younger file could change and keep its mtime.
_SETTLED_NS = 2_000_000_000
_LOCK_TIMEOUT_SECONDS = 5.0


class DigestCache:
    """The digests of one user's files, in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "digests.sqlite3"

    def find(self, members: Sequence[Member]) -> dict[str, ContentDigest]:
        """Return the known digests of ``members`` by member name, without those of changed files."""
        found: dict[str, ContentDigest] = {}
        files = [member for member in members if not member.is_directory]

        def look_up(database: sqlite3.Connection) -> None:
            for file in files:
                if row := database.execute(_FIND, _key(file)).fetchone():
                    found[file.name] = bytes(row[0])

        if self._path.is_file():
            self._use_database(look_up)
        return found

    def add(
        self, members: Sequence[Member], digests: Mapping[str, ContentDigest], read_since_ns: int
    ) -> None:
        """Keep ``digests`` of files that were read after ``read_since_ns`` (from ``time.time_ns``).

        Files that were less than two seconds old then are left out: a later write could have the same mtime.
        """
        settled_before = read_since_ns - _SETTLED_NS
        rows = [
            (*_key(member), digests[member.name])
            for member in members
            if member.state is not None and member.name in digests and member.state.mtime_ns < settled_before
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
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=_LOCK_TIMEOUT_SECONDS)) as database:
                database.execute(_TABLE)
                action(database)
        except (OSError, sqlite3.OperationalError):
            pass  # read-only, locked for too long, or the directory cannot be created
        except sqlite3.DatabaseError:
            self._path.unlink(missing_ok=True)  # damaged: start again


def _make_room(database: sqlite3.Connection) -> None:
    """Forget all digests when there are too many. Counting them would take as long as there are digests."""
    pages, free = (
        database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count")
    )
    if pages - free > _MOST_PAGES:
        database.execute("DELETE FROM digests")


def _key(member: Member) -> tuple[str, str, str, int, int, int]:
    assert member.state is not None
    device, inode, size, mtime_ns, ctime_ns = member.state
    return member.source, str(device), str(inode), size, mtime_ns, ctime_ns
