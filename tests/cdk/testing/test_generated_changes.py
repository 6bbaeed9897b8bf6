"""Each helper for tests fails for a change of any resource, wherever the resource is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_s3_assets as s3_assets
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template
from cdk_apps import add_ensemble, add_many, make_app, write_repository

from constructs_triton import TritonImage
from constructs_triton.testing import (
    assert_endpoint,
    assert_no_replacement,
    assert_scales,
    rehearse,
    replacement_assertion,
    stable_template,
)
from constructs_triton.testing.snapshot_extension import TritonTemplateExtension
from constructs_triton_core.errors import InvalidValueError

#: What stable templates leave out: CDK versions decide about it.
OF_THE_CDK = ("CDKMetadata", "aws:cdk:path", "aws:asset:path", "aws:asset:property")


class Shop:
    """An app with a stack, a stack in it with one more in that, and a stack in a stage."""

    def __init__(self, models: Path, outdir: Path) -> None:
        self.app = make_app(outdir)
        self.stack = cdk.Stack(self.app, "Shop")
        sqs.Queue(self.stack, "Orders")
        self.nested = cdk.NestedStack(self.stack, "Vision")
        self.endpoint = add_ensemble(
            self.nested,
            models,
            "Pipeline",
            image=TritonImage.dlc("26.05"),
            endpoint_name="Digits",
            initial_instance_count=2,
        )
        scaled = self.endpoint.auto_scale_instance_count(min_capacity=2, max_capacity=4)
        scaled.scale_on_invocations_per_instance("Load", target_invocations_per_minute=600)
        repository = ecr.Repository(cdk.NestedStack(self.nested, "Images"), "Images")
        cdk.CfnOutput(self.stack, "Repository", value=repository.repository_name)
        self.stage = cdk.Stage(self.app, "Prod")
        add_many(cdk.Stack(self.stage, "Catalog"), models, "Many")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    models = write_repository(tmp_path_factory.mktemp("models"))
    return Shop(models, tmp_path_factory.mktemp("out"))


@pytest.fixture
def folder(shop: Shop, tmp_path: Path) -> Path:
    """Return a copy of the cloud assembly, whose templates a test changes."""
    shutil.copytree(shop.app.synth().directory, tmp_path / "out")
    return tmp_path / "out"


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each string, number and boolean."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*path, key))
    else:
        yield path


def changed(value: Any, path: tuple[Any, ...]) -> Any:
    """Return a copy in which one string, number or boolean differs."""
    copy = deepcopy(value)
    owner = copy
    for key in path[:-1]:
        owner = owner[key]
    leaf = owner[path[-1]]
    owner[path[-1]] = _changed_leaf(leaf)
    return copy


def _changed_leaf(leaf: Any) -> Any:
    if isinstance(leaf, bool):
        return not leaf
    return f"{leaf}~" if isinstance(leaf, str) else leaf + 1


def templates(folder: Path) -> list[Path]:
    found = sorted(folder.rglob("*.template.json"))
    assert len(found) == 4
    return found


def test_a_stable_template_shows_each_change_of_each_stack(folder: Path) -> None:
    """A change of one value of one resource changes the stable template of the app, also in nested
    stacks and in stages.
    """
    before = stable_template(folder)
    blind = []
    number = 0
    for file in templates(folder):
        text = file.read_text()
        body = json.loads(text)
        for path in leaves(body["Resources"], ("Resources",)):
            if not set(path) & set(OF_THE_CDK):
                number += 1
                file.write_text(json.dumps(changed(body, path)))
                if stable_template(folder) == before:
                    blind.append((file.name, path))
        file.write_text(text)
    assert number > 300
    assert blind == []


def test_each_replacement_in_each_stack_is_reported(folder: Path) -> None:
    """A resource that is deleted, or whose property replaces it, fails the assertion, also in
    nested stacks and in stages.
    """
    before = stable_template(folder)
    blind = []
    number = 0
    for path, resource in declared(before):
        changes = [without(before, path)]
        for property_path in replacement_assertion._create_only(resource["Type"]):
            if "*" in property_path or property_path[0] not in resource.get("Properties", {}):
                continue
            value = resource["Properties"][property_path[0]]
            first = next(leaves(value, (*path, "Properties", property_path[0])))
            changes.append(changed(before, first))
        for after in changes:
            number += 1
            try:
                assert_no_replacement(before, after, allowed=())
            except AssertionError:
                continue
            blind.append(path)
    assert number > 40
    assert blind == []


def declared(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the declaration of each resource of stable templates."""
    if not isinstance(value, Mapping):
        return
    for name, each in value.items():
        if path and path[-1] == "Resources":
            yield (*path, name), each
        if name != "Properties":
            yield from declared(each, (*path, name))


def without(value: Any, path: tuple[str, ...]) -> Any:
    copy = deepcopy(value)
    owner = copy
    for key in path[:-1]:
        owner = owner[key]
    del owner[path[-1]]
    return copy


ENDPOINT: dict[str, Any] = {
    "name": "Digits",
    "image_version": "26.05",
    "instance_types": "ml.g5.xlarge",
    "environment": {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "pipeline"},
    "variants": "AllTraffic",
    "initial_variant_weights": {"AllTraffic": 1},
    "initial_instance_counts": {"AllTraffic": 2},
    "models": "pipeline",
}
SCALING: dict[str, Any] = {
    "on": "InvocationsPerInstance",
    "target": 600,
    "between": (2, 4),
    "of": "AllTraffic",
}
CONFIG, MODEL = "AWS::SageMaker::EndpointConfig", "AWS::SageMaker::Model"
TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
#: The type of a resource of the nested stack, and a change of its properties.
DESCRIBED = [
    ("AWS::SageMaker::Endpoint", '"Digits"', '"Other"'),
    (CONFIG, '"AllTraffic"', '"Other"'),
    (CONFIG, '"ml.g5.xlarge"', '"ml.g6.xlarge"'),
    (CONFIG, '"InitialInstanceCount": 2', '"InitialInstanceCount": 3'),
    (CONFIG, '"InitialVariantWeight": 1', '"InitialVariantWeight": 2'),
    (MODEL, "26.05-py3", "26.04-py3"),
    (MODEL, '"pipeline"', '"other"'),
    (TARGET, '"MaxCapacity": 4', '"MaxCapacity": 5'),
    (TARGET, '"MinCapacity": 2', '"MinCapacity": 1'),
    (TARGET, "AllTraffic", "Other"),
    (POLICY, "600", "601"),
    (POLICY, "InvocationsPer", "Other"),
]


@pytest.mark.parametrize(("type_", "old", "new"), DESCRIBED)
def test_a_described_value_of_a_nested_stack_fails(
    type_: str, old: str, new: str, folder: Path
) -> None:
    """What ``assert_endpoint`` and ``assert_scales`` compare is read from nested stacks."""
    helper, expected = (
        (assert_scales, SCALING) if "AutoScaling" in type_ else (assert_endpoint, ENDPOINT)
    )
    helper(folder, **expected)
    for file in templates(folder):
        body = json.loads(file.read_text())
        for resource in body["Resources"].values():
            if resource["Type"] == type_:
                text = json.dumps(resource["Properties"]).replace(old, new)
                resource["Properties"] = json.loads(text)
        file.write_text(json.dumps(body))
    with pytest.raises(AssertionError):
        helper(folder, **expected)


SOURCES: dict[str, Callable[[Shop], Any]] = {
    "stack": lambda shop: shop.stack,
    "nested stack": lambda shop: shop.nested,
    "construct": lambda shop: shop.endpoint,
    "app": lambda shop: shop.app,
    "folder": lambda shop: Path(shop.app.synth().directory),
    "path": lambda shop: str(Path(shop.app.synth().directory, shop.stack.template_file)),
}


@pytest.mark.parametrize("name", SOURCES)
def test_each_source_shows_the_endpoint(name: str, shop: Shop) -> None:
    """A stack, a nested stack, a construct, an app, a folder and a path show each helper the same
    endpoint.
    """
    source = SOURCES[name](shop)
    assert_endpoint(source, **ENDPOINT)
    assert_scales(source, **SCALING)
    assert_no_replacement(source, source)
    assert '"EndpointName": "Digits"' in json.dumps(stable_template(source))
    if not isinstance(source, Path | str):
        serialized = TritonTemplateExtension().serialize([source])
        assert '"EndpointName": "Digits"' in serialized
        assert "<class" not in serialized


def test_a_template_object_is_compared_or_refused(shop: Shop, tmp_path: Path) -> None:
    """A ``Template`` is taken where it has everything that is compared."""
    models = write_repository(tmp_path)
    flat = cdk.Stack(make_app(), "Flat")
    add_ensemble(flat, models, "Pipeline", endpoint_name="Digits")
    other = cdk.Stack(make_app(), "Flat")
    add_ensemble(other, models, "Pipeline", endpoint_name="Other")
    template = Template.from_stack(flat)
    assert_endpoint(template, name="Digits", models="pipeline")
    with pytest.raises(AssertionError, match="EndpointName was"):
        assert_no_replacement(template, Template.from_stack(other))

    nested = Template.from_stack(shop.stack)
    with pytest.raises(InvalidValueError, match="pass the stack in place of its Template"):
        assert_endpoint(nested)
    with pytest.raises(InvalidValueError, match="pass the stack in place of its Template"):
        assert_scales(nested, on="InvocationsPerInstance")
    changed_address = Template.from_json(
        changed(nested.to_json(), ("Resources", *address(nested.to_json())))
    )
    with pytest.raises(InvalidValueError, match="may have changed"):
        assert_no_replacement(nested, changed_address)
    assert_no_replacement(nested, nested)
    for refused in (
        lambda: stable_template(template),
        lambda: TritonTemplateExtension().serialize(template),
        lambda: rehearse(None, cast(Any, template)),
    ):
        with pytest.raises(InvalidValueError, match="pass the stack"):
            refused()


def address(template: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the path of the last part of the address of the nested template."""
    resources = template["Resources"]
    name = next(name for name in resources if resources[name]["Type"].endswith("::Stack"))
    return (name, "Properties", "TemplateURL", "Fn::Join", 1, -1)


@pytest.mark.parametrize("wrong", [None, 3, object(), ["Shop"], cdk.Duration.seconds(1)])
def test_other_values_are_refused(wrong: Any) -> None:
    """A value of which nothing could be compared is an error, never a green test."""
    for helper in (assert_endpoint, stable_template):
        with pytest.raises(InvalidValueError, match="must be a stack"):
            helper(wrong)
    if wrong not in (None, 3, ["Shop"]):
        with pytest.raises(InvalidValueError, match="must be a stack or a value of JSON"):
            TritonTemplateExtension().serialize({"a": [wrong]})


def test_a_resource_whose_condition_becomes_false_is_lost() -> None:
    """A resource with a condition that is false does not exist after the update."""
    queue = {"Type": "AWS::SQS::Queue"}
    conditions = {"IsOn": {"Fn::Equals": ["a", "b"]}}
    before = {"Resources": {"Orders": queue}}
    after = {"Resources": {"Orders": {**queue, "Condition": "IsOn"}}, "Conditions": conditions}
    with pytest.raises(AssertionError, match="its condition IsOn is false"):
        assert_no_replacement(before, after)


@pytest.mark.parametrize(
    "properties",
    [
        {"TemplateURL": "{}"},
        {"ProvisioningArtifactParameters": [{"Info": {"LoadTemplateFromURL": "{}"}}]},
    ],
    ids=["stack set", "product"],
)
def test_a_template_that_is_not_read_changes_the_snapshot(
    properties: dict[str, Any], tmp_path: Path
) -> None:
    """Of the template of a stack set or a product, the snapshot has the digest."""

    def version(topic: str) -> dict[str, Any]:
        stack = cdk.Stack(make_app(), "Shop")
        file = tmp_path / "other.json"
        file.write_text(json.dumps({"Resources": {topic: {"Type": "AWS::SNS::Topic"}}}))
        url = s3_assets.Asset(stack, "Other", path=str(file)).http_url
        text = json.dumps(properties).replace("{}", url)
        cdk.CfnResource(stack, "Set", type="Acme::Shop::Set", properties=json.loads(text))
        return stable_template(stack)

    assert version("Orders") == version("Orders")
    assert version("Orders") != version("Returns")


@pytest.mark.parametrize("way", ["parameter", "output", "default"])
def test_a_value_from_another_stack_replaces(way: str) -> None:
    """A value that reaches a property through a parameter or an output of a nested stack is
    compared.
    """

    def version(name: str) -> dict[str, Any]:
        queue = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": name}}
        nested = {"Type": "AWS::CloudFormation::Stack", "Properties": {}}
        parameter = {"Type": "String", "Default": name}
        if way == "output":
            nested["Template"] = {"Resources": {}, "Outputs": {"Name": {"Value": name}}}
            queue["Properties"] = {"QueueName": {"Fn::GetAtt": ["Nested", "Outputs.Name"]}}
            return {"Resources": {"Nested": nested, "Queue": queue}}
        queue["Properties"] = {"QueueName": {"Fn::Sub": "${Name}-queue"}}
        nested["Template"] = {"Resources": {"Queue": queue}, "Parameters": {"Name": parameter}}
        if way == "parameter":
            parameter["Default"] = "same"
            nested["Properties"] = {"Parameters": {"Name": name}}
        return {"Resources": {"Nested": nested}}

    assert_no_replacement(version("a"), version("a"))
    with pytest.raises(AssertionError, match="QueueName was"):
        assert_no_replacement(version("a"), version("b"))
