"""What depends on constructs that are added later: it runs at the synthesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

import jsii
from aws_cdk import Annotations, Stack
from constructs import Construct, IValidation

from constructs_triton.cdk.validation.read_once import stack_of
from constructs_triton_core.findings import Finding

_steps: WeakKeyDictionary[Stack, list[Callable[[], None]]] = WeakKeyDictionary()


def at_synthesis(construct: Construct, step: Callable[[], None]) -> None:
    """Call ``step`` when the stack of a construct is validated: after the aspects.

    A stack has one validation for all its steps, because each costs several calls across the border
    of the two languages. An aspect would be called for each construct.
    """
    stack = stack_of(construct)
    steps = _steps.get(stack)
    if steps is None:
        steps = _steps[stack] = []
        stack.node.add_validation(_Steps(steps))
    steps.append(step)


def warn_at_synthesis(construct: Construct, find: Callable[[], Finding | None]) -> None:
    """Annotate a construct at synthesis with what ``find`` returns then."""

    def annotate() -> None:
        finding = find()
        if finding is not None:
            add_warning(construct, finding)

    at_synthesis(construct, annotate)


def add_warning(construct: Construct, finding: Finding) -> None:
    """Annotate a construct with a finding, which can be acknowledged by its code."""
    Annotations.of(construct).add_warning_v2(f"constructs-triton:{finding.code}", finding.one_line)


@jsii.implements(IValidation)
class _Steps:
    def __init__(self, steps: Sequence[Callable[[], None]]) -> None:
        self._steps = steps

    def validate(self) -> list[str]:
        """Do each step; a warning is no error of the validation."""
        for step in self._steps:
            step()
        return []
