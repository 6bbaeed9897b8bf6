"""Acknowledgements: problems that the user knows of, which then do not count.

An acknowledgement is ``CODE`` or ``CODE@PLACE``. The place is what the problem has before its text:
a construct or one above it, a logical ID, each also after the name of its stack, a stack, or an
endpoint with or without the word before its name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import replace

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import quoted

from .codes import CODES
from .report import GENERATED, Problem, Rehearsal


def expect_codes(acknowledgements: Iterable[str]) -> None:
    """Raise ``InvalidValueError`` if an acknowledgement has no known code."""
    for acknowledgement in acknowledgements:
        code, _, _ = acknowledgement.partition("@")
        if code not in CODES:
            near = difflib.get_close_matches(code, CODES, cutoff=0.3)
            fix = f"write one of {quoted(near or CODES)}"
            raise InvalidValueError(f"acknowledge: unknown code, got {acknowledgement!r}; {fix}")


def acknowledged(found: Rehearsal, acknowledgements: tuple[str, ...]) -> Rehearsal:
    """Return the rehearsal without the problems that are acknowledged; they are named apart."""
    remaining: list[Problem] = []
    known: list[Problem] = []
    used: set[str] = set()
    for problem in found.problems:
        fitting = [text for text in acknowledgements if _fits(found, problem, text)]
        used.update(fitting)
        if fitting:
            known.append(problem)
        else:
            remaining.append(problem)

    unused = [text for text in dict.fromkeys(acknowledgements) if text not in used]
    return replace(
        found,
        problems=tuple(remaining),
        acknowledged=tuple(known),
        unused_acknowledgements=tuple(unused),
    )


def _fits(found: Rehearsal, problem: Problem, acknowledgement: str) -> bool:
    """Whether an acknowledgement has the code of a problem, and a place that the problem is in."""
    code, _, place = acknowledgement.partition("@")
    if code != problem.code:
        return False
    if not place:
        return True

    places = [problem.path, found.named(problem.path), found.named(found.place_of(problem))]
    if problem.stack:
        places += [f"{problem.stack}/{inner}" for inner in places]
    wanted = re.escape(GENERATED.sub("", place))
    pattern = re.compile(rf"(endpoint |inference component )?{wanted}($|[/,]| \()")
    return any(pattern.match(GENERATED.sub("", place)) for place in places)
