"""Where an app creates its constructs, from the stack traces that the CDK writes.

The CDK writes the trace of each resource and each stack into the metadata of the assembly. Those of
an app in Python, Java, C# or Go are there if it ran with ``JSII_HOST_STACK_TRACES=1``. Sources:
aws-cdk-lib, core/lib/private/stack-trace.js; jsii, runtime ``_stack_trace.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Frame", "sources_of"]

_STACK = "aws:cdk:creationStack"
_LOGICAL_ID = "aws:cdk:logicalId"
#: ``name (file:line:column)``, or only what is in the parentheses; jsii writes a plus sign.
_FRAME = re.compile(
    r"(?:.*\()?(?:file://)?(?P<file>[^()]+?):(?P<line>\d+)(?::\+?(?P<column>\d+))?\)?"
)
#: Code that is not the app's: packages, and what runs the app.
_FOREIGN = re.compile(
    r"[/\\](node_modules|site-packages|dist-packages|lib[/\\]python3\.\d+)[/\\]|^node:|^<|^internal/"
)


class Frame(NamedTuple):
    """One line of an app.

    Args:
        file: Path of the file.
        line: Number of the line, from 1.
        column: Column of the line, from 1; 1 if it is not known.
    """

    file: str
    line: int
    column: int


def sources_of(metadata: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Frame]:
    """Return the line of the app that creates each construct, by the path of the construct.

    A line in the working folder comes first: the frames of a construct library that is not
    installed as a package are outside.

    Args:
        metadata: What the CDK writes of each construct.
    """
    here = str(Path.cwd())
    found = {}
    for path, entries in metadata.items():
        frames = [frame for entry in entries for frame in _frames(entry)]
        inside = (frame for frame in frames if frame.file.startswith(here))
        frame = next(inside, frames[0] if frames else None)
        if frame is not None:
            found[path.removeprefix("/")] = frame
    return found


def _frames(entry: Mapping[str, Any]) -> Iterator[Frame]:
    """The frames of the app, the innermost first."""
    if entry["type"] == _STACK:
        lines = entry.get("data")
    elif entry["type"] == _LOGICAL_ID:  # where the CDK wrote it before it had an entry of its own
        lines = entry.get("trace")
    else:
        return
    for line in lines if isinstance(lines, list) else ():
        match = _FRAME.fullmatch(str(line).strip())
        if match is not None and not _FOREIGN.search(match["file"]):
            yield Frame(match["file"], int(match["line"]), int(match["column"] or 1))
