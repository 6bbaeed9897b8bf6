"""``Fn::ForEach`` of the transform ``AWS::LanguageExtensions``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from constructs_triton_core.cloud_assembly.evaluation_budget import TemplateBudgetError
from constructs_triton_core.cloud_assembly.loops import EXTENSIONS, expand_loops
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.cloud_assembly.unknown_values import Unknown
from constructs_triton_core.errors import TemplateError

_TOPIC = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": {"Ref": "Name"}}}
_PARAMETERS = {
    "Names": {"Type": "CommaDelimitedList", "Default": "a, b"},
    "One": {"Type": "String", "Default": "e"},
    "Stage": {"Type": "String", "Default": "live"},
    "Stored": {"Type": "AWS::SSM::Parameter::Value<List<String>>", "Default": "/names"},
}


def _expanded(**sections: Any) -> tuple[Any, tuple[str, ...]]:
    return expand_loops({"Transform": [EXTENSIONS], "Parameters": _PARAMETERS, **sections})


def test_loop_becomes_its_members(tmp_path: Path) -> None:
    """Keys, strings and references have the element, with or without its special characters."""
    loop = ["Name", ["a-1", "b"], {"Topic&{Name}": _TOPIC}]
    output = {"Value": {"Fn::GetAtt": ["Topic&{Name}", "TopicArn"]}}
    body = {
        "Transform": EXTENSIONS,
        "Resources": {"Fn::ForEach::Topics": loop},
        "Outputs": {"Fn::ForEach::Arns": ["Name", ["a-1"], {"Out&{Name}": output}]},
    }
    path = tmp_path / "Loop.template.json"
    path.write_text(json.dumps(body))
    template = Template.read(path)
    assert [*template.resources] == ["Topica1", "Topicb"]
    assert template.resources["Topica1"].properties == {"TopicName": "a-1"}
    assert template.outputs == {"Outa1": {"Value": {"Fn::GetAtt": ["Topica1", "TopicArn"]}}}
    assert template.is_complete


def test_loops_nest_and_stand_among_properties() -> None:
    """An inner loop may use the element of the outer one."""
    inner = ["B", ["x", "y"], {"${A}${B}": "${A}-${B}"}]
    outer = ["A", ["1", "2"], {"Fn::ForEach::Inner": inner}]
    found, _ = _expanded(Resources={"Fn::ForEach::Outer": outer})
    assert found["Resources"] == {"1x": "1-x", "1y": "1-y", "2x": "2-x", "2y": "2-y"}


@pytest.mark.parametrize(
    ("collection", "names", "unknown"),
    [
        ({"Ref": "Names"}, ["Ta", "Tb"], ()),
        ({"Fn::FindInMap": ["Stages", "live", "names"]}, ["Tc"], ()),
        ({"Ref": "Missing"}, [], ("Fn::ForEach::Topics",)),
        ({"Ref": "Stored"}, [], ("Fn::ForEach::Topics",)),
        (["d", {"Ref": "One"}], ["Td", "Te"], ()),
        (["d", {"Ref": "AWS::Region"}], [], ("Fn::ForEach::Topics",)),
        ({"Fn::FindInMap": ["Stages", {"Ref": "Stage"}, "names"]}, ["Tc"], ()),
        ({"Fn::Split": [",", {"Ref": "Names"}]}, [], ("Fn::ForEach::Topics",)),
    ],
)
def test_collection_is_known_or_its_loop_is_named(
    collection: Any, names: list[str], unknown: tuple[str, ...]
) -> None:
    """Elements that only a deployment knows are never an error."""
    found, loops = _expanded(
        Mappings={"Stages": {"live": {"names": ["c"]}}},
        Resources={"Fn::ForEach::Topics": ["Name", collection, {"T${Name}": _TOPIC}]},
    )
    assert ([*found["Resources"]], loops) == (names, unknown)


def test_loop_of_another_form_is_an_error() -> None:
    """The message has the loop and the form."""
    with pytest.raises(TemplateError, match=r"Fn::ForEach::T: has the wrong form, got .*; write"):
        _expanded(Resources={"Fn::ForEach::T": ["Name", ["a"]]})


def test_work_of_loops_is_bounded() -> None:
    """Five loops of a hundred elements are ten thousand million resources in 3 kB."""
    members: Any = {"${A}": {}}
    for depth in range(5):
        members = {f"Fn::ForEach::L{depth}": [f"A{depth}", [str(n) for n in range(100)], members]}
    with pytest.raises(TemplateBudgetError):
        _expanded(Resources=members)


def test_transform_within_a_section_is_an_unknown_part() -> None:
    """The section has what the template declares beside it."""
    include = {"Name": "AWS::Include", "Parameters": {"Location": "s3://bucket/more.yaml"}}
    body = {"Resources": {"Topic": _TOPIC, "Fn::Transform": include}}
    template = Template.checked(body, "", "template", "")
    assert [*template.resources] == ["Topic"]
    assert template.unknown_parts == ("Resources.Fn::Transform",)
    assert not template.is_complete


def test_transform_within_a_member_is_an_unknown_part() -> None:
    """A member without what it needs is left out; another one has what is beside the transform."""
    include = {"Name": "AWS::Include", "Parameters": {"Location": "s3://bucket/more.yaml"}}
    body = {
        "Resources": {
            "Topic": {**_TOPIC, "Fn::Transform": include},
            "Made": {"Fn::Transform": include},
        },
        "Outputs": {"Out": {"Fn::Transform": include}},
    }
    template = Template.checked(body, "", "template", "")
    assert template.resources["Topic"].properties == _TOPIC["Properties"]
    assert ([*template.resources], template.outputs) == (["Topic"], {})
    assert template.unknown_parts == (
        "Resources.Topic.Fn::Transform",
        "Resources.Made.Fn::Transform",
        "Outputs.Out.Fn::Transform",
    )


def test_loop_has_the_given_values_of_parameters() -> None:
    """A value that only a deployment knows makes the loop unknown, not that of the default."""
    body = {
        "Transform": EXTENSIONS,
        "Parameters": _PARAMETERS,
        "Resources": {"Fn::ForEach::Topics": ["Name", {"Ref": "Names"}, {"T${Name}": _TOPIC}]},
    }
    template = Template.checked(body, "", "template", "")
    assert [*template.resources] == ["Ta", "Tb"]
    assert [*template.with_parameters({"Names": "c,d"}).resources] == ["Tc", "Td"]
    unknown = template.with_parameters({"Names": Unknown("a,b")})
    assert (unknown.resources, unknown.unknown_parts) == ({}, ("Fn::ForEach::Topics",))


def test_function_makes_the_name_of_a_reference_or_a_policy() -> None:
    """The transform takes functions there; what they make is known before the deployment."""
    join = {"Fn::Join": ["", ["T", {"Ref": "One"}]]}
    found = {"Fn::FindInMap": ["Stages", {"Ref": "Stage"}, "policy"]}
    output = {"Value": {"Fn::GetAtt": [{"Fn::Sub": "T${Name}"}, "TopicName"]}}
    body = {
        "Transform": EXTENSIONS,
        "Parameters": _PARAMETERS,
        "Mappings": {"Stages": {"live": {"policy": "Retain"}}},
        "Resources": {
            "Te": {**_TOPIC, "DeletionPolicy": found},
            "After": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": {"Ref": join}}},
        },
        "Outputs": {"Fn::ForEach::Out": ["Name", ["e"], {"Out${Name}": output}]},
    }
    template = Template.checked(body, "", "template", "")
    assert template.resources["Te"].deletion_policy == "Retain"
    assert template.resources["After"].references == {"Te"}
    assert template.outputs["Oute"] == {"Value": {"Fn::GetAtt": ["Te", "TopicName"]}}
