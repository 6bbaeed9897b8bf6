"""The syntax of Python models where another program than this Python has to decide.

Its answers are about all models of a repository, because starting a program takes longer than
checking a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from triton_model_check.checks.rules import Problem
from triton_model_check.model.python_grammar import (
    NEWEST_OF_IMAGES,
    RUNNING,
    may_be_newer,
)
from triton_model_check.model.python_source import version_of

if TYPE_CHECKING:
    from triton_model_check.checks.model_under_check import ModelUnderCheck
    from triton_model_check.model.python_source import PythonSource
    from triton_model_check.model.ruff_parser import Fault


class Asked(NamedTuple):
    """A file of a model whose syntax this Python cannot decide.

    ``python`` is the version that decides. ``is_read``: whether this Python accepts the file.
    """

    model: str
    path: str
    content: bytes
    python: tuple[int, int]
    is_read: bool


class SyntaxAnswers(NamedTuple):
    """The problems of files, each with the name of its model, and what was not checked."""

    problems: list[tuple[str, Problem]]
    not_checked: list[tuple[str, str]]


def is_certain(model: ModelUnderCheck, source: PythonSource) -> bool:
    """Whether a source that this Python refuses is invalid in the image, too."""
    python = version_of(model.image_python) or NEWEST_OF_IMAGES
    return source.is_fault_of_compiler or python <= RUNNING


def files_to_ask_about(model: ModelUnderCheck) -> Iterator[Asked]:
    """Yield the files of a model whose syntax this Python cannot decide."""
    python = version_of(model.image_python)
    for source in model.python_sources:
        if source.fault is not None and not is_certain(model, source):
            wanted = python or NEWEST_OF_IMAGES
            yield Asked(model.name, source.path, source.content, wanted, is_read=False)
        elif python is not None and _may_be_newer(source, python):
            yield Asked(model.name, source.path, source.content, python, is_read=True)


def _may_be_newer(source: PythonSource, python: tuple[int, int]) -> bool:
    return source.tree is not None and may_be_newer(source.tree, source.content, python)


def as_problems(asked: Sequence[Asked], answers: Sequence[Fault | str | None]) -> SyntaxAnswers:
    """Return what another program answered about files, as the check reports it."""
    found = SyntaxAnswers([], [])
    for each, answer in zip(asked, answers, strict=True):
        if isinstance(answer, str):
            found.not_checked.append((each.model, f"{each.path}: {answer}"))
        elif answer is not None:
            found.problems.append((each.model, syntax_problem(each.path, *answer)))
        elif not each.is_read:
            wanted, running = each.python, RUNNING
            reason = (
                f"only the syntax is checked: it is that of Python {wanted[0]}.{wanted[1]}, which "
                f"Python {running[0]}.{running[1]} cannot read; run the check with the newer one"
            )
            found.not_checked.append((each.model, f"{each.path}: {reason}"))
    return found


def syntax_problem(path: str, message: str, line: int | None, column: int | None) -> Problem:
    """Return the problem of a syntax error."""
    return Problem(f"syntax error: {message}", path=path, line=line, column=column)
