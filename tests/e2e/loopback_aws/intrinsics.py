"""Resolves intrinsic functions of a template to values."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import TemplateError
from .template import Template

__all__ = ["NO_VALUE", "Resolver", "Scope"]


class _NoValue:
    """``AWS::NoValue``, which removes its property."""


NO_VALUE = _NoValue()
_SUBSTITUTION = re.compile(r"\$\{([^}]+)\}")


@dataclass
class Scope:
    """The values of names: pseudo parameters, parameters, existing resources, exports of other stacks."""

    pseudo: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    physical_ids: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    exports: Mapping[str, str] = field(default_factory=dict)
    availability_zones: Callable[[str], list[str]] | None = None
    """The Availability Zones of a Region, looked up only if a template uses them."""


class Resolver:
    """Resolves the values of one template; an unknown intrinsic function is an error."""

    def __init__(self, template: Template, scope: Scope) -> None:
        self._template = template
        self._scope = scope
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Fn::GetAtt": self._get_att,
            "Fn::Join": self._join,
            "Fn::Sub": self._sub,
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::Base64": self._base64,
            "Fn::FindInMap": self._find_in_map,
            "Fn::If": self._if,
            "Fn::ImportValue": self._import_value,
            "Fn::GetAZs": self._get_azs,
        }
        self._conditions: dict[str, Callable[[Any], bool]] = {
            "Condition": self.condition,
            "Fn::Equals": self._equals,
            "Fn::Not": lambda operands: not self.holds(operands[0]),
            "Fn::And": lambda operands: all(self.holds(each) for each in operands),
            "Fn::Or": lambda operands: any(self.holds(each) for each in operands),
            "Fn::Contains": self._contains,
        }

    def resolve(self, value: Any) -> Any:
        """The value without intrinsic functions and without members that are ``AWS::NoValue``."""
        if isinstance(value, list):
            return [each for each in map(self.resolve, value) if each is not NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, operand),) = value.items()
            if name in self._functions:
                return self._functions[name](operand)
        for name in value:
            if name.startswith("Fn::") or name == "Ref":
                raise TemplateError(f"intrinsic function {name} is not supported, got {value!r}")
        resolved = {name: self.resolve(each) for name, each in value.items()}
        return {name: each for name, each in resolved.items() if each is not NO_VALUE}

    def condition(self, name: str) -> bool:
        """Whether the condition of this name is true."""
        if name not in self._template.conditions:
            raise TemplateError(f"condition {name} is not declared")
        return self.holds(self._template.conditions[name])

    def holds(self, expression: Any) -> bool:
        """Whether a condition function is true."""
        if isinstance(expression, dict) and len(expression) == 1:
            ((name, operand),) = expression.items()
            if name in self._conditions:
                return self._conditions[name](operand)
        raise TemplateError(f"condition function is not supported, got {expression!r}")

    def _ref(self, name: str) -> Any:
        scope = self._scope
        if name == "AWS::NoValue":
            return NO_VALUE
        for names in (scope.pseudo, scope.parameters, scope.physical_ids):
            if name in names:
                return names[name]
        raise TemplateError(f"Ref: nothing is called {name}, or it was not made because of its condition")

    def _get_att(self, operand: Any) -> Any:
        name, attribute = operand.split(".", 1) if isinstance(operand, str) else operand
        attributes = self._scope.attributes.get(name)
        if attributes is None:
            raise TemplateError(f"Fn::GetAtt: no resource is called {name}")
        if attribute not in attributes:
            raise TemplateError(f"Fn::GetAtt: {name} has no attribute {attribute}, only {sorted(attributes)}")
        return attributes[attribute]

    def _join(self, operand: Any) -> str:
        separator, parts = operand
        return str(separator).join(str(part) for part in self.resolve(parts))

    def _sub(self, operand: Any) -> str:
        text, variables = (operand, {}) if isinstance(operand, str) else operand

        def substitute(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("!"):
                return "${" + name[1:] + "}"
            if name in variables:
                return str(self.resolve(variables[name]))
            return str(self._get_att(name) if "." in name else self._ref(name))

        return _SUBSTITUTION.sub(substitute, text)

    def _select(self, operand: Any) -> Any:
        index, values = int(self.resolve(operand[0])), self.resolve(operand[1])
        if not 0 <= index < len(values):
            raise TemplateError(f"Fn::Select: no element {index} in {values!r}")
        return values[index]

    def _split(self, operand: Any) -> list[str]:
        return str(self.resolve(operand[1])).split(operand[0])

    def _base64(self, operand: Any) -> str:
        return base64.b64encode(str(self.resolve(operand)).encode()).decode()

    def _find_in_map(self, operand: Any) -> Any:
        mapping, first, second = (self.resolve(each) for each in operand[:3])
        try:
            return self._template.mappings[mapping][first][second]
        except KeyError:
            raise TemplateError(f"Fn::FindInMap: no entry {mapping}.{first}.{second}") from None

    def _if(self, operand: Any) -> Any:
        name, positive, negative = operand
        return self.resolve(positive if self.condition(name) else negative)

    def _import_value(self, operand: Any) -> str:
        name = self.resolve(operand)
        if name not in self._scope.exports:
            raise TemplateError(f"No export named {name} found")
        return self._scope.exports[name]

    def _get_azs(self, operand: Any) -> list[str]:
        region = self.resolve(operand) or self._ref("AWS::Region")
        if self._scope.availability_zones is None:
            raise TemplateError(f"Fn::GetAZs: the zones of {region} are not known here")
        return self._scope.availability_zones(region)

    def _equals(self, operands: Any) -> bool:
        first, second = (self.resolve(each) for each in operands)
        return str(first) == str(second)

    def _contains(self, operands: Any) -> bool:
        values, value = (self.resolve(each) for each in operands)
        return value in values
