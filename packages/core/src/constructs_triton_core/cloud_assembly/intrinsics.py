"""Evaluates CloudFormation's intrinsic functions and conditions.

What only a deployment decides comes from a ``Resolver``: placeholders if nothing is deployed, the
values of a simulated account in a rehearsal.

A template of 3 kB can stand for any amount of work: 50 conditions that each use the one before
twice, or names that join the name before four times. So everything is evaluated once, and work and
results are counted.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import contains, eq
from typing import Any, Final, Protocol

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.cloud_assembly.template import Template, substitutions
from constructs_triton_core.errors import InvalidValueError, TemplateError

__all__ = ["EvaluationBudget", "Evaluator", "TemplateBudgetError", "number_of", "text_of"]

_MOST_STEPS = 2_000_000
_MOST_CHARACTERS = 1_000_000  # those of a whole template in CloudFormation
_MOST_DEEP = 64
_STEPS_OF_A_FUNCTION, _CHARACTERS_PER_STEP = 10, 50
_HINT = "remove references that repeat each other"

_NO_VALUE: Final = object()
"""``AWS::NoValue``, which removes its property or element."""


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


class _Results:
    """What the functions and conditions of one template have returned."""

    def __init__(self, budget: EvaluationBudget) -> None:
        self._budget = budget
        self._known: dict[Hashable, tuple[Any, int, object]] = {}
        self._failed: dict[Hashable, tuple[str, object]] = {}
        self._open: set[Hashable] = set()

    def of(self, what: str, node: object, evaluate: Callable[[], Any]) -> Any:
        """Return the result of a node of the template, or evaluate it; a condition is its own node.

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
            raise _too_deep(what)
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


def _too_deep(what: str) -> TemplateBudgetError:
    """Return the error of a function that needs too many others."""
    return TemplateBudgetError(f"{what}: is nested more than {_MOST_DEEP} functions deep; {_HINT}")


class Resolver(Protocol):
    """The values of names in a template. Its errors do not contain the name of the stack."""

    def ref(self, name: str) -> Any:
        """Return the value of a resource, a parameter or a pseudo parameter."""

    def get_att(self, logical_id: str, attribute: str) -> Any:
        """Return an attribute of a resource."""

    def import_value(self, name: str) -> Any:
        """Return the value that another stack exports."""

    def stack_output(self, stack: str, name: str, region: str | None) -> Any:
        """Return an output of another stack (default: of the same Region)."""

    def availability_zones(self, region: str) -> Sequence[str]:
        """Return the Availability Zones of a Region."""


class Evaluator:
    """Evaluates the values of one template; an unknown intrinsic function is an error.

    The values of ``resolver`` must stay the same. ``budget`` is that of all evaluators of one
    operation.
    """

    def __init__(
        self, template: Template, resolver: Resolver, budget: EvaluationBudget | None = None
    ) -> None:
        self.template, self.resolver = template, resolver
        self._budget = budget or EvaluationBudget()
        self._results = _Results(self._budget)

    def evaluate(self, value: Any) -> Any:
        """Return a value without intrinsic functions, and without what ``AWS::NoValue`` removes."""
        found = self._value(value)
        return None if found is _NO_VALUE else found

    def evaluate_known(self, value: Any) -> Any:
        """Return a value in which functions without a value are as the template has them."""
        found = self._walk(value, self._call_if_known)
        return None if found is _NO_VALUE else found

    def condition(self, name: str) -> bool:
        """Return whether the condition of this name is true."""
        if name not in self.template.conditions:
            raise TemplateError(f"condition {name}: is not declared; add it to Conditions")
        expression = self.template.conditions[name]
        return bool(self._results.of(f"condition {name}", name, lambda: self.holds(expression)))

    def holds(self, expression: Any) -> bool:
        """Return whether a condition function is true."""
        self._budget.spend(1)
        if isinstance(expression, Mapping) and len(expression) == 1:
            ((name, operand),) = expression.items()
            if name in _CONDITIONS:
                return self._hold(name, operand)
        raise TemplateError(
            f"condition function is not supported, got {expression!r:.200}; "
            f"use one of {', '.join(_CONDITIONS)}"
        )

    def _hold(self, name: str, operand: Any) -> bool:
        with _in_form(f"condition function {name}", "operands have", "them", operand):
            return _CONDITIONS[name](self, operand)

    def _value(self, value: Any) -> Any:
        return self._walk(value, self._call)

    def _walk(self, value: Any, call: Callable[[dict[str, Any]], Any]) -> Any:
        if isinstance(value, list):
            self._budget.spend(len(value))
            return [
                each for each in (self._walk(item, call) for item in value) if each is not _NO_VALUE
            ]
        if not isinstance(value, dict):
            return value
        if any(name == "Ref" or name.startswith("Fn::") for name in value):
            return call(value)
        self._budget.spend(len(value))
        walked = {name: self._walk(each, call) for name, each in value.items()}
        return {name: each for name, each in walked.items() if each is not _NO_VALUE}

    def _call(self, value: dict[str, Any]) -> Any:
        name, argument = next(iter(value.items()))
        if len(value) > 1 or name not in _FUNCTIONS:
            raise TemplateError(
                f"intrinsic function is not supported, got {value!r:.200}; "
                f"use a literal value, or one of {', '.join(_FUNCTIONS)} on its own"
            )
        with _in_form(name, "argument has", "it", argument):
            return self._results.of(name, value, lambda: _FUNCTIONS[name](self, argument))

    def _call_if_known(self, value: dict[str, Any]) -> Any:
        try:
            return self._call(value)
        except TemplateError:
            return value

    def _ref(self, name: str) -> Any:
        return _NO_VALUE if name == "AWS::NoValue" else self.resolver.ref(name)

    def _get_att(self, argument: Any) -> Any:
        logical_id, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        return self.resolver.get_att(logical_id, self._value(attribute))

    def _sub(self, argument: Any) -> str:
        text, variables = (argument, {}) if isinstance(argument, str) else argument
        pieces: list[str] = []
        length = end = 0
        for match in substitutions(text):
            pieces += text[end : match.start()], self._substituted(match, variables)
            length, end = length + len(pieces[-1]), match.end()
            self._budget.spend(1)
            self._budget.expect_text("Fn::Sub", length)
        return "".join([*pieces, text[end:]])

    def _substituted(self, match: re.Match[str], variables: Mapping[str, Any]) -> str:
        literal, name = match.groups()
        if literal:
            return f"${{{name}}}"
        if name in variables:
            return text_of(self._value(variables[name]))
        return text_of(self._get_att(name) if "." in name else self._ref(name))

    def _join(self, argument: Any) -> str:
        separator, given = argument
        parts = [text_of(each) for each in self._value(given)]
        between = len(str(separator)) * max(0, len(parts) - 1)
        self._budget.expect_text("Fn::Join", sum(map(len, parts)) + between)
        return str(separator).join(parts)

    def _split(self, argument: Any) -> list[str]:
        separator, text = argument
        return text_of(self._value(text)).split(separator)

    def _select(self, argument: Any) -> Any:
        index, values = int(self._value(argument[0])), self._value(argument[1])
        if not 0 <= index < len(values):
            raise TemplateError(
                f"Fn::Select: the list has no element {index}, got {values!r:.200}; "
                "change the index or the list"
            )
        return values[index]

    def _find_in_map(self, argument: Any) -> Any:
        name, first, second = (self._value(each) for each in argument[:3])
        try:
            return self.template.mappings[name][first][second]
        except KeyError:
            if len(argument) > 3 and "DefaultValue" in argument[3]:
                return self._value(argument[3]["DefaultValue"])
            raise TemplateError(
                f"Fn::FindInMap: mapping {name} has no entry for {first!r}, {second!r}; "
                "set the stack's env to a Region of the mapping"
            ) from None

    def _if(self, argument: Any) -> Any:
        name, then, otherwise = argument
        return self._value(then if self.condition(name) else otherwise)

    def _get_stack_output(self, argument: Any) -> Any:
        given = self._value(argument)
        return self.resolver.stack_output(
            given["StackName"], given["OutputName"], given.get("Region")
        )

    def _get_azs(self, argument: Any) -> list[str]:
        return list(
            self.resolver.availability_zones(self._value(argument) or self._ref("AWS::Region"))
        )


_FUNCTIONS: dict[str, Callable[[Evaluator, Any], Any]] = {
    "Ref": Evaluator._ref,
    "Fn::Base64": lambda evaluator, text: b64encode(
        text_of(evaluator._value(text)).encode()
    ).decode(),
    "Fn::FindInMap": Evaluator._find_in_map,
    "Fn::GetAtt": Evaluator._get_att,
    "Fn::GetAZs": Evaluator._get_azs,
    "Fn::GetStackOutput": Evaluator._get_stack_output,
    "Fn::If": Evaluator._if,
    "Fn::ImportValue": lambda evaluator, name: evaluator.resolver.import_value(
        evaluator._value(name)
    ),
    "Fn::Join": Evaluator._join,
    "Fn::Select": Evaluator._select,
    "Fn::Split": Evaluator._split,
    "Fn::Sub": Evaluator._sub,
}
_CONDITIONS: dict[str, Callable[[Evaluator, Any], bool]] = {
    "Condition": Evaluator.condition,
    "Fn::And": lambda evaluator, operands: all(map(evaluator.holds, operands)),
    "Fn::Contains": lambda evaluator, operands: contains(*map(evaluator._value, operands)),
    "Fn::Equals": lambda evaluator, operands: eq(
        *(text_of(evaluator._value(each)) for each in operands)
    ),
    "Fn::Not": lambda evaluator, operands: not evaluator.holds(operands[0]),
    "Fn::Or": lambda evaluator, operands: any(map(evaluator.holds, operands)),
}


@contextmanager
def _in_form(what: str, has: str, them: str, got: object) -> Iterator[None]:
    """Name the function whose operands have the wrong form, or that needs too many others."""
    try:
        yield
    except (TemplateError, TemplateBudgetError):
        raise
    except RecursionError:
        raise _too_deep(what) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        functions = "condition functions" if has == "operands have" else "intrinsic functions"
        raise TemplateError(
            f"{what}: its {has} the wrong form ({error}), got {got!r:.200}; "
            f"write {them} as in CloudFormation's reference of {functions}"
        ) from error


def text_of(value: Any) -> str:
    """Return a value as CloudFormation writes it into a string."""
    return value if isinstance(value, str) else json.dumps(value)


def number_of(value: Any) -> Any:
    """Return a number, which CloudFormation also accepts as a string;
    leave other values as they are.
    """
    try:
        return parse_bounded_json(value) if isinstance(value, str) else value
    except ValueError:
        return value
