"""Expands ``Fn::ForEach`` of a template, as the transform ``AWS::LanguageExtensions`` does in AWS.

A loop is ``"Fn::ForEach::Name": [identifier, collection, {key: value}]`` among other members.
``${identifier}`` is the element in its keys and values, and ``&{identifier}`` the letters and
digits of the element. Source: template reference, "Fn::ForEach".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from constructs_triton_core.cloud_assembly.evaluation_budget import EvaluationBudget
from constructs_triton_core.cloud_assembly.unknown_values import Unknown
from constructs_triton_core.errors import TemplateError

__all__ = ["EXTENSIONS", "expand_loops", "has_loops"]

EXTENSIONS = "AWS::LanguageExtensions"
"""The transform that expands loops."""

_PREFIX = "Fn::ForEach::"
_POLICIES = ("DeletionPolicy", "UpdateReplacePolicy")
_STORED = "AWS::SSM::Parameter::Value<"
_CHARACTERS_PER_STEP = 50
_FORM = "write [identifier, collection, {key: value}] as in CloudFormation's reference"


def expand_loops(
    body: Mapping[str, Any], given: Mapping[str, str] | None = None
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return a template without its loops, and the names of those whose elements are not known.

    A template without the transform stays as it is: CloudFormation refuses its loops.

    A collection can be a list of strings, or refer to a parameter. Members of a loop with another
    collection are left out.

    Args:
        body: The template.
        given: Values of its parameters. Default: their default values.

    Raises:
        TemplateError: a loop has another form.
        TemplateBudgetError: the loops make too much.
    """
    if not has_loops(body):
        return body, ()
    declared = body.get("Parameters") or {}
    values = {name: _value_of(each, (given or {}).get(name)) for name, each in declared.items()}
    expansion = _Expansion(values, body.get("Mappings") or {})
    expanded = {name: expansion.value(part, {}) for name, part in body.items()}
    return expanded, tuple(expansion.unknown)


def has_loops(body: Mapping[str, Any]) -> bool:
    """Return whether CloudFormation expands the loops of a template."""
    transforms = body.get("Transform")
    return EXTENSIONS in (transforms if isinstance(transforms, list) else [transforms])


def _value_of(declaration: Any, given: str | None) -> Any:
    """The value of a parameter: a string, a list of strings, or ``None`` if it is not known.

    The value of a parameter of Systems Manager is a name there, and only AWS knows what it has.
    """
    if not isinstance(declaration, Mapping) or isinstance(given, Unknown):
        return None
    kind = str(declaration.get("Type"))
    value = declaration.get("Default") if given is None else given
    if kind.startswith(_STORED) or value is None:
        return None
    if kind == "CommaDelimitedList" or kind.startswith("List<"):
        return str(value).split(",")
    return str(value)


@dataclass
class _Expansion:
    """The expansion of one template."""

    parameters: Mapping[str, str | list[str] | None]
    mappings: Mapping[str, Any]
    unknown: list[str] = field(default_factory=list)
    _budget: EvaluationBudget = field(default_factory=EvaluationBudget)

    def value(self, value: Any, elements: Mapping[str, str]) -> Any:
        """Return a value in which identifiers are replaced by the elements of their loops."""
        self._budget.spend(1)
        if isinstance(value, str):
            return self._text(value, elements)
        if isinstance(value, list):
            return [self.value(each, elements) for each in value]
        if not isinstance(value, dict):
            return value
        reference = value.get("Ref")
        if len(value) == 1 and isinstance(reference, str) and reference in elements:
            return elements[reference]
        return self._named(dict(self._members(value, elements)))

    def _named(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return a reference whose name a function makes, or a policy, with its text.

        The transform takes functions in ``Ref``, ``Fn::GetAtt`` and the policies of a resource
        (template reference, "AWS::LanguageExtensions transform").
        """
        match value:
            case {"Ref": dict(name)} if len(value) == 1:
                return {"Ref": self._made(name)}
            case {"Fn::GetAtt": [name, attribute]} if len(value) == 1:
                return {"Fn::GetAtt": [self._made(name), self._made(attribute)]}
            case {"Type": str(), **_others}:
                return {
                    name: self._made(each) if name in _POLICIES else each
                    for name, each in value.items()
                }
        return value

    def _made(self, value: Any) -> Any:
        """Return the text that a function makes of what is known; otherwise the function."""
        match value:
            case {"Ref": str(name)} if isinstance(self.parameters.get(name), str):
                return self.parameters[name]
            case {"Fn::Sub": str(text)} if "${" not in text:
                return text
            case {"Fn::Join": [str(separator), list(parts)]}:
                made = [self._made(each) for each in parts]
                known = all(isinstance(each, str) for each in made)
                return separator.join(made) if known else value
            case {"Fn::FindInMap": [str(name), *keys]} if len(keys) == 2:
                first, second = map(self._made, keys)
                if isinstance(first, str) and isinstance(second, str):
                    return self.mappings.get(name, {}).get(first, {}).get(second, value)
        return value

    def _members(
        self, value: Mapping[str, Any], elements: Mapping[str, str]
    ) -> Iterator[tuple[str, Any]]:
        for name, each in value.items():
            if name.startswith(_PREFIX):
                yield from self._loop(name, each, elements)
            else:
                yield self._text(name, elements), self.value(each, elements)

    def _loop(self, name: str, loop: Any, elements: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
        match loop:
            case [str(identifier), collection, dict(members)]:
                pass
            case _:
                raise TemplateError(f"{name}: has the wrong form, got {loop!r:.100}; {_FORM}")

        found = self._collection(collection, elements)
        if found is None:
            self.unknown.append(name)
            return
        for element in found:
            yield from self._members(members, {**elements, identifier: element})

    def _collection(self, given: Any, elements: Mapping[str, str]) -> list[str] | None:
        """Return the elements of a loop, or ``None`` if only a deployment knows them."""
        value = self._known(self.value(given, elements))
        match value:
            case {"Fn::FindInMap": [str(name), str(first), str(second)]}:
                value = self.mappings.get(name, {}).get(first, {}).get(second)
        if not isinstance(value, Sequence) or isinstance(value, str):
            return None
        texts = [each for each in value if isinstance(each, str | int)]
        return [str(each).strip() for each in texts] if len(texts) == len(value) else None

    def _known(self, value: Any) -> Any:
        """Return a value in which references to parameters are replaced by their values."""
        match value:
            case {"Ref": str(name)}:
                return self.parameters.get(name)
            case {"Fn::FindInMap": list(keys)}:
                return {"Fn::FindInMap": [self._known(each) for each in keys]}
            case list():
                return [self._known(each) for each in value]
        return value

    def _text(self, text: str, elements: Mapping[str, str]) -> str:
        for identifier, element in elements.items():
            text = text.replace(f"${{{identifier}}}", element)
            text = text.replace(f"&{{{identifier}}}", re.sub("[^A-Za-z0-9]", "", element))
        self._budget.expect_text("Fn::ForEach", len(text))
        self._budget.spend(len(text) // _CHARACTERS_PER_STEP)
        return text
