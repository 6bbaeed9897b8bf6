"""A template as data: its resources, their order, and what they refer to."""

from __future__ import annotations

from pathlib import Path

import pytest

from constructs_triton_core.cloud_assembly.template import Template, references
from constructs_triton_core.errors import TemplateError

TOPIC = {"Type": "AWS::SNS::Topic"}


def test_order_follows_every_type_of_reference() -> None:
    """Ref, GetAtt, Sub and DependsOn each put the resource that they refer to first."""
    body = {
        "Resources": {
            "A": {"Type": "T", "Properties": {"x": [{"Ref": "B"}]}},
            "B": {"Type": "T", "Properties": {"x": {"Fn::GetAtt": ["C", "Arn"]}}},
            "C": {"Type": "T", "Properties": {"x": {"Fn::Sub": "${D.Arn}/${!E}/${AWS::Region}"}}},
            "D": {"Type": "T", "DependsOn": "E"},
            "E": {"Type": "T", "Properties": {"x": {"Fn::Sub": ["${Own}", {"Own": "value"}]}}},
        }
    }
    assert Template(body).order == ("E", "D", "C", "B", "A")


def test_cycles_are_refused() -> None:
    """The error names resources that depend on each other."""
    body = {"Resources": {"A": {**TOPIC, "DependsOn": "B"}, "B": {**TOPIC, "DependsOn": "A"}}}
    with pytest.raises(TemplateError, match="Circular dependency"):
        _ = Template(body).order


def test_references_are_found_in_variables_of_sub() -> None:
    """A variable of ``Fn::Sub`` is no reference, its value may be one,
    and ``Fn::GetAtt`` may be a string.
    """
    value = [{"Fn::Sub": ["${Own}-${Other.Arn}", {"Own": {"Ref": "A"}}]}, {"Fn::GetAtt": "B.Arn"}]
    assert references(value) == {"A", "B", "Other"}


def test_resource_without_a_type_is_refused() -> None:
    """The error has the logical ID."""
    with pytest.raises(
        TemplateError, match=r"Resources\.A: every resource must have a Type; add it"
    ):
        _ = Template({"Resources": {"A": {"Properties": {}}}}).resources


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "does not exist"),
        ("{", "cannot be read as JSON"),
        ("[" * 100_000, "cannot be read as JSON"),
        ("[]", "must contain a JSON object, got list"),
    ],
)
def test_files_that_are_no_template_are_refused(
    tmp_path: Path, content: str | None, words: str
) -> None:
    """The error has the path and says what to pass."""
    path = tmp_path / "Shop.template.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(
        TemplateError, match=rf"Shop\.template\.json: {words}.*; pass a template that `npx"
    ):
        Template.read(path)
