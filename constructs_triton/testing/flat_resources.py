"""The resources of a stack and of its nested stacks as one set, so that two versions compare.

A resource of a nested stack has the name ``Nested/Resource``. What a parent passes to a parameter,
and what a nested stack returns as an output, is replaced by the expression that it stands for:
CloudFormation replaces a resource if the value of such a property changes, wherever the value
comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from constructs_triton.testing.stable_templates import NESTED_TEMPLATE
from constructs_triton_core.cloud_assembly.synthesized_stack import (
    NESTED_STACK_TYPE,
    SynthesizedStack,
)
from constructs_triton_core.cloud_assembly.template import Template, substitutions

Resources = Mapping[str, Any]


@dataclass(frozen=True)
class FlatResources:
    """Resources by their names.

    ``absent`` has the condition of each resource that is declared but does not exist, because its
    condition is false. ``unread`` has the address of each nested stack whose template is not known.
    """

    existing: dict[str, Any] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    unread: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, template: Mapping[str, Any]) -> FlatResources:
        """Return the resources of a stable template."""
        found = cls()
        _Scope(template, found).collect()
        return found

    @classmethod
    def of_app(cls, templates: Mapping[str, Mapping[str, Any]]) -> FlatResources:
        """Return the resources of the stacks of an app, each name after the ID of its stack."""
        found = cls()
        for stack, template in templates.items():
            _Scope(template, found, f"{stack}/").collect()
        return found


@dataclass(frozen=True)
class _Scope:
    """One template. ``prefix`` is put before each name.

    ``passed`` are the expressions of the parameters of a nested stack.
    """

    template: Mapping[str, Any]
    found: FlatResources
    prefix: str = ""
    passed: Mapping[str, Any] | None = None

    def collect(self) -> None:
        """Add the resources of the template, and of the stacks that are nested in it."""
        for name, resource in self._resources.items():
            declared = {key: value for key, value in resource.items() if key != NESTED_TEMPLATE}
            self.found.existing[f"{self.prefix}{name}"] = self._scoped(declared)

        stack = SynthesizedStack("template", Template(self.template), parameters=self._known)
        _leave_out_absent(self.found, stack, self.prefix)

        for name, resource in self._resources.items():
            if resource.get("Type") != NESTED_STACK_TYPE:
                continue
            if f"{self.prefix}{name}" in self.found.absent:
                continue
            nested = self._nested(name)
            if nested is None:
                properties = resource.get("Properties") or {}
                self.found.unread[f"{self.prefix}{name}"] = properties.get("TemplateURL")
            else:
                nested.collect()

    @property
    def _resources(self) -> Resources:
        found: Resources = self.template.get("Resources") or {}
        return found

    @property
    def _known(self) -> dict[str, Any]:
        """The parameters whose values are known: no expression that AWS evaluates."""
        passed = self.passed or {}
        return {name: value for name, value in passed.items() if not isinstance(value, dict)}

    def _nested(self, name: str) -> _Scope | None:
        """Return the template of a nested stack; ``None`` if it is not known."""
        resource = self._resources.get(name, {})
        template = resource.get(NESTED_TEMPLATE)
        if resource.get("Type") != NESTED_STACK_TYPE or template is None:
            return None
        given = (resource.get("Properties") or {}).get("Parameters") or {}
        passed = {parameter: self._scoped(value) for parameter, value in given.items()}
        return _Scope(template, self.found, f"{self.prefix}{name}/", passed)

    def _scoped(self, value: Any) -> Any:
        """Return a value in which each reference has the name that it has among all resources."""
        if isinstance(value, list):
            return [self._scoped(item) for item in value]
        if not isinstance(value, dict):
            return value
        referred = self._function(value) if len(value) == 1 else None
        return referred or {key: self._scoped(member) for key, member in value.items()}

    def _function(self, value: Mapping[str, Any]) -> Any:
        """Return what a reference stands for; ``None`` for another value."""
        match value:
            case {"Ref": str(name)}:
                return self._referred(name)
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return self._attribute(name, attribute)
            case {"Fn::GetAtt": str(target)}:
                name, _, attribute = target.partition(".")
                return self._attribute(name, attribute)
            case {"Fn::Sub": str(text)}:
                return self._substituted(text, {})
            case {"Fn::Sub": [str(text), dict(variables)]}:
                return self._substituted(text, variables)
        return None

    def _referred(self, name: str) -> Any:
        """Return what ``Ref`` of this name stands for."""
        if name in self._resources:
            return {"Ref": f"{self.prefix}{name}"}
        if self.passed is None:
            return {"Ref": name}
        if name in self.passed:
            return self.passed[name]
        # A nested stack takes a new default. An update of another stack keeps the value it has.
        declared = (self.template.get("Parameters") or {}).get(name) or {}
        return declared.get("Default", {"Ref": name})

    def _attribute(self, name: str, attribute: str) -> Any:
        """Return what ``Fn::GetAtt`` stands for: of a nested stack, the value of its output."""
        nested = self._nested(name)
        kind, _, output = attribute.partition(".")
        if nested is not None and kind == "Outputs":
            declared = (nested.template.get("Outputs") or {}).get(output) or {}
            return nested._scoped(declared.get("Value"))
        return {"Fn::GetAtt": [f"{self.prefix}{name}", attribute]}

    def _substituted(self, text: str, variables: Mapping[str, Any]) -> Any:
        """Return ``Fn::Sub`` with each reference of its text as a variable."""
        values = {name: self._scoped(value) for name, value in variables.items()}
        for substitution in substitutions(text):
            literal, name = substitution.groups()
            if literal or name in values:
                continue
            target, _, attribute = name.partition(".")
            if attribute:
                values[name] = self._attribute(target, attribute)
            else:
                values[name] = self._referred(target)
        return {"Fn::Sub": [text, values]}


def _leave_out_absent(found: FlatResources, stack: SynthesizedStack, prefix: str) -> None:
    """Move the resources whose condition is false to the absent ones."""
    resources = stack.template.resources
    types = {resource.type for resource in resources.values()}
    created = set(stack.created(*types)) if types else set()
    for name, resource in resources.items():
        if name not in created:
            found.existing.pop(f"{prefix}{name}", None)
            found.absent[f"{prefix}{name}"] = resource.condition or ""
