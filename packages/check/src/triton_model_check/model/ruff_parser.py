"""Asks Ruff's parser whether sources are valid for another Python than this one.

Ruff is optional. Each source is written to a file of a temporary folder; nothing executes it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from constructs_triton_core.processes.children import foreign_environment, run_child
from constructs_triton_core.untrusted.drafts import temporary_folder

_SECONDS = 30.0
_INSTALL = "run `pip install 'triton-model-check[python]'`"


class Fault(NamedTuple):
    """A syntax error: its text, and line and column from 1."""

    message: str
    line: int | None
    column: int | None


class Question(NamedTuple):
    """A source, and the Python whose grammar decides."""

    content: bytes
    python: tuple[int, int]


def ask_ruff(questions: Sequence[Question]) -> list[Fault | str | None]:
    """Return for each source its syntax error, ``None`` if it has none, or why it is not known.

    Ruff is started once for each Python.
    """
    if not _is_ruff_installed():
        reason = f"syntax of Python {{}}.{{}} not checked: {_INSTALL}"
        return [reason.format(*question.python) for question in questions]
    answers: dict[int, Fault | str | None] = {}
    for python in sorted({question.python for question in questions}):
        chosen = [number for number, question in enumerate(questions) if question.python == python]
        found = _ruff_faults([questions[number].content for number in chosen], python)
        for index, number in enumerate(chosen):
            answers[number] = found if isinstance(found, str) else found.get(index)
    return [answers[number] for number in range(len(questions))]


def _ruff_faults(contents: Sequence[bytes], python: tuple[int, int]) -> dict[int, Fault] | str:
    """Return the syntax errors that Ruff finds, or why it could not be asked."""
    with temporary_folder() as folder:
        for number, content in enumerate(contents):
            (folder / f"{number}.py").write_bytes(content)
        # Ruff reports syntax errors whatever is selected. W605 is a rule that costs little.
        target = f"py{python[0]}{python[1]}"
        command = [
            *(sys.executable, "-I", "-m", "ruff", "check", "--isolated", "--no-cache"),
            *("--quiet", "--exit-zero", "--output-format", "json", "--select", "W605"),
            *("--target-version", target, str(folder)),
        ]
        try:
            done = run_child(command, seconds=_SECONDS, environment=foreign_environment())
            rows = json.loads(done.stdout)
        except (OSError, ValueError) as error:
            return f"syntax of Python {python[0]}.{python[1]} not checked: ruff failed: {error}"
    return dict(reversed(list(_faults(rows))))


def _faults(rows: Sequence[dict[str, object]]) -> Iterator[tuple[int, Fault]]:
    for row in rows:
        if row.get("code") in (None, "invalid-syntax"):
            place = row["location"]
            assert isinstance(place, dict)
            number = int(Path(str(row["filename"])).stem)
            yield number, Fault(str(row["message"]), place["row"], place["column"])


@cache  # find_spec looks into every folder of sys.path
def _is_ruff_installed() -> bool:
    return find_spec("ruff") is not None
