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
from constructs_triton_core.errors import TemplateError

__all__ = ["EXTENSIONS", "expand_loops"]

EXTENSIONS = "AWS::LanguageExtensions"
"""The transform that expands loops."""

_PREFIX = "Fn::ForEach::"
_CHARACTERS_PER_STEP = 50
_FORM = "write [identifier, collection, {key: value}] as in CloudFormation's reference"


def expand_loops(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return a template without its loops, and the names of those whose elements are not known.

    A template without the transform stays as it is: CloudFormation refuses its loops.

    A collection can be a list of strings, or refer to a parameter with a default value. Members of
    a loop with another collection are left out.

    Raises:
        TemplateError: a loop has another form.
        TemplateBudgetError: the loops make too much.
    """
    transforms = body.get("Transform")
    if EXTENSIONS not in (transforms if isinstance(transforms, list) else [transforms]):
        return body, ()
    expansion = _Expansion(body.get("Parameters") or {}, body.get("Mappings") or {})
    expanded = {name: expansion.value(part, {}) for name, part in body.items()}
    return expanded, tuple(expansion.unknown)


@dataclass
class _Expansion:
    """The expansion of one template."""

    parameters: Mapping[str, Any]
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
        return dict(self._members(value, elements))

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
        value = self.value(given, elements)
        match value:
            case {"Ref": str(name)} if name in self.parameters:
                value = self.parameters[name].get("Default")
                value = value.split(",") if isinstance(value, str) else value
            case {"Fn::FindInMap": [str(name), str(first), str(second)]}:
                value = self.mappings.get(name, {}).get(first, {}).get(second)
        if not isinstance(value, Sequence) or isinstance(value, str):
            return None
        texts = [each for each in value if isinstance(each, str | int)]
        return [str(each).strip() for each in texts] if len(texts) == len(value) else None

    def _text(self, text: str, elements: Mapping[str, str]) -> str:
        for identifier, element in elements.items():
            text = text.replace(f"${{{identifier}}}", element)
            text = text.replace(f"&{{{identifier}}}", re.sub("[^A-Za-z0-9]", "", element))
        self._budget.expect_text("Fn::ForEach", len(text))
        self._budget.spend(len(text) // _CHARACTERS_PER_STEP)
        return text
