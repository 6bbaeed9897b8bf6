"""What services refuse, also of resources that exist without doing anything:
``service_rules.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from constructs_triton_core.schedule_expressions import schedule_problem

from ..errors import StackError
from ..providers.provider import Deployed, Request, without
from ..services.resource_schemas import fits_extension
from ..values.stand_ins import is_opaque

_RULES = json.loads(Path(__file__).with_suffix(".json").read_text())
_SCHEDULE = "AWS::Scheduler::Schedule"
_SCALABLE_TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
_FIXED = ("KeySchema", "Projection", "AttributeDataType", "Mutable", "Required")
"""What cannot change of an index of a table, or of an attribute of users."""


def expect_accepted(kind: str, request: Request, current: Deployed | None = None) -> None:
    """Raise ``StackError`` if the service refuses to create, update,
    replace or delete a resource.
    """
    if kind != "delete":
        _expect_schedules(request)
    versions = (current.properties if current else {}), request.properties
    for rule in _RULES.get(request.type, ()):
        old, new = (each.get(rule["property"]) if "property" in rule else each for each in versions)
        if kind in rule["when"] and _TESTS[rule["test"]](old, new, rule.get("what")):
            raise StackError(rule["reason"].format(old=old, new=new))


def _expect_schedules(request: Request) -> None:
    """Raise ``StackError`` if the expression of a schedule has a form that services refuse."""
    for expression in _schedules(request):
        # A value of another stack, or of what is not simulated, is not known.
        if isinstance(expression, str) and not is_opaque(expression):
            problem = schedule_problem(expression)
            if problem:
                raise StackError(f"Invalid Schedule Expression {expression}: {problem}.")


def _schedules(request: Request) -> list[Any]:
    if request.type == _SCHEDULE:
        return [request.properties.get("ScheduleExpression")]
    if request.type == _SCALABLE_TARGET:
        actions = request.properties.get("ScheduledActions") or ()
        return [action.get("Schedule") for action in actions]
    return []


def _is_lower(old: Any, new: Any, _: Any) -> bool:
    """Whether a number or version is lower, in the parts that both have."""
    before, after = (tuple(map(int, re.findall(r"\d+", str(each)))) for each in (old, new))
    return after[: len(before)] < before[: len(after)]


def _items(value: Any) -> dict[str, list[Any]]:
    """What cannot change of each item of a list, by its name."""
    return {
        each.get("IndexName", each.get("Name")): [*map(each.get, _FIXED)] for each in value or ()
    }


_TESTS: Mapping[str, Callable[[Any, Any, Any], bool]] = {
    "is another": lambda old, new, _: bool(old != new),
    "differs only in": lambda old, new, name: without(old, name) == without(new, name),
    "is lower": _is_lower,
    "has": lambda _, new, pattern: bool(re.search(pattern, json.dumps(new, sort_keys=True))),
    "breaks": lambda _, new, extension: not fits_extension(extension, new),
    "has several other items": lambda old, new, _: len(_items(old).keys() ^ _items(new).keys()) > 1,
    "has a changed item": lambda old, new, _: (
        not (_items(old).items() <= (_items(old) | _items(new)).items())
    ),
    "lacks an item": lambda old, new, _: not _items(old).items() <= _items(new).items(),
}
