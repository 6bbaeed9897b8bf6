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

    given = given or {}
    declared = body.get("Parameters") or {}
    values = {
        name: _value_of(declaration, given.get(name)) for name, declaration in declared.items()
    }
    expansion = _Expansion(values, body.get("Mappings") or {})
    expanded = {name: expansion.value(section, {}) for name, section in body.items()}
    return expanded, tuple(expansion.unknown)


def has_loops(body: Mapping[str, Any]) -> bool:
    """Return whether CloudFormation expands the loops of a template."""
    declared = body.get("Transform")
    transforms = declared if isinstance(declared, list) else [declared]
    return EXTENSIONS in transforms


def _value_of(declaration: Any, given: str | None) -> Any:
    """The value of a parameter: a string, a list of strings, or ``None`` if it is not known.

    The value of a parameter of Systems Manager is a name there, and only AWS knows what it has.
    """
    if not isinstance(declaration, Mapping) or isinstance(given, Unknown):
        return None
    type_name = str(declaration.get("Type"))
    value = declaration.get("Default") if given is None else given
    if type_name.startswith(_STORED) or value is None:
        return None
    if type_name == "CommaDelimitedList" or type_name.startswith("List<"):
        return str(value).split(",")
    return str(value)


@dataclass
class _Expansion:
    """The expansion of one template.

    ``elements`` in its methods are the elements of the loops around a value, by identifier.
    ``unknown`` collects the names of loops whose elements only a deployment knows.
    """

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
            return [self.value(element, elements) for element in value]
        if not isinstance(value, dict):
            return value
        reference = value.get("Ref")
        if len(value) == 1 and isinstance(reference, str) and reference in elements:
            return elements[reference]
        return self._with_texts(dict(self._members(value, elements)))

    def _with_texts(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return a reference whose name a function makes, or a policy, with its text.

        The transform takes functions in ``Ref``, ``Fn::GetAtt`` and the policies of a resource
        (template reference, "AWS::LanguageExtensions transform").
        """
        match value:
            case {"Ref": dict(name)} if len(value) == 1:
                return {"Ref": self._text_of_function(name)}
            case {"Fn::GetAtt": [name, attribute]} if len(value) == 1:
                target = [self._text_of_function(name), self._text_of_function(attribute)]
                return {"Fn::GetAtt": target}
            case {"Type": str(), **_others}:
                with_policies = dict(value)
                for name in _POLICIES:
                    if name in value:
                        with_policies[name] = self._text_of_function(value[name])
                return with_policies
        return value

    def _text_of_function(self, value: Any) -> Any:
        """Return the text that a function makes of what is known; otherwise the function."""
        match value:
            case {"Ref": str(name)} if isinstance(self.parameters.get(name), str):
                return self.parameters[name]
            case {"Fn::Sub": str(text)} if "${" not in text:
                return text
            case {"Fn::Join": [str(separator), list(parts)]}:
                texts = [self._text_of_function(part) for part in parts]
                if all(isinstance(text, str) for text in texts):
                    return separator.join(texts)
            case {"Fn::FindInMap": [str(name), *keys]} if len(keys) == 2:
                first, second = map(self._text_of_function, keys)
                if isinstance(first, str) and isinstance(second, str):
                    return self.mappings.get(name, {}).get(first, {}).get(second, value)
        return value

    def _members(
        self, members: Mapping[str, Any], elements: Mapping[str, str]
    ) -> Iterator[tuple[str, Any]]:
        """Yield the members of an object, and in place of each loop those that it makes."""
        for name, member in members.items():
            if name.startswith(_PREFIX):
                yield from self._loop(name, member, elements)
            else:
                yield self._text(name, elements), self.value(member, elements)

    def _loop(self, name: str, loop: Any, elements: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
        """Yield the members that a loop makes, or note its name if its elements are not known.

        Raises:
            TemplateError: the loop has another form.
        """
        match loop:
            case [str(identifier), collection, dict(members)]:
                pass
            case _:
                raise TemplateError(f"{name}: has the wrong form, got {loop!r:.100}; {_FORM}")

        collected = self._collection(collection, elements)
        if collected is None:
            self.unknown.append(name)
            return
        for element in collected:
            yield from self._members(members, {**elements, identifier: element})

    def _collection(self, given: Any, elements: Mapping[str, str]) -> list[str] | None:
        """Return the elements of a loop, or ``None`` if only a deployment knows them."""
        value = self._known(self.value(given, elements))
        match value:
            case {"Fn::FindInMap": [str(name), str(first), str(second)]}:
                value = self.mappings.get(name, {}).get(first, {}).get(second)
        if not isinstance(value, Sequence) or isinstance(value, str):
            return None
        if not all(isinstance(element, str | int) for element in value):
            return None
        return [str(element).strip() for element in value]

    def _known(self, value: Any) -> Any:
        """Return a value in which references to parameters are replaced by their values."""
        match value:
            case {"Ref": str(name)}:
                return self.parameters.get(name)
            case {"Fn::FindInMap": list(keys)}:
                return {"Fn::FindInMap": [self._known(key) for key in keys]}
            case list():
                return [self._known(element) for element in value]
        return value

    def _text(self, text: str, elements: Mapping[str, str]) -> str:
        """Return a string in which identifiers are replaced by the elements of their loops."""
        for identifier, element in elements.items():
            text = text.replace(f"${{{identifier}}}", element)
            text = text.replace(f"&{{{identifier}}}", re.sub("[^A-Za-z0-9]", "", element))
        self._budget.expect_text("Fn::ForEach", len(text))
        self._budget.spend(len(text) // _CHARACTERS_PER_STEP)
        return text
