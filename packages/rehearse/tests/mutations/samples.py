"""Minimal properties of a resource type, generated from CloudFormation's schema of the type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import regex  # type: ignore[import-untyped]

from cdk_rehearse.errors import TemplateError
from cdk_rehearse.services.resource_schemas import ResourceSchema, resource_schema

_ACCOUNT = "123456789012"
#: Strings that fit most patterns of the schemas; the first that fits is taken.
_STRINGS = (
    "acme-digits",
    "acme_digits",
    "AcmeDigits",
    "/acme/",
    "/acme/digits",
    "alias/acme-digits",
    "acme.digits.example",
    "1.0",
    "1",
    "10.0.0.0/16",
    f"arn:aws:iam::{_ACCOUNT}:role/acme",
    f"arn:aws:sns:us-east-1:{_ACCOUNT}:acme",
    f"arn:aws:kms:us-east-1:{_ACCOUNT}:key/0000aaaa-0000-0000-0000-00000000aaaa",
    "arn:aws:s3:::acme-digits",
    f"arn:aws:states:us-east-1:{_ACCOUNT}:stateMachine:acme",
    "s3://acme-digits/one",
    "https://acme.example/",
    "rate(1 day)",
    _ACCOUNT,
    "subnet-0123456789abcdef0",
    "sg-0123456789abcdef0",
    "vpc-0123456789abcdef0",
    "{}",
)


class NoSampleError(Exception):
    """The schema of a type asks for a value that is not generated."""


def minimal(type: str, **given: Any) -> dict[str, Any]:
    """The required properties of a type, and those that are given.

    Raises:
        NoSampleError: the schema asks for a value that is not generated.
    """
    schema = resource_schema(type)
    properties = {**_object(schema.body, schema.body), **given}
    try:
        schema.check(properties)
    except TemplateError as error:
        raise NoSampleError(str(error)) from None
    return properties


def value_of(type: str, name: str) -> list[Any]:
    """Values that a property of a type accepts."""
    body = resource_schema(type).body
    return list(_values(_resolved(body["properties"][name], body), body))


def name_of(type: str, name_property: str) -> Any:
    """A name that the schema of a type accepts."""
    return next(iter(value_of(type, name_property)))


def identifier(schema: ResourceSchema) -> tuple[str, ...]:
    """The properties of the primary identifier; empty if the service generates one of them."""
    paths = [each.split("/")[2:] for each in schema.body.get("primaryIdentifier") or ()]
    if any(len(path) > 1 or path[0] in schema.read_only for path in paths):
        return ()
    return tuple(path[0] for path in paths)


def _object(node: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    wanted = list(node.get("required", ()))
    for key in ("oneOf", "anyOf", "allOf"):
        for each in node.get(key, ())[: None if key == "allOf" else 1]:
            wanted += _resolved(each, body).get("required", ())
    declared = node.get("properties", {})
    return {
        name: _one(_resolved(declared[name], body), body)
        for name in dict.fromkeys(wanted)
        if name in declared
    }


def _one(node: Mapping[str, Any], body: Mapping[str, Any]) -> Any:
    for value in _values(node, body):
        return value
    raise NoSampleError(f"no value for {node}")


def _values(node: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[Any]:
    """Values that fit a node of a schema."""
    kind = node.get("type", "object" if "properties" in node else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if "const" in node:
        yield node["const"]
    elif "enum" in node:
        yield from node["enum"]
    elif kind == "boolean":
        yield from (True, False)
    elif kind in ("integer", "number"):
        lowest = int(node.get("minimum", 1))
        yield from (lowest, lowest + 1)
    elif kind == "array":
        count = max(1, int(node.get("minItems", 1)))
        yield [_one(_resolved(node.get("items", {}), body), body)] * count
    elif kind == "object":
        yield _object(node, body)
    else:
        yield from filter(lambda each: _fits(node, each), _STRINGS)


def _fits(node: Mapping[str, Any], value: str) -> bool:
    if not node.get("minLength", 0) <= len(value) <= node.get("maxLength", 10_000):
        return False
    return "pattern" not in node or regex.search(node["pattern"], value) is not None


def _resolved(node: Mapping[str, Any], body: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in node:
        found: Any = body
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node
