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
from itertools import chain, compress

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import quoted

from .codes import CODES
from .report import GENERATED, Problem, Rehearsal


def expect_codes(acknowledgements: Iterable[str]) -> None:
    """Raise ``InvalidValueError`` if an acknowledgement has no known code."""
    for each in acknowledgements:
        code = each.partition("@")[0]
        if code not in CODES:
            near = difflib.get_close_matches(code, CODES, cutoff=0.3)
            fix = f"write one of {quoted(near or CODES)}"
            raise InvalidValueError(f"acknowledge: unknown code, got {each!r}; {fix}")


def acknowledged(found: Rehearsal, acknowledgements: tuple[str, ...]) -> Rehearsal:
    """Return the rehearsal without the problems that are acknowledged; they are named apart."""
    fitting = [
        [each for each in acknowledgements if _fits(found, one, each)] for one in found.problems
    ]
    used = set(chain.from_iterable(fitting))
    return replace(
        found,
        problems=tuple(
            each for each, fits in zip(found.problems, fitting, strict=True) if not fits
        ),
        acknowledged=tuple(compress(found.problems, fitting)),
        unused_acknowledgements=tuple(
            each for each in dict.fromkeys(acknowledgements) if each not in used
        ),
    )


def _fits(found: Rehearsal, problem: Problem, acknowledgement: str) -> bool:
    code, _, place = acknowledgement.partition("@")
    wanted = re.escape(GENERATED.sub("", place))
    inner = [problem.path, found.named(problem.path), found.named(found.place_of(problem))]
    outer = [f"{problem.stack}/{each}" for each in inner] if problem.stack else []
    places = [GENERATED.sub("", each) for each in (*inner, *outer)]
    pattern = rf"(endpoint |inference component )?{wanted}($|[/,]| \()" if place else ""
    return code == problem.code and any(re.match(pattern, each) for each in places)
