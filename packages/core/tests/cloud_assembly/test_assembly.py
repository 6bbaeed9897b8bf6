"""A cloud assembly: stacks, nested stacks and stages, and what is known of their values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from constructs_triton_core.cloud_assembly.assembly import Assembly
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.errors import TemplateError

TOPIC = {"Type": "AWS::SNS::Topic"}
NEVER = {"Never": {"Fn::Equals": ["a", "b"]}, "Asked": {"Fn::Equals": [{"Ref": "Bare"}, "b"]}}
BODY = {
    "Parameters": {"Bare": {"Type": "String"}},
    "Conditions": NEVER,
    "Resources": {
        "Always": {
            **TOPIC,
            "Properties": {"TopicName": {"Ref": "Bare"}, "Tags": {"Ref": "AWS::NoValue"}},
        },
        "Never": {**TOPIC, "Condition": "Never"},
        "Asked": {**TOPIC, "Condition": "Asked"},
    },
}


def write(directory: Path, artifacts: Mapping[str, Any], **files: Any) -> Assembly:
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in {"manifest": {"artifacts": artifacts}, **files}.items():
        (directory / f"{name}.json").write_text(json.dumps(content))
    return Assembly(directory)


def stack(file: str, *dependencies: str, **more: Any) -> dict[str, Any]:
    properties = {"templateFile": f"{file}.json", **more.pop("properties", {})}
    declared = {
        "type": "aws:cloudformation:stack",
        "properties": properties,
        "dependencies": dependencies,
    }
    return declared | more


def test_stacks_come_after_those_that_they_depend_on(tmp_path: Path) -> None:
    """Also if the manifest has them in another order; a stack's name may differ from its ID."""
    assembly = write(
        tmp_path,
        {
            "Api": stack("api", "Data", "Net"),
            "Data": stack("data", "Net", properties={"stackName": "prod-data"}),
            "Net": stack("net", environment="aws://111122223333/eu-west-1"),
        },
        api={},
        data={},
        net={},
    )
    assert assembly.stacks() == ["Net", "Data", "Api"]
    assert assembly.needed_environments("Api") == {"aws://111122223333/eu-west-1"}
    assert assembly.needed_environments("Net") == frozenset()
    found = list(assembly.all_stacks())
    assert [each.name for each in found] == ["Net", "prod-data", "Api"]
    assert found[1].names == {"prod-data", "Data"}
    assert [(each.account, each.region) for each in found[:2]] == [
        ("111122223333", "eu-west-1"),
        ("123456789012", "us-east-1"),
    ]


def test_nested_stacks_get_the_values_of_their_parent(tmp_path: Path) -> None:
    """Those that are known; a nested stack may contain another one."""
    inner = {
        "Parameters": {"Name": {"Type": "String"}, "Later": {"Type": "String"}},
        "Resources": {"Topic": {**TOPIC, "Properties": {"TopicName": {"Ref": "Name"}}}},
    }

    def parent(file: str, name: Any) -> dict[str, Any]:
        values = {"Name": name, "Later": {"Fn::ImportValue": "x"}}
        nested = {
            "Type": "AWS::CloudFormation::Stack",
            "Metadata": {"aws:asset:path": file},
            "Properties": {"Parameters": values},
        }
        return {
            "Parameters": inner["Parameters"],
            "Resources": {"Nested": nested, "Foreign": {**nested, "Metadata": {}}},
        }

    outer, middle = parent("middle.json", "given"), parent("inner.json", {"Ref": "Name"})
    assembly = write(tmp_path, {"Shop": stack("shop")}, shop=outer, middle=middle, inner=inner)
    _, _, deepest = assembly.all_stacks()
    assert deepest.name == "Shop/Nested/Nested"
    assert {"Shop", "Shop/Nested", "Shop/Nested/Nested"} <= deepest.names
    assert deepest.properties("Topic") == {"TopicName": "given"}


def test_values_of_other_stacks_are_those_of_their_templates(tmp_path: Path) -> None:
    """An export or an output, in the Region of its stack;
    a cycle or another app's value has no value.
    """
    buckets = {
        name: {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": name}} for name in ("a", "b")
    }
    export = {"Name": {"Fn::Sub": "${AWS::StackName}:Bucket"}}
    again = {"Fn::GetStackOutput": {"StackName": "Shop", "OutputName": "Again"}}
    files = {
        name: {
            "Resources": {name: bucket},
            "Outputs": {
                "Bucket": {"Value": {"Ref": name}, "Export": export},
                "Again": {"Value": again},
            },
        }
        for name, bucket in buckets.items()
    }
    shop = {"properties": {"stackName": "Shop"}}
    artifacts = {
        "A": stack("a", environment="aws://111122223333/eu-west-1", **deepcopy(shop)),
        "B": stack("b", **deepcopy(shop)),
    }
    assembly = write(tmp_path, artifacts, **files)
    assert assembly.exported("Shop:Bucket", "eu-west-1") == "a"
    assert assembly.output("Shop", "Bucket", "us-east-1") == "b"
    assert assembly.output("Shop", "Again", "us-east-1") == again
    assert assembly.exported("Other:Bucket", "us-east-1") is None
    assert assembly.output("Shop", "Bucket", "us-west-2") is None


def test_assets_are_found_by_their_keys(tmp_path: Path) -> None:
    """A file, a container image, and an asset that a program makes."""
    place = {"bucketName": "b", "objectKey": "abc.zip"}
    assets = {
        "files": {
            "a": {"source": {"path": "asset.abc"}, "destinations": {"here": place}},
            "b": {
                "source": {"executable": ["x"]},
                "destinations": {"here": {**place, "objectKey": "made"}},
            },
        },
        "dockerImages": {"c": {"displayName": "App", "destinations": {"here": {"imageTag": "t"}}}},
    }
    artifacts = {
        "Shop": stack("shop"),
        "Shop.assets": {"type": "cdk:asset-manifest", "properties": {"file": "assets.json"}},
    }
    found = write(tmp_path, artifacts, shop={}, assets=assets).stack("Shop")
    assert found.asset("abc.zip") == tmp_path / "asset.abc"
    assert found.asset("made") is None
    (manifest,) = found.manifests
    assert list(manifest.images()) == [("App", ["t"])]


def test_resources_of_a_false_condition_are_not_created() -> None:
    """A condition on a parameter without a value is not decided, so its resource may be created."""
    assert SynthesizedStack("Shop", Template(BODY)).created("AWS::SNS::Topic") == [
        "Always",
        "Asked",
    ]


def test_unknown_value_is_an_error_with_its_place() -> None:
    """The stack and the logical ID; what reads only known values gets it as declared."""
    shop = SynthesizedStack("Shop", Template(BODY))
    with pytest.raises(
        TemplateError, match="Shop/Always: Ref refers to a parameter without a default value"
    ):
        shop.properties("Always")
    assert shop.known_properties("Always") == {"TopicName": {"Ref": "Bare"}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "cannot be read as JSON.*`npx cdk synth`"),
        ("[]", "must contain a JSON object, got list.*`npx cdk synth`"),
        (None, "does not exist; run `npx cdk synth`"),
    ],
)
def test_broken_manifest_is_reported(tmp_path: Path, content: str | None, words: str) -> None:
    """With what is wrong and the command that writes it."""
    if content is not None:
        (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(TemplateError, match=rf"manifest\.json: {words}"):
        Assembly(tmp_path).stacks()


def test_construct_paths_are_beside_the_template_or_in_the_manifest(tmp_path: Path) -> None:
    """The CDK writes them to a file, as older versions did to the manifest;
    without both none are known.
    """
    metadata = {
        "/Prod": [{"type": "aws:cdk:templateFile", "data": "prod.json"}],
        "/Prod/Alerts/Resource": [{"type": "aws:cdk:logicalId", "data": "Alerts1"}],
    }
    artifacts = {
        "File": stack("prod", additionalMetadataFile="beside.json"),
        "Manifest": stack("prod", metadata=metadata),
        "Lost": stack("prod", additionalMetadataFile="lost.json"),
        "None": stack("prod"),
    }
    assembly = write(tmp_path, artifacts, prod={}, beside=metadata)
    found = {name: assembly.construct_paths(name) for name in artifacts}
    assert found["File"] == found["Manifest"] == {"Alerts1": "Prod/Alerts/Resource"}
    assert found["Lost"] == found["None"] == {}


def test_construct_paths_of_another_form_are_an_error(tmp_path: Path) -> None:
    """The error names the file and the place."""
    artifacts = {"A": stack("a", additionalMetadataFile="m.json")}
    assembly = write(tmp_path, artifacts, a={}, m={"/A": [{"data": 1}]})
    with pytest.raises(TemplateError, match=r"m\.json: /A\[0\]\.type: must be given"):
        assembly.construct_paths("A")
