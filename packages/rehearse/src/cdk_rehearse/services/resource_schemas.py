"""CloudFormation's resource schemas, from cfn-lint: properties, types, what causes a replacement.

They are read as data, without importing cfn-lint, which takes seconds.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from constructs_triton_core.cloud_assembly.template import value_at
from constructs_triton_core.errors import MissingDependencyError
from constructs_triton_core.spelling import is_misspelling

from ..errors import TemplateError
from ..values.stand_ins import is_opaque
from .conditional_replacements import replaces
from .patterns_of_aws import PatternError, is_match

BOOLEANS = ("true", "false", "True", "False")
"""The strings that CloudFormation accepts as booleans, as cfn-lint's rule E3012 knows them."""

_REGION = "us-east-1"
#: What the schemas lack.
_REQUIRED = json.loads(Path(__file__).with_name("required.json").read_text())
#: Types of the CDK, and of the transform of SAM, which AWS replaces by others.
_WITHOUT_SCHEMA = ("AWS::CDK::", "AWS::Serverless::")
_DRAFT = jsonschema.Draft7Validator.VALIDATORS
#: What jsonschema cannot read in patterns of names, such as the keys of tags.
_CLASSES = {
    r"||\\p": r"\\p",
    r"\\p{L}": r"\\w",
    r"\\p{Z}": r"\\s",
    r"\\p{N}": r"\\d",
    "*)${1,": "*){1,",
}
_CLASSES |= dict.fromkeys((r"\\p{M}", r"\\p{S}", r"\\p{P}"), r"\\W")
#: Their attributes are outputs of a template, or what a function responds.
_OPEN = ("AWS::CloudFormation::Stack", "AWS::CloudFormation::CustomResource")
#: The schemas call it conditional, but UpdateTable cannot change it, and change sets show a
#: replacement.
_REPLACING = {"AWS::DynamoDB::Table": ("KeySchema",), "AWS::DynamoDB::GlobalTable": ("KeySchema",)}


@dataclass(frozen=True)
class ResourceSchema:
    """The schema of one resource type."""

    type: str
    body: Mapping[str, Any]

    @property
    def read_only(self) -> set[str]:
        """Properties that are attributes only: a template cannot set them."""
        return {path[0] for path in self._paths("readOnlyProperties") if len(path) == 1}

    @cached_property
    def identifying(self) -> tuple[list[tuple[str, ...]], int]:
        """The properties that identify a resource, and how many of them, from the first, must be
        given.

        They are the primary identifier. If the service makes an ARN or URL of a name, they are this
        name, ``QueueName`` of a queue or ``Name``, and what it is unique within.
        """
        identifier = self._paths("primaryIdentifier")
        created = self._paths("createOnlyProperties")
        settable = [path for path in identifier if path[0] not in self.read_only]
        if len(settable) == len(identifier):
            return settable, len(settable)

        generated = [path[0] for path in identifier if path not in settable]
        is_address = all(member.upper().endswith(("ARN", "URL")) for member in generated)
        for name in ((f"{self.type.rpartition('::')[2]}Name",), ("Name",)):
            if name in created and (is_address or name in settable):
                required = {(member,) for member in self.body.get("required", ())}
                others = {*settable, *required.intersection(created)} - {name}
                return [name, *sorted(others)], 1
        return [], 0

    @property
    def generated_identifier(self) -> str:
        """The attribute that ``Ref`` returns if the service generates it; otherwise empty.

        It is the only part of the primary identifier that a template cannot set, such as the ID of
        a resource within an API.
        """
        identifier = self._paths("primaryIdentifier")
        generated = [path[0] for path in identifier if path[0] in self.read_only]
        return generated[0] if len(generated) == 1 else ""

    def form_of(self, attribute: str) -> tuple[str, str]:
        """The type of an attribute and its format, both empty if the schema does not say them.

        The format can be the attribute of another type, such as ``AWS::EC2::SecurityGroup.Id``.
        """
        found: Mapping[str, Any] = self.body
        for name in attribute.split("."):
            found = (found.get("properties") or {}).get(name) or {}
            if "$ref" in found:
                definition = found["$ref"].rpartition("/")[2]
                found = self.body.get("definitions", {}).get(definition) or {}

        value_type = found.get("type", "")
        if not isinstance(value_type, str):  # it may have one of several
            value_type = ""
        return value_type, found.get("format", "")

    @property
    def tag_property(self) -> str:
        """The property that contains the tags."""
        path: str = self.body.get("tagging", {}).get("tagProperty", "/properties/Tags")
        return path.split("/")[2]

    @property
    def attributes(self) -> frozenset[str] | None:
        """The names of ``Fn::GetAtt``; ``None`` if any name may be one.

        The schema does not list the properties that are attributes too, so all properties are.
        """
        if not self.body or self.type in _OPEN:
            return None
        nested = {".".join(path) for path in self._paths("readOnlyProperties") if "*" not in path}
        return frozenset(nested | self.body.get("properties", {}).keys())

    def lacks_attribute(self, name: str) -> bool:
        """Return whether ``Fn::GetAtt`` asks for what the schema has neither as a whole nor in
        part.

        The schema may be older than the attribute.
        """
        if self.attributes is None:
            return False
        return name.partition(".")[0] not in self.body.get("properties", {})

    def check(self, properties: Mapping[str, Any]) -> None:
        """Raise ``TemplateError`` if a property is unknown, missing or of the wrong type."""
        errors = sorted(self._errors(properties))
        if errors:
            raise TemplateError(
                f"Properties validation failed for resource type {self.type}: {errors}"
            )

    def replacing_changes(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
        """The properties that differ and can only be given at creation, as far as is known."""
        paths = [
            *self._paths("createOnlyProperties"),
            *((name,) for name in _REPLACING.get(self.type, ())),
        ]
        certain = {path[0] for path in paths if value_at(old, path) != value_at(new, path)}
        conditional = self._conditional_changes(old, new)
        return certain | {
            name for name in conditional if replaces(self.type, name, old, new) is True
        }

    def possibly_replacing_changes(
        self, old: Mapping[str, Any], new: Mapping[str, Any]
    ) -> set[str]:
        """The properties that differ, and of which no source says whether they replace it."""
        changed = self._conditional_changes(old, new)
        unknown = {name for name in changed if replaces(self.type, name, old, new) is None}
        return unknown - self.replacing_changes(old, new)

    def _conditional_changes(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
        """The properties that differ and replace a resource only in some cases."""
        paths = self._paths("conditionalCreateOnlyProperties")
        return {path[0] for path in paths if value_at(old, path) != value_at(new, path)}

    @property
    def create_only(self) -> set[str]:
        """Properties that can only be given at creation, as a whole or in a part."""
        replacing = _REPLACING.get(self.type, ())
        return {path[0] for path in self._paths("createOnlyProperties")}.union(replacing)

    def recreation(self, name: str) -> str:
        """A change set's word for a change of this property: Never, Conditionally or Always."""
        depths = [len(path) for path in self._paths("createOnlyProperties") if path[0] == name]
        if not depths:
            return "Never"
        return "Always" if min(depths) == 1 else "Conditionally"

    def _errors(self, properties: Mapping[str, Any]) -> Iterator[str]:
        for name in sorted(self.read_only & properties.keys()):
            yield f"#: extraneous key [{name}] is not permitted, it is read-only"
        for error in _Validator(self.body).iter_errors(properties):
            if _concerns_opaque_value(error):
                continue
            yield f"#/{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}"

    def _paths(self, key: str) -> list[tuple[str, ...]]:
        return [tuple(pointer.split("/")[2:]) for pointer in self.body.get(key) or ()]


@cache
def resource_schema(type: str) -> ResourceSchema:
    """The schema of a type, which is empty for types that AWS does not define."""
    if type.startswith(_WITHOUT_SCHEMA) or not type.startswith(("AWS::", "Alexa::")):
        return ResourceSchema(type, {})
    folder = _data_folder()
    index = json.loads((folder / "providers" / f"{_REGION}.json").read_text())
    if type not in index:
        _expect_no_misspelling(type, index)
        return ResourceSchema(type, {})
    text = (folder / "resources" / f"{index[type]}.json").read_text()
    for unknown, known in _CLASSES.items():
        text = text.replace(unknown, known)
    return ResourceSchema(type, {**_REQUIRED.get(type, {}), **json.loads(text)})


def _expect_no_misspelling(type: str, types: Iterable[str]) -> None:
    """Raise ``TemplateError`` if a type is a misspelled one; another may be newer than cfn-lint."""
    meant = [known for known in types if is_misspelling(type, known)]
    if meant:
        raise TemplateError(
            f"Template format error: Unrecognized resource types: [{type}]; "
            f'did you mean "{min(meant)}"? Run `pip install --upgrade cfn-lint` if the type is new'
        )


@cache
def stateful_types() -> frozenset[str]:
    """The types whose resources contain data, as AWS lists them for cfn-lint's rule I3011."""
    path = _data_folder().parent / "AdditionalSpecs" / "StatefulResources.json"
    return frozenset(json.loads(path.read_text())["ResourceTypes"]) - {*_OPEN}


def _concerns_opaque_value(error: jsonschema.ValidationError) -> bool:
    """Whether the value, or one in an alternative, is of a resource that is not simulated."""
    if error.validator in ("anyOf", "oneOf", "allOf", "if"):
        return any(map(_concerns_opaque_value, error.context or ()))
    return is_opaque(error.instance)


def _data_folder() -> Path:
    spec = importlib.util.find_spec("cfnlint")
    if spec is None or spec.origin is None:
        raise MissingDependencyError(
            "cdk_rehearse: cfn-lint is missing; run `pip install cdk-rehearse`"
        )
    return Path(spec.origin).parent / "data" / "schemas"


def _is_number(_: Any, value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, bool)


def _is_integer(checker: Any, value: Any) -> bool:
    return _is_number(checker, value) and float(value).is_integer()


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    with suppress(PatternError):  # two types of Glue have a range that only Java can read
        if isinstance(value, str) and not is_match(pattern, value, is_whole=False):
            yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


def _enum(_: Any, values: list[Any], value: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    if str(value) not in [str(allowed) for allowed in values]:
        yield jsonschema.ValidationError(f"{value!r} is not one of {values!r}")


def _one_of(_: Any, names: list[str], value: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    if isinstance(value, dict) and len(value.keys() & {*names}) != 1:
        yield jsonschema.ValidationError(f"exactly one of {names} is required")


def _converted(keyword: str) -> Callable[..., Any]:
    """The check of a keyword; CloudFormation accepts a text as a number, and a number as a text."""
    check = _DRAFT[keyword]
    convert = str if keyword.endswith("Length") else float
    return lambda _, limit, value, schema: check(
        _, limit, convert(value) if _is_number(_, value) else value, schema
    )


# CloudFormation accepts a string for every scalar: parameters are always strings.
_Validator = jsonschema.validators.extend(
    jsonschema.Draft7Validator,
    {
        **{
            keyword: _converted(keyword)
            for keyword in _DRAFT
            if keyword.endswith(("Length", "imum", "multipleOf"))
        },
        "pattern": _pattern,
        "enum": _enum,
        "requiredXor": _one_of,
    },
    type_checker=jsonschema.Draft7Validator.TYPE_CHECKER.redefine_many(
        {
            "number": _is_number,
            "integer": _is_integer,
            "boolean": lambda _, value: isinstance(value, bool) or value in BOOLEANS,
            "string": lambda _, value: isinstance(value, str | int | float),
        }
    ),
)
