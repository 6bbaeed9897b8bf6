"""Lists every difference between a snapshot and what a test compares with it.

syrupy looks only at the hundred lines around the first difference, and pytest prints eight lines of
a comparison unless it runs with ``-vv`` or in CI. A template has thousands of lines, so most of a
change would not be shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from syrupy.assertion import SnapshotAssertion

_CONTEXT_LINES = 3


class SerializedTemplate(str):
    """What ``TritonTemplateExtension`` compares, so that its assertions are known
    among those of others.
    """

    __slots__ = ()


@dataclass(frozen=True)
class SnapshotReport:
    """The report of a failed comparison: a summary of one line,
    and the differences with their title.
    """

    summary: str
    title: str
    differences: str

    @classmethod
    def of(cls, compared: Sequence[Any], folder: Path) -> SnapshotReport | None:
        """Return the report of a failed ``==``, or ``None`` if no side is the snapshot of a
        template.

        ``compared`` are both sides of the comparison. The path of the snapshot is relative to
        ``folder``.
        """
        snapshots = [side for side in compared if isinstance(side, SnapshotAssertion)]
        if not snapshots:
            return None
        snapshot = snapshots[0]
        result = snapshot.executions[snapshot.num_executions - 1]
        if not isinstance(result.asserted_data, SerializedTemplate) or result.exception is not None:
            return None

        path = Path(result.snapshot_location)
        shown = path.relative_to(folder) if path.is_relative_to(folder) else path
        if result.recalled_data is None:
            summary = f"{shown}: does not exist; run `pytest --snapshot-update` to write it"
            return cls(summary, title="", differences="")

        places = list(_places(str(result.recalled_data), result.asserted_data))
        count = "1 place" if len(places) == 1 else f"{len(places)} places"
        return cls(
            summary=(
                f"{shown}: differs in {count}, listed "
                "below; if you want every change, run `pytest --snapshot-update`"
            ),
            title=f"{path.name}: - snapshot, + this run",
            differences="\n\n".join(places),
        )


def _places(snapshot: str, now: str) -> Iterator[str]:
    """Yield each group of differing lines, under the names of the JSON objects that contain it."""
    old = snapshot.split("\n")
    new = now.split("\n")
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT_LINES):
        lines = [_first_place(group, old, new)]
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                lines += [f"  {line}" for line in old[old_start:old_end]]
            else:
                lines += [f"- {line}" for line in old[old_start:old_end]]
                lines += [f"+ {line}" for line in new[new_start:new_end]]
        yield "\n".join(lines)


def _first_place(
    group: Sequence[tuple[str, int, int, int, int]], old: Sequence[str], new: Sequence[str]
) -> str:
    """Return the names of the objects that contain the first change, such as ``Resources/Role``."""
    first_change = next(operation for operation in group if operation[0] != "equal")
    _, old_start, _, new_start, new_end = first_change
    if new_end > new_start:
        lines, index = new, new_start
    else:  # lines were only deleted
        lines, index = old, old_start

    # Each line above with a smaller indent opens an object or a list that contains the change.
    names: list[str] = []
    indent = _indent(lines[index])
    for line in reversed(lines[:index]):
        if line and _indent(line) < indent:
            indent = _indent(line)
            name, colon, _ = line.strip().partition('": ')
            if colon:  # an item of a list has no name
                names.append(name.lstrip('"'))
    return f"{'/'.join(reversed(names))}:"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
