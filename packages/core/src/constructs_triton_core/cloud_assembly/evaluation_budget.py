"""Counts the work of evaluating a template, so that it ends.

A template of 3 kB can stand for any amount of work: 50 conditions that each use the one before
twice, or names that join the name before four times. So everything is evaluated once, and work and
results are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from constructs_triton_core.errors import InvalidValueError, TemplateError

__all__ = ["EvaluationBudget", "Results", "TemplateBudgetError", "too_deep"]

_MOST_STEPS = 2_000_000
_MOST_CHARACTERS = 1_000_000  # those of a whole template in CloudFormation
_MOST_DEEP = 64
_STEPS_OF_A_FUNCTION, _CHARACTERS_PER_STEP = 10, 50
_HINT = "remove references that repeat each other"


class TemplateBudgetError(InvalidValueError):
    """Evaluating a template would take too long, or never end.

    It is no ``TemplateError``, which readers ignore where a value may be unknown before a
    deployment.
    """


class EvaluationBudget:
    """The steps that evaluating the templates of one assembly, or of one operation, may take.

    A step is a value or a resource that is looked at, a tenth of the call of a function, or 50
    characters of a result: one or two microseconds.
    """

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _MOST_STEPS

    def spend(self, steps: int) -> None:
        """Count steps."""
        self._left -= steps
        if self._left < 0:
            raise TemplateBudgetError(
                f"its references take more than {_MOST_STEPS:,} steps to follow; "
                f"{_HINT}, or split the stack"
            )

    def expect_text(self, what: str, characters: int) -> None:
        """Refuse the text of one function that is too long, before it exists."""
        if characters > _MOST_CHARACTERS:
            raise TemplateBudgetError(
                f"{what}: its value has more than {_MOST_CHARACTERS:,} characters, the limit of "
                f"CloudFormation for a whole template; {_HINT}"
            )


class Results:
    """What the functions and conditions of one template have returned."""

    def __init__(self, budget: EvaluationBudget) -> None:
        self._budget = budget
        self._known: dict[Hashable, tuple[Any, int, object]] = {}
        self._failed: dict[Hashable, tuple[str, object]] = {}
        self._open: set[Hashable] = set()

    def of(self, what: str, node: object, evaluate: Callable[[], Any]) -> Any:
        """Return the result of a node of the template, and evaluate it once.

        A condition is known by its name, any other node by its place in memory. A node that needs
        its own result is an error.

        A result counts as often as it is used, because a reader of the whole reads it as often.
        """
        key = node if isinstance(node, str) else id(node)
        if key in self._known:
            result, size, _ = self._known[key]
            self._budget.spend(size)
            return result
        if key in self._failed:
            raise TemplateError(self._failed[key][0])
        self._begin(what, key)
        try:
            result = evaluate()
        except TemplateError as error:
            self._failed[key] = str(error), node
            raise
        finally:
            self._open.remove(key)
        size = self._size(what, result)
        self._known[key] = result, size, node  # another node could have the same id after this one
        return result

    def _begin(self, what: str, key: Hashable) -> None:
        self._budget.spend(_STEPS_OF_A_FUNCTION)
        if key in self._open:
            raise TemplateError(f"{what}: refers to itself; remove the circle")
        if len(self._open) >= _MOST_DEEP:
            raise too_deep(what)
        self._open.add(key)

    def _size(self, what: str, value: Any) -> int:
        """Count a result; a list may contain results that others contain too."""
        size = 1
        if isinstance(value, str):
            self._budget.expect_text(what, len(value))
            size += len(value) // _CHARACTERS_PER_STEP
        self._budget.spend(size)
        if isinstance(value, list | dict):
            parts = value if isinstance(value, list) else value.values()
            size += sum(self._size(what, each) for each in parts)
        return size


def too_deep(what: str) -> TemplateBudgetError:
    """Return the error of a function that needs too many others."""
    return TemplateBudgetError(f"{what}: is nested more than {_MOST_DEEP} functions deep; {_HINT}")
