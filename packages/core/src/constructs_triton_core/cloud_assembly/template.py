"""A CloudFormation template as data: its sections, its resources, and what refers to what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from constructs_triton_core.cloud_assembly.loops import EXTENSIONS, expand_loops, has_loops
from constructs_triton_core.cloud_assembly.shapes import NUMBER, SCALAR, STRING, TEMPLATE
from constructs_triton_core.errors import TemplateError
from constructs_triton_core.untrusted.regular_files import read_json

__all__ = [
    "TRANSFORM",
    "Resource",
    "Template",
    "check_shape",
    "references",
    "substitutions",
    "value_at",
]

_SUBSTITUTION = re.compile(r"\$\{(!?)([^}]*)\}")

TRANSFORM = "Fn::Transform"
"""The function that gives a part of a template to a macro, which may change all of it."""

#: What a member of a section has, unless a transform adds it.
_NEEDED = {"Resources": "Type", "Outputs": "Value"}

_HINT = "pass a template that `npx cdk synth` wrote, such as cdk.out/Shop.template.json"


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource as declared, with its intrinsic functions."""

    logical_id: str
    type: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    condition: str | None = None
    deletion_policy: str = "Delete"
    update_replace_policy: str = "Delete"
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_declaration(cls, logical_id: str, declaration: Mapping[str, Any]) -> Resource:
        """Read a member of a template's ``Resources``."""
        if "Type" not in declaration:
            raise TemplateError(f"Resources.{logical_id}: every resource must have a Type; add it")
        given = declaration.get("DependsOn") or []
        depends_on = [given] if isinstance(given, str) else given
        check_shape(
            depends_on,
            [STRING],
            f"Resources.{logical_id}.DependsOn",
            "give logical IDs of resources",
        )
        return cls(
            logical_id=logical_id,
            type=declaration["Type"],
            properties=declaration.get("Properties") or {},
            depends_on=tuple(depends_on),
            condition=declaration.get("Condition"),
            deletion_policy=declaration.get("DeletionPolicy") or "Delete",
            update_replace_policy=declaration.get("UpdateReplacePolicy") or "Delete",
            metadata=declaration.get("Metadata") or {},
        )

    @property
    def references(self) -> set[str]:
        """The logical IDs and parameters that this resource refers to or depends on."""
        return references(self.properties) | set(self.depends_on)


class Template:
    """A template.

    ``body`` is its JSON without loops. ``unknown_parts`` names loops and transforms within it of
    which only a deployment knows what they make. ``text`` is what it was read from, if that is
    known.
    """

    def __init__(
        self, body: Mapping[str, Any], text: str = "", unknown_parts: tuple[str, ...] = ()
    ) -> None:
        self.body = body
        self.text = text
        self.unknown_parts = unknown_parts
        self._declared: Mapping[str, Any] | None = None
        """The body with its loops, if it has any."""

        self.parameters: Mapping[str, Mapping[str, Any]] = body.get("Parameters") or {}
        self.rules: Mapping[str, Any] = body.get("Rules") or {}
        self.mappings: Mapping[str, Any] = body.get("Mappings") or {}
        self.conditions: Mapping[str, Any] = body.get("Conditions") or {}
        self.outputs: Mapping[str, Any] = body.get("Outputs") or {}
        declarations = body.get("Resources") or {}
        self.resources = {
            logical_id: Resource.from_declaration(logical_id, declaration)
            for logical_id, declaration in declarations.items()
        }

    @classmethod
    def read(cls, path: Path) -> Template:
        """Read a template that ``cdk synth`` wrote.

        Raises:
            TemplateError: the file cannot be read, or a part of it has another form than in a
                template.
        """
        return cls.checked(read_checked(path, {}, _HINT), "", str(path), _HINT)

    @classmethod
    def checked(
        cls,
        body: Mapping[str, Any],
        text: str,
        where: str,
        hint: str,
        parameters: Mapping[str, str] | None = None,
    ) -> Template:
        """Return the template of a body of which nothing has been checked.

        ``parameters`` are values for its loops. Default: those of the template.

        Raises:
            TemplateError: a part of it has another form than in a template; the message has the
                place ``where`` and ``hint``.
        """
        expanded, unknown_loops = expand_loops(body, parameters)
        transforms: list[str] = []
        known = {
            name: _without_transforms(name, section, transforms)
            for name, section in expanded.items()
        }
        check_shape(known, TEMPLATE, where, hint)
        template = cls(known, text, (*unknown_loops, *transforms))
        if has_loops(body):
            template._declared = body
        return template

    def with_parameters(self, values: Mapping[str, str]) -> Template:
        """Return the template with what its loops make of the values of parameters."""
        if self._declared is None:
            return self
        return Template.checked(self._declared, self.text, "template", _HINT, values)

    @property
    def unknown_transforms(self) -> tuple[str, ...]:
        """The transforms of the template, without the one that expands loops.

        They can add resources, and read sections and keys that CloudFormation itself does not have.
        """
        given = self.body.get("Transform") or []
        transforms = given if isinstance(given, list) else [given]
        return tuple(str(transform) for transform in transforms if transform != EXTENSIONS)

    @property
    def macros(self) -> tuple[str, ...]:
        """The transforms that are none of AWS: each may change every property of the template."""
        transforms = self.unknown_transforms
        return tuple(name for name in transforms if not name.startswith("AWS::"))

    @property
    def is_complete(self) -> bool:
        """Whether CloudFormation adds nothing to the template."""
        return not self.unknown_parts and not self.unknown_transforms

    def resources_of_type(self, *types: str) -> dict[str, Resource]:
        """Return the resources of these CloudFormation types by logical ID."""
        return {
            logical_id: resource
            for logical_id, resource in self.resources.items()
            if resource.type in types
        }

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Logical IDs, each after those that it depends on, otherwise in the declared order.

        Resources that a transform may change have the declared order if they form a circle.
        """
        sorter: TopologicalSorter[str] = TopologicalSorter()
        for name, resource in self.resources.items():
            sorter.add(name, *sorted(resource.references & self.resources.keys()))
        try:
            return tuple(sorter.static_order())
        except CycleError as error:
            if self.unknown_transforms:  # a resource of SAM becomes several, without a circle
                return tuple(self.resources)
            raise TemplateError(
                f"Circular dependency between resources: {error.args[1]}; "
                "remove a reference or DependsOn"
            ) from None


def _has_transform(declared: Any) -> bool:
    """Whether a macro changes a part of a template."""
    return isinstance(declared, Mapping) and TRANSFORM in declared


def _without_transforms(name: str, section: Any, found: list[str]) -> Any:
    """Return a section without a transform of its own or of a member, and add their places.

    A resource that gets its type from a transform is left out, as is an output with its value.
    """
    if not isinstance(section, Mapping):
        return section

    needed_key = _NEEDED.get(name)
    known = {}
    for member, declared in section.items():
        if member == TRANSFORM:
            found.append(f"{name}.{TRANSFORM}")
            continue

        if needed_key is None or not _has_transform(declared):
            known[member] = declared
            continue

        found.append(f"{name}.{member}.{TRANSFORM}")
        rest = {key: value for key, value in declared.items() if key != TRANSFORM}
        if needed_key in rest:
            known[member] = rest
    return known


def read_checked(path: Path, shape: Any, hint: str) -> dict[str, Any]:
    """Read a JSON file with one object of a form. ``hint`` is what to do if that fails."""
    try:
        found = read_json(path)
    except FileNotFoundError:
        raise TemplateError(f"{path}: does not exist; {hint}") from None
    except (OSError, ValueError) as error:
        raise TemplateError(f"{path}: cannot be read as JSON ({error}); {hint}") from error
    if not isinstance(found, dict):
        raise TemplateError(
            f"{path}: must contain a JSON object, got {type(found).__name__}; {hint}"
        )
    check_shape(found, shape, str(path), hint)
    return found


def references(value: Any) -> set[str]:
    """Return the names in ``Ref``, ``Fn::GetAtt`` and ``Fn::Sub``, without pseudo parameters."""
    return {name for name in _references(value) if not name.startswith("AWS::")}


def _references(value: Any) -> Iterator[str]:
    """Yield the names that a value refers to, with pseudo parameters such as ``AWS::Region``."""
    match value:
        case {"Ref": str(name)} if len(value) == 1:
            yield name
        case {"Fn::GetAtt": str(target)} if len(value) == 1:
            yield target.split(".")[0]
        case {"Fn::GetAtt": [str(name), _]} if len(value) == 1:
            yield name
        case {"Fn::Sub": str(text)} if len(value) == 1:
            yield from _substituted(text, {})
        case {"Fn::Sub": [str(text), dict(variables)]} if len(value) == 1:
            yield from _references(variables)
            yield from _substituted(text, variables)
        case dict():
            for member in value.values():
                yield from _references(member)
        case list():
            for element in value:
                yield from _references(element)


def substitutions(text: str) -> Iterator[re.Match[str]]:
    """Yield the names in the text of ``Fn::Sub``,
    each after an exclamation mark if it is a literal.
    """
    # Behind the last brace, every beginning of a name would be searched to the end of the text.
    return _SUBSTITUTION.finditer(text, 0, text.rfind("}") + 1)


def _substituted(text: str, variables: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names in the text of ``Fn::Sub`` that are not variables of its own."""
    for substitution in substitutions(text):
        literal_mark, name = substitution.groups()
        if not literal_mark and name not in variables:
            yield name.split(".")[0]


def value_at(value: Any, path: Sequence[str]) -> Any:
    """Return what is at a path of properties; ``*`` is each element of a list."""
    if not path or value is None:
        return value

    first, rest = path[0], path[1:]
    if first == "*":
        # In place of a list, there may be a function whose value only a deployment decides.
        if not isinstance(value, list):
            return None
        return [value_at(element, rest) for element in value]

    if not isinstance(value, Mapping):
        return None
    return value_at(value.get(first), rest)


def check_shape(value: Any, shape: Any, where: str, hint: str) -> None:
    """Check the form of a value. Members that are ``None`` are as absent ones.

    Raises:
        TemplateError: it has another form; the message has the place, the form and ``hint``.
    """
    problem = next(_shape_problems(value, shape, ""), None)
    if problem is None:
        return
    if problem.place:
        where = f"{where}: {problem.place.removeprefix('.')}"
    raise TemplateError(f"{where}: must be {problem.expected}, got {problem.got!r:.100}; {hint}")


@dataclass(frozen=True, slots=True)
class _ShapeProblem:
    """A value of another form than expected; ``place`` is its path, such as ``.Outputs.Url``."""

    place: str
    expected: str
    got: Any


def _shape_problems(value: Any, shape: Any, place: str) -> Iterator[_ShapeProblem]:
    """Yield each part of a value at ``place`` that has not the form of its part of ``shape``.

    A shape is a mapping of members, a list with the shape of its elements, or the name of a
    scalar; ``shapes.py`` has those of templates.
    """
    if isinstance(shape, Mapping):
        if isinstance(value, Mapping):
            yield from _member_problems(value, shape, place)
        else:
            yield _ShapeProblem(place, "an object", value)
    elif isinstance(shape, list):
        if isinstance(value, list):
            for index, element in enumerate(value):
                yield from _shape_problems(element, shape[0], f"{place}[{index}]")
        else:
            yield _ShapeProblem(place, "a list", value)
    elif not _is_scalar(value, shape):
        yield _ShapeProblem(place, shape, value)


def _member_problems(
    members: Mapping[str, Any], shape: Mapping[str, Any], place: str
) -> Iterator[_ShapeProblem]:
    """Yield the problems of an object: those of its members, and required members without value.

    In a shape, ``*`` is every member, and a name that ends in ``!`` is required.
    """
    if "*" in shape:
        for name, member in members.items():
            yield from _shape_problems(member, shape["*"], f"{place}.{name}")
        return

    for marked_name, member_shape in shape.items():
        name = marked_name.removesuffix("!")
        member = members.get(name)
        if member is not None:
            yield from _shape_problems(member, member_shape, f"{place}.{name}")
        elif marked_name.endswith("!"):
            yield _ShapeProblem(f"{place}.{name}", "given", member)


def _is_scalar(value: Any, shape: str) -> bool:
    """Whether a value is a scalar of the kind ``shape``, or a function that may return one."""
    if isinstance(value, str):
        return shape != NUMBER or _is_number(value)
    if isinstance(value, Mapping):  # an intrinsic function whose value only a deployment decides
        return shape != STRING and len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::"))
    if isinstance(value, bool):
        return shape == SCALAR
    return isinstance(value, int | float) and shape != STRING


def _is_number(text: str) -> bool:
    """Whether a string is a finite number, which CloudFormation accepts in place of one."""
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False
