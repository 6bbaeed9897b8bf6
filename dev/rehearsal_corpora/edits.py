"""Edits of any template: some that AWS carries out, and some that it refuses.

Each edit changes a template in place, and returns whether it found what it edits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mutations.harmless import EDITS

from cdk_rehearse.errors import TemplateError
from cdk_rehearse.services.resource_schemas import ResourceSchema, resource_schema

Body = dict[str, Any]
Edit = Callable[[Body], bool]

_TAG = {"Key": "owner", "Value": "corpus"}


def _tag(body: Body) -> bool:
    """A tag on every resource that takes one without being replaced."""
    found = False
    for resource in body["Resources"].values():
        schema = resource_schema(resource["Type"])
        old = resource.get("Properties", {})
        new = _tagged(schema, old) if schema.body else None
        if new is not None and not schema.replacing_changes(old, new):
            resource["Properties"] = new
            found = True
    return found


def _tagged(schema: ResourceSchema, properties: Body) -> Body | None:
    """The properties with one more tag, in the form that the type has; ``None`` if it has none."""
    name = schema.tag_property
    if name not in schema.body.get("properties", {}):
        return None
    given = properties.get(name)
    as_list = given if isinstance(given, list) else []
    as_map = given if isinstance(given, dict) and "Fn::If" not in given else {}
    forms: list[Any] = [
        [*as_list, _TAG],
        [*as_list, {**_TAG, "PropagateAtLaunch": True}],
        {**as_map, "owner": "corpus"},
    ]
    for form in forms:
        new = {**properties, name: form}
        if type(form) is type(given or form) and _is_valid(schema, new, name):
            return new
    return None


def _is_valid(schema: ResourceSchema, properties: Body, name: str) -> bool:
    """Whether the schema takes the value of one property."""
    try:
        schema.check(properties)
    except TemplateError as error:
        return f"#/{name}" not in str(error)
    return True


HARMLESS: dict[str, Edit] = {
    "description": EDITS["description"],
    "tag": _tag,
    "memory of functions": EDITS["memory of functions"],
    "topic added": EDITS["topic added"],
    "output added": EDITS["output added"],
}


def _unknown_property(body: Body) -> bool:
    """A property that the schema of the type does not have."""
    for resource in _with_closed_schemas(body):
        resource.setdefault("Properties", {})["NoSuchProperty"] = "value"
        return True
    return False


def _required_property_removed(body: Body) -> bool:
    for resource in _with_closed_schemas(body):
        required = resource_schema(resource["Type"]).body.get("required", [])
        given = [name for name in required if name in resource.get("Properties", {})]
        if given:
            del resource["Properties"][given[0]]
            return True
    return False


def _missing_reference(body: Body) -> bool:
    """A reference to a resource that the template does not have."""
    body["Outputs"] = {**body.get("Outputs", {}), "NoSuch": {"Value": {"Ref": "NoSuchResource"}}}
    return True


def _type_changed(body: Body) -> bool:
    """CloudFormation refuses another type under the same logical ID."""
    for resource in _with_closed_schemas(body):
        if resource["Type"] != "AWS::SNS::Topic":
            resource["Type"] = "AWS::SNS::Topic"
            resource["Properties"] = {"DisplayName": "one"}
            return True
    return False


def _with_closed_schemas(body: Body) -> Iterator[Body]:
    for resource in body["Resources"].values():
        schema: Mapping[str, Any] = {}
        if resource["Type"].startswith("AWS::"):
            schema = resource_schema(resource["Type"]).body
        if schema.get("additionalProperties") is False:
            yield resource


WRONG: dict[str, Edit] = {
    "unknown property": _unknown_property,
    "required property removed": _required_property_removed,
    "missing reference": _missing_reference,
    "type changed": _type_changed,
}
