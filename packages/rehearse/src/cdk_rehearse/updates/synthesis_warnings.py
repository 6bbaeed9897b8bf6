"""The warnings of a synthesis, which ``cdk synth`` prints only for the stacks that it selects.

`cdk synth --quiet` and `cdk deploy` of one stack leave out those of the others, also of all stacks
in a stage. Without them here, a person who only rehearses an assembly would not see them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .versions import Version

__all__ = ["added_warnings", "synthesis_warnings"]

_WARNING = "aws:cdk:warning"
_ACKNOWLEDGE = re.compile(r" \[ack: (?P<id>[^\]\s]+)\]$")
"""The end of a warning with an ID, by which an app acknowledges it."""


def synthesis_warnings(
    metadata: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Iterator[tuple[str, str]]:
    """Yield the warnings of a stack: the path of the construct, and the text with its ID.

    Args:
        metadata: What the CDK writes of the constructs of the stack, by their paths.
    """
    for path, entries in metadata.items():
        for entry in entries:
            if entry["type"] == _WARNING:
                text = _ACKNOWLEDGE.sub(r" (\g<id>)", str(entry.get("data", "")))
                yield path.removeprefix("/"), text


def added_warnings(old: Version, new: Version) -> tuple[str, ...]:
    """Return the warnings of NEW that OLD does not have, each text once with all its places."""
    known = {warning for stack in old.stacks for warning in stack.warnings}
    places: dict[str, list[str]] = {}
    for stack in new.stacks:
        for path, text in stack.warnings:
            if (path, text) not in known:
                places.setdefault(text, []).append(path)
    return tuple(f"{', '.join(dict.fromkeys(paths))}: {text}" for text, paths in places.items())
