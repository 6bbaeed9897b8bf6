"""Evaluates CloudFormation's intrinsic functions and conditions.

What only a deployment decides comes from a ``Resolver``: placeholders if nothing is deployed, the
values of a simulated account in a rehearsal.

A value may be unknown: then so is what is made of it. A condition that compares an unknown value
is false, so that of two conditions that exclude each other one is true.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.cloud_assembly.address_blocks import address_blocks
from constructs_triton_core.cloud_assembly.evaluation_budget import (
    EvaluationBudget,
    Results,
    TemplateBudgetError,
    too_deep,
)
from constructs_triton_core.cloud_assembly.template import TRANSFORM, Template, substitutions
from constructs_triton_core.cloud_assembly.unknown_values import (
    Unknown,
    UnknownList,
    contains_unknown,
    is_unknown,
    like,
    text_of,
)
from constructs_triton_core.errors import TemplateError

__all__ = ["EvaluationBudget", "Evaluator", "TemplateBudgetError", "number_of", "text_of"]

_NO_VALUE: Final = object()
"""``AWS::NoValue``, which removes its property or element."""


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
    """Evaluates the values of one template.

    Args:
        template: The template.
        resolver: The values of its names, which must stay the same.
        budget: That of all evaluators of one operation. Default: one of its own.
        unknown_function: Returns the value of an intrinsic function that is not supported, by its
            name and all that is beside it. Default: such a function is an error.
    """

    def __init__(
        self,
        template: Template,
        resolver: Resolver,
        budget: EvaluationBudget | None = None,
        unknown_function: Callable[[str, Any], Unknown] | None = None,
    ) -> None:
        self.template = template
        self.resolver = resolver
        self.assumed: set[str] = set()
        """The conditions that compare an unknown value, and are assumed to be false there."""
        self._comparisons = 0
        self._unknown_function = unknown_function
        self._budget = budget or EvaluationBudget()
        self._results = Results(self._budget)

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
            if self._unknown_function is not None and not self.template.is_complete:
                return self._assume_false()
            raise TemplateError(f"condition {name}: is not declared; add it to Conditions")
        is_true = self._results.of(f"condition {name}", name, lambda: self._declared(name))
        if name in self.assumed:  # also a condition that was evaluated before
            self._comparisons += 1
        return bool(is_true)

    def _declared(self, name: str) -> bool:
        before = self._comparisons
        is_true = self.holds(self.template.conditions[name])
        if self._comparisons > before:
            self.assumed.add(name)
        return is_true

    def holds(self, expression: Any) -> bool:
        """Return whether a condition function is true."""
        self._budget.spend(1)
        if isinstance(expression, Mapping) and len(expression) == 1:
            ((name, operand),) = expression.items()
            if name in _CONDITIONS:
                return self._hold(name, operand)
            if self._unknown_function is not None:
                self._unknown_function(name, operand)
                return self._assume_false()
        raise TemplateError(
            f"condition function is not supported, got {expression!r:.200}; "
            f"use one of {', '.join(_CONDITIONS)}"
        )

    def refutes(self, expression: Any) -> bool:
        """Return whether a condition function is false, whatever the unknown values are."""
        before = self._comparisons
        is_true = self.holds(expression)
        return not is_true and self._comparisons == before

    def _hold(self, name: str, operand: Any) -> bool:
        """Whether a condition function is true for an operand."""
        with _in_form(f"condition function {name}", "operands have", "them", operand):
            return _CONDITIONS[name](self, operand)

    def _value(self, value: Any) -> Any:
        return self._walk(value, self._call)

    def _walk(self, value: Any, call: Callable[[dict[str, Any]], Any]) -> Any:
        """Return a value in which ``call`` has replaced each function by its result."""
        if is_unknown(value):
            return value
        if isinstance(value, list):
            self._budget.spend(len(value))
            elements = [self._walk(element, call) for element in value]
            return [element for element in elements if element is not _NO_VALUE]
        if not isinstance(value, dict):
            return value
        if any(name == "Ref" or name.startswith("Fn::") for name in value):
            return call(value)

        self._budget.spend(len(value))
        properties = {name: self._walk(given, call) for name, given in value.items()}
        return {name: found for name, found in properties.items() if found is not _NO_VALUE}

    def _call(self, value: dict[str, Any]) -> Any:
        """Return the result of an intrinsic function.

        Raises:
            TemplateError: the function is not known, or its argument has another form.
        """
        if TRANSFORM in value and self._unknown_function is not None:
            # A macro gets what is beside it, and may change all of it.
            return self._unknown_function(TRANSFORM, value)

        name, argument = next(iter(value.items()))
        if len(value) == 1 and name not in _FUNCTIONS and self._unknown_function is not None:
            return self._unknown_function(name, value)
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

    def _ref(self, given: Any) -> Any:
        name = self._value(given)
        if isinstance(name, Unknown):
            return name
        if name == "AWS::NoValue":
            return _NO_VALUE
        return self.resolver.ref(name)

    def _get_att(self, argument: Any) -> Any:
        logical_id, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        name = self._value(logical_id)  # a function, with the transform AWS::LanguageExtensions
        if contains_unknown([name]):
            return Unknown(f"{name}-{attribute}")
        return self.resolver.get_att(name, self._value(attribute))

    def _sub(self, argument: Any) -> str:
        text, variables = (argument, {}) if isinstance(argument, str) else argument
        pieces: list[str] = []
        length = 0
        end = 0
        for match in substitutions(text):
            substituted = self._substituted(match, variables)
            pieces.append(text[end : match.start()])
            pieces.append(substituted)
            end = match.end()

            # A value may be long, and a template may name it many times.
            length += len(substituted)
            self._budget.spend(1)
            self._budget.expect_text("Fn::Sub", length)
        return like(pieces, "".join([*pieces, text[end:]]))

    def _substituted(self, match: re.Match[str], variables: Mapping[str, Any]) -> str:
        literal, name = match.groups()
        if literal:
            return f"${{{name}}}"
        if name in variables:
            return text_of(self._value(variables[name]))
        return text_of(self._get_att(name) if "." in name else self._ref(name))

    def _join(self, argument: Any) -> str:
        separator, given = argument
        values = self._value(given)
        if isinstance(values, Unknown):
            return values

        parts = [text_of(value) for value in values]
        between = len(str(separator)) * max(0, len(parts) - 1)
        self._budget.expect_text("Fn::Join", sum(map(len, parts)) + between)
        return like(values, str(separator).join(parts))

    def _split(self, argument: Any) -> list[str]:
        separator, given = argument
        text = text_of(self._value(given))
        if isinstance(text, Unknown):
            return text.split_at(separator)
        return text.split(separator)

    def _select(self, argument: Any) -> Any:
        given = self._value(argument[0])
        values = self._value(argument[1])
        if isinstance(given, Unknown):
            return Unknown(given)

        index = int(given)
        if isinstance(values, Unknown):
            values = UnknownList(values, [values])
        if isinstance(values, UnknownList):
            return values.element(index)
        if not 0 <= index < len(values):
            raise TemplateError(
                f"Fn::Select: the list has no element {index}, got {values!r:.200}; "
                "change the index or the list"
            )
        return values[index]

    def _find_in_map(self, argument: Any) -> Any:
        name, first, second = [self._value(key) for key in argument[:3]]
        if contains_unknown([name, first, second]):
            return Unknown(f"{first}-{second}")
        try:
            return self.template.mappings[name][first][second]
        except KeyError:
            if len(argument) > 3 and "DefaultValue" in argument[3]:
                return self._value(argument[3]["DefaultValue"])
            if self._unknown_function is not None and not self.template.is_complete:
                return Unknown(f"{first}-{second}")
            raise TemplateError(
                f"Fn::FindInMap: mapping {name} has no entry for {first!r}, {second!r}; "
                "set the stack's env to a Region of the mapping"
            ) from None

    def _if(self, argument: Any) -> Any:
        name, then, otherwise = argument
        chosen = self._value(then if self.condition(name) else otherwise)
        is_certain = name not in self.assumed or then == otherwise
        if is_certain or not isinstance(chosen, str):
            return chosen
        return Unknown(chosen)

    def _cidr(self, argument: Any) -> list[str]:
        given = [self._value(part) for part in argument]
        block, count, *bits = given
        # CloudFormation's reference has no default for the third argument.
        if contains_unknown(given) or not bits:
            return UnknownList(str(block), [str(block)])
        return address_blocks(block, int(count), int(bits[0]))

    def _length(self, argument: Any) -> Any:
        values = self._value(argument)
        return Unknown(1) if is_unknown(values) else len(values)

    def _to_json_string(self, argument: Any) -> str:
        value = self._value(argument)
        return like(value, json.dumps(value, separators=(",", ":")))

    def _to_base64(self, argument: Any) -> str:
        text = text_of(self._value(argument))
        return like(text, b64encode(text.encode()).decode())

    def _equals(self, operands: Any) -> bool:
        first, second = [text_of(self._value(operand)) for operand in operands]
        if first == second:
            return True
        if contains_unknown([first, second]):
            return self._assume_false()
        return False

    def _contains(self, operands: Any) -> bool:
        values, value = [self._value(operand) for operand in operands]
        if not isinstance(values, Unknown) and value in values:
            return True
        if contains_unknown([values, value]):
            return self._assume_false()
        return False

    def _each_member_in(self, operands: Any) -> bool:
        members, values = [self._value(operand) for operand in operands]
        return all(self._contains([values, member]) for member in members)

    def _each_member_equals(self, operands: Any) -> bool:
        members, value = [self._value(operand) for operand in operands]
        return all(self._equals([member, value]) for member in members)

    def _assume_false(self) -> bool:
        """Return the assumed result of a comparison with an unknown value, and note it."""
        self._comparisons += 1
        return False

    def _get_stack_output(self, argument: Any) -> Any:
        given = self._value(argument)
        return self.resolver.stack_output(
            given["StackName"], given["OutputName"], given.get("Region")
        )

    def _get_azs(self, argument: Any) -> list[str]:
        region = self._value(argument) or self._ref("AWS::Region")
        if isinstance(region, Unknown):
            return UnknownList(region, [region])
        zones = self.resolver.availability_zones(region)
        if isinstance(zones, UnknownList):
            return zones
        return list(zones)


_FUNCTIONS: dict[str, Callable[[Evaluator, Any], Any]] = {
    "Ref": Evaluator._ref,
    "Fn::Base64": Evaluator._to_base64,
    "Fn::Cidr": Evaluator._cidr,
    "Fn::FindInMap": Evaluator._find_in_map,
    "Fn::GetAtt": Evaluator._get_att,
    "Fn::GetAZs": Evaluator._get_azs,
    "Fn::GetStackOutput": Evaluator._get_stack_output,
    "Fn::If": Evaluator._if,
    "Fn::ImportValue": lambda evaluator, name: evaluator.resolver.import_value(
        evaluator._value(name)
    ),
    "Fn::Join": Evaluator._join,
    "Fn::Length": Evaluator._length,
    "Fn::Select": Evaluator._select,
    "Fn::Split": Evaluator._split,
    "Fn::Sub": Evaluator._sub,
    "Fn::ToJsonString": Evaluator._to_json_string,
}
_CONDITIONS: dict[str, Callable[[Evaluator, Any], bool]] = {
    "Condition": Evaluator.condition,
    "Fn::And": lambda evaluator, operands: all(map(evaluator.holds, operands)),
    "Fn::Contains": Evaluator._contains,
    "Fn::EachMemberEquals": Evaluator._each_member_equals,
    "Fn::EachMemberIn": Evaluator._each_member_in,
    "Fn::Equals": Evaluator._equals,
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
        raise too_deep(what) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        functions = "condition functions" if has == "operands have" else "intrinsic functions"
        raise TemplateError(
            f"{what}: its {has} the wrong form ({error}), got {got!r:.200}; "
            f"write {them} as in CloudFormation's reference of {functions}"
        ) from error


def number_of(value: Any) -> Any:
    """Return a number, which CloudFormation also accepts as a string;
    leave other values as they are.
    """
    try:
        return parse_bounded_json(value) if isinstance(value, str) else value
    except ValueError:
        return value
