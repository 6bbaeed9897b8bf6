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
        yield Mutant(
            "type changed",
            f"{before} to {after}",
            {"S": template({"It": _named_sample(before)})},
            {"S": template({"It": _named_sample(after)})},
            "wrong",
            source,
            REFUSED,
        )


def _named_sample(type: str) -> dict[str, Any]:
    """A resource of a type, with a name."""
    sample, _ = named(type, str(named_types()[type]))
    return sample


def replacements() -> Iterator[Mutant]:
    """A change of a create-only property of a resource with a fixed name."""
    for kind_of, name_property in named_types().items():
        it, beside = named(kind_of, name_property)
        for name, (before, after) in _create_only(kind_of, name_property, it["Properties"]):
            old = {**it, "Properties": {**it["Properties"], name: before}}
            new = {**it, "Properties": {**it["Properties"], name: after}}
            yield Mutant(
                "named resource replaced",
                f"{kind_of}.{name}",
                {"S": template({**beside, "It": old})},
                {"S": template({**beside, "It": new})},
                "wrong",
                f"{name} is create-only, and the name is taken while the old resource exists",
                (COLLISION,),
            )
            break


def _create_only(type: str, name_property: str, sample: Any) -> Iterator[tuple[str, list[Any]]]:
    """The properties that replace a resource, each with two values that the schema accepts."""
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
    yield _quota("501 resources", "wrong", _numbered("H", 500, handle))

    for number, verdict in ((200, "harmless"), (201, "wrong")):
        outputs = _numbered("O", number, {"Value": "x"})
        yield _quota(f"{number} outputs", verdict, {}, Outputs=outputs)
        parameters = _numbered("P", number, {"Type": "String", "Default": "x"})
        yield _quota(f"{number} parameters", verdict, {}, Parameters=parameters)
        mappings = _numbered("M", number, {"a": {"b": "c"}})
        yield _quota(f"{number} mappings", verdict, {}, Mappings=mappings)

    six_kilobytes = {"Value": "x" * 6000}
    for number, verdict in ((900, "harmless"), (1100, "wrong")):
        outputs = _numbered("O", number // 6, six_kilobytes)
        yield _quota(f"a template of {number} kB", verdict, {}, Outputs=outputs)
    yield _quota("a description of 1025 bytes", "wrong", {}, Description="x" * 1025)


def _numbered(prefix: str, count: int, value: dict[str, Any]) -> dict[str, Any]:
    """This many entries of a section of a template, which differ in their names only."""
    return {f"{prefix}{number}": value for number in range(count)}


def _quota(name: str, verdict: Any, resources: Any, **sections: Any) -> Mutant:
    """An update of a topic to a template with further resources and sections."""
    is_wrong = verdict == "wrong"
    return Mutant(
        "quota of a template" if is_wrong else "quota reached",
        name,
        {"S": template({"Topic": _TOPIC})},
        {"S": template({"Topic": _TOPIC, **resources}, **sections)},
        verdict,
        "CloudFormation quotas",
        REFUSED if is_wrong else (),
    )


def invalid_properties() -> Iterator[Mutant]:
    """For each type of a base: a required property removed, an unknown one added,
    a read-only one set.
    """
    old = queue()
    by_type = {}
    for logical_id, declared in old.items():
        by_type[declared["Type"]] = (logical_id, declared["Properties"])

    for kind_of, (logical_id, properties) in by_type.items():
        schema = resource_schema(kind_of)
        edits: dict[str, dict[str, Any]] = {"unknown property": {**properties, "Undeclared": "x"}}
        for name in schema.body.get("required", ())[:1]:
            others = {other: properties[other] for other in properties if other != name}
            edits[f"without {name}"] = others
        for name in sorted(schema.read_only)[:1]:
            edits[f"read-only {name}"] = {**properties, name: "x"}
        for edit, edited in edits.items():
            yield Mutant(
                "property refused by the schema",
                f"{kind_of}: {edit}",
                {"S": template(old)},
                {"S": template({**old, logical_id: resource(kind_of, **edited)})},
                "wrong",
                "the schema of the type",
                REFUSED,
            )


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
    yield from changed_types()
    yield from replacements()
    yield from exports()
    yield from quotas()
    yield from invalid_properties()
    yield from invalid_templates()
