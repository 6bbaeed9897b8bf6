"""Edits of any template: some that AWS carries out, and some that it refuses.

Each edit changes a template in place, and returns whether it found what it edits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mutations.harmless import EDITS

from cdk_rehearse.errors import TemplateError
from cdk_rehearse.services.resource_schemas import ResourceSchema, resource_schema
from cdk_rehearse.updates.data_types import holds_data
from constructs_triton_core.cloud_assembly.template import references

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


def _dependencies_in_a_circle(body: Body) -> bool:
    """CloudFormation refuses a template whose resources wait for each other."""
    if len(body["Resources"]) < 2:
        return False
    first, *_, last = body["Resources"]
    for name, other in ((first, last), (last, first)):
        resource = body["Resources"][name]
        given = resource.get("DependsOn", [])
        resource["DependsOn"] = [*([given] if isinstance(given, str) else given), other]
    return True


def _referenced_resource_removed(body: Body) -> bool:
    """The template lacks a resource to which another one still refers."""
    resources = body["Resources"]
    for name in resources:
        others = [each.get("Properties") for key, each in resources.items() if key != name]
        if any(name in references(properties) for properties in others):
            del resources[name]
            return True
    return False


def _data_under_another_logical_id(body: Body) -> bool:
    """What holds data is renamed in the app, as by a construct that moves: it begins empty."""
    for name in _with_data(body):
        text = json.dumps(body).replace(f'"{name}"', f'"{name}Moved"')
        text = text.replace(f"${{{name}", f"${{{name}Moved").replace(f'"{name}.', f'"{name}Moved.')
        body.update(json.loads(text))
        return True
    return False


def _data_no_longer_kept(body: Body) -> bool:
    """Data was kept when its resource is deleted, and is not any more."""
    for name in _with_data(body):
        resource = body["Resources"][name]
        if resource.get("DeletionPolicy") in ("Retain", "RetainExceptOnCreate"):
            resource["DeletionPolicy"] = "Delete"
            resource["UpdateReplacePolicy"] = "Delete"
            return True
    return False


def _object_in_place_of_a_string(body: Body) -> bool:
    """A property gets a value of another type, as by a misplaced bracket."""
    for properties, name, _ in _strings(body):
        properties[name] = {"Value": properties[name]}
        return True
    return False


def _value_out_of_an_enumeration(body: Body) -> bool:
    """A property that takes some values gets another one."""
    for properties, name, schema in _strings(body):
        if "enum" in schema:
            properties[name] = "NoSuchValue"
            return True
    return False


def _with_data(body: Body) -> list[str]:
    """The logical IDs of the resources that hold data."""
    return [
        name
        for name, resource in body["Resources"].items()
        if holds_data(resource["Type"], resource.get("Properties", {}))
    ]


def _strings(body: Body) -> Iterator[tuple[Body, str, Mapping[str, Any]]]:
    """The properties with a string, each with its name and its schema."""
    for resource in _with_closed_schemas(body):
        declared = resource_schema(resource["Type"]).body["properties"]
        for name, value in resource.get("Properties", {}).items():
            schema = declared.get(name, {})
            if isinstance(value, str) and schema.get("type") == "string":
                yield resource["Properties"], name, schema


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
    "dependencies in a circle": _dependencies_in_a_circle,
    "referenced resource removed": _referenced_resource_removed,
    "data under another logical ID": _data_under_another_logical_id,
    "data no longer kept": _data_no_longer_kept,
    "object in place of a string": _object_in_place_of_a_string,
    "value out of an enumeration": _value_out_of_an_enumeration,
}
