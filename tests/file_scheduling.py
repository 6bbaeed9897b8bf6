"""Distributes tests to processes by file."""

from __future__ import annotations

from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]


class FileScheduling(LoadGroupScheduling):  # type: ignore[misc,no-any-unimported]
    """Runs the tests of a file in one process, unless they belong to a group.

    If tests without a group are distributed one by one, each process makes the fixtures of a file again, and
    xdist looks through all that a process has run before it sends the next one.
    """

    def _split_scope(self, nodeid: str) -> str:
        group = str(super()._split_scope(nodeid))
        return nodeid.partition("::")[0] if group == nodeid else group
