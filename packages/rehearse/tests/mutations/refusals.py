"""Edits that CloudFormation refuses whatever the type of the resource is, and neighbours that it
takes.

Sources: CloudFormation user guide, "Update behaviors of stack resources", "AWS CloudFormation
quotas", "Outputs", "Parameters", "Template anatomy"; the schemas of the resource types (required,
read-only and create-only properties).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cdk_rehearse.services.resource_schemas import resource_schema

from .bases import queue, ref, resource
from .mutant import COLLISION, INVALID, MAY_FAIL, UPDATE_FAILS, Mutant, Verdict, template
from .named import named
from .names import OPAQUE, named_types
from .samples import NoSampleError, minimal, value_of

REFUSED = (UPDATE_FAILS, INVALID)
_TOPIC = {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": "one"}}


def changed_types() -> Iterator[Mutant]:
    """A logical ID that gets another type; each type of the sample is once the
    old and once the new one.
    """
    types = (*OPAQUE, "AWS::S3::Bucket", "AWS::SNS::Topic", "AWS::SSM::Parameter")[::2]
    source = "CloudFormation does not permit the type of a resource to change"
    for before, after in zip(types, [*types[1:], types[0]], strict=True):
        old, new = (named(each, str(named_types()[each]))[0] for each in (before, after))
        stacks = {"S": template({"It": old})}, {"S": template({"It": new})}
        yield Mutant("type changed", f"{before} to {after}", *stacks, "wrong", source, REFUSED)


def replacements() -> Iterator[Mutant]:
    """A change of a create-only property of a resource with a fixed name."""
    for kind_of, name_property in named_types().items():
        it, beside = named(kind_of, name_property)
        for name, (before, after) in _create_only(kind_of, name_property, it["Properties"]):
            old, new = (
                {
                    "S": template(
                        {**beside, "It": {**it, "Properties": {**it["Properties"], name: value}}}
                    )
                }
                for value in (before, after)
            )
            source = f"{name} is create-only, and the name is taken while the old resource exists"
            place = f"{kind_of}.{name}"
            yield Mutant("named resource replaced", place, old, new, "wrong", source, (COLLISION,))
            break


def _create_only(type: str, name_property: str, sample: Any) -> Iterator[tuple[str, list[Any]]]:
    schema = resource_schema(type)
    for path in schema.body.get("createOnlyProperties", ()):
        name, *deeper = path.split("/")[2:]
        if deeper or name == name_property or name in schema.read_only:
            continue
        try:
            values = value_of(type, name)[:2]
            for value in values:
                minimal(type, **{**sample, name: value})
        except (NoSampleError, KeyError):
            continue
        if len(values) == 2:
            yield name, values


def exports() -> Iterator[Mutant]:
    """Exports that another stack imports."""
    exported = _exporting("acme-topic", ref("Topic"))
    user = template(
        {
            "User": resource(
                "AWS::SSM::Parameter", Type="String", Value={"Fn::ImportValue": "acme-topic"}
            )
        }
    )
    unused = template({"User": resource("AWS::SSM::Parameter", Type="String", Value="one")})
    old = {"S": exported, "T": user}
    twice = {"S": exported, "T": user, "U": _exporting("acme-topic", "x")}
    yield from _exports(
        {
            "removed while it is imported": (
                "wrong",
                old,
                {"S": template({"Topic": _TOPIC}), "T": user},
            ),
            "removed together with its use": (
                "wrong",
                old,
                {"S": template({"Topic": _TOPIC}), "T": unused},
            ),
            "renamed while it is imported": (
                "wrong",
                old,
                {"S": _exporting("acme-other", ref("Topic")), "T": user},
            ),
            "changed while it is imported": (
                "wrong",
                old,
                {"S": _exporting("acme-topic", "x"), "T": user},
            ),
            "name that another stack exports": ("wrong", old, twice),
            "import of what is not exported": (
                "wrong",
                {"S": exported},
                {"S": template({"Topic": _TOPIC}), "T": user},
            ),
            "stack deleted while its export is imported": ("wrong", old, {"T": user}),
            "removed after its use": (
                "harmless",
                {"S": exported, "T": unused},
                {"S": template({"Topic": _TOPIC}), "T": unused},
            ),
            "import removed": ("harmless", old, {"S": exported, "T": unused}),
            "description changed": (
                "harmless",
                old,
                {"S": _exporting("acme-topic", ref("Topic"), "it"), "T": user},
            ),
        }
    )


def _exports(edits: dict[str, tuple[Verdict, Any, Any]]) -> Iterator[Mutant]:
    for name, (verdict, old, new) in edits.items():
        codes = (*REFUSED, COLLISION) if verdict == "wrong" else ()
        source = (
            "an export cannot be changed or removed while a stack imports it, "
            "and its name is unique"
        )
        kind = "export" if verdict == "wrong" else "export without effect"
        yield Mutant(kind, name, old, new, verdict, source, codes)


def _exporting(name: str, value: Any, description: str = "") -> dict[str, Any]:
    output = {"Value": value, "Export": {"Name": name}, "Description": description}
    return template({"Topic": _TOPIC}, Outputs={"Topic": output})


def quotas() -> Iterator[Mutant]:
    """Templates over a quota of CloudFormation, and one at each quota."""
    handle = {"Type": "AWS::CloudFormation::WaitConditionHandle"}
    text = "x" * 1000
    yield _quota("501 resources", "wrong", {f"H{each}": handle for each in range(500)})
    for number, verdict in ((200, "harmless"), (201, "wrong")):
        outputs = {f"O{each}": {"Value": "x"} for each in range(number)}
        yield _quota(f"{number} outputs", verdict, {}, Outputs=outputs)
        parameters = {f"P{each}": {"Type": "String", "Default": "x"} for each in range(number)}
        yield _quota(f"{number} parameters", verdict, {}, Parameters=parameters)
        mappings = {f"M{each}": {"a": {"b": "c"}} for each in range(number)}
        yield _quota(f"{number} mappings", verdict, {}, Mappings=mappings)
    for number, verdict in ((900, "harmless"), (1100, "wrong")):
        outputs = {f"O{each}": {"Value": text * 6} for each in range(number // 6)}
        yield _quota(f"a template of {number} kB", verdict, {}, Outputs=outputs)
    yield _quota("a description of 1025 bytes", "wrong", {}, Description="x" * 1025)


def _quota(name: str, verdict: Any, resources: Any, **sections: Any) -> Mutant:
    stacks = (
        {"S": template({"Topic": _TOPIC})},
        {"S": template({"Topic": _TOPIC, **resources}, **sections)},
    )
    kind = "quota of a template" if verdict == "wrong" else "quota reached"
    return Mutant(
        kind, name, *stacks, verdict, "CloudFormation quotas", REFUSED if verdict == "wrong" else ()
    )


def invalid_properties() -> Iterator[Mutant]:
    """For each type of a base: a required property removed, an unknown one added,
    a read-only one set.
    """
    old = queue()
    by_type = {each["Type"]: (name, each["Properties"]) for name, each in old.items()}
    for kind_of, (logical_id, properties) in by_type.items():
        schema = resource_schema(kind_of)
        edits: dict[str, dict[str, Any]] = {"unknown property": {**properties, "Undeclared": "x"}}
        for name in schema.body.get("required", ())[:1]:
            edits[f"without {name}"] = {
                key: each for key, each in properties.items() if key != name
            }
        for name in sorted(schema.read_only)[:1]:
            edits[f"read-only {name}"] = {**properties, name: "x"}
        for edit, edited in edits.items():
            stacks = (
                {"S": template(old)},
                {"S": template({**old, logical_id: resource(kind_of, **edited)})},
            )
            place, source = f"{kind_of}: {edit}", "the schema of the type"
            yield Mutant("property refused by the schema", place, *stacks, "wrong", source, REFUSED)


def invalid_templates() -> Iterator[Mutant]:
    """References to what does not exist, circles, and parameters outside what they allow."""
    old = template({"Topic": _TOPIC})
    topic = _TOPIC["Properties"]
    two = {"A": {**_TOPIC, "DependsOn": "B"}, "B": {**_TOPIC, "DependsOn": "A"}}
    wrong = {"Type": "String", "Default": "x", "AllowedValues": ["y"]}
    edits = {
        "Ref to nothing": template(
            {"Topic": {**_TOPIC, "Properties": {"DisplayName": ref("Nothing")}}}
        ),
        "GetAtt of nothing": template(
            {"Topic": {**_TOPIC, "Properties": {"DisplayName": {"Fn::GetAtt": ["No", "Arn"]}}}}
        ),
        "GetAtt of an unknown attribute": template(
            {
                "Topic": _TOPIC,
                "Other": {
                    **_TOPIC,
                    "Properties": {"DisplayName": {"Fn::GetAtt": ["Topic", "Label"]}},
                },
            }
        ),
        "Sub of nothing": template(
            {"Topic": {**_TOPIC, "Properties": {"DisplayName": {"Fn::Sub": "${Nothing}"}}}}
        ),
        "DependsOn nothing": template({"Topic": {**_TOPIC, "DependsOn": "Nothing"}}),
        "circle": template({"Topic": _TOPIC, **two}),
        "unknown condition": template({"Topic": {**_TOPIC, "Condition": "Nothing"}}),
        "unknown type": template({"Topic": {"Type": "AWS::SNS::Toipc", "Properties": topic}}),
        "unknown mapping": template(
            {"Topic": {**_TOPIC, "Properties": {"DisplayName": {"Fn::FindInMap": ["M", "a", "b"]}}}}
        ),
        "parameter outside its allowed values": template(
            {"Topic": _TOPIC}, Parameters={"Size": wrong}
        ),
        "no resources": template({}),
        "output of nothing": template(
            {"Topic": _TOPIC}, Outputs={"Out": {"Value": ref("Nothing")}}
        ),
    }
    for name, new in edits.items():
        # A schema may be older than an attribute, so that this one is a warning.
        is_of_schema = name == "GetAtt of an unknown attribute"
        codes = (*REFUSED, MAY_FAIL) if is_of_schema else REFUSED
        yield Mutant(
            "invalid template", name, {"S": old}, {"S": new}, "wrong", "template anatomy", codes
        )


def refusals() -> Iterator[Mutant]:
    """All edits of this module."""
    for each in (
        changed_types,
        replacements,
        exports,
        quotas,
        invalid_properties,
        invalid_templates,
    ):
        yield from each()
