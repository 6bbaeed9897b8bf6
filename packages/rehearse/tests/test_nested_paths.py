"""Paths of constructs in nested stacks."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_rehearse import rehearse

pytestmark = pytest.mark.e2e


class Branch(cdk.NestedStack):
    """A nested stack of which an app has several instances, one of them in another."""

    def __init__(self, scope: Construct, id: str, *, label: str) -> None:
        super().__init__(scope, id)
        sns.Topic(self, "Topic", display_name=label)


def synthesize(folder: Path, label: str) -> Path:
    app = cdk.App(outdir=str(folder), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "Shops")
    north = Branch(stack, "North", label=label)
    Branch(stack, "South", label=label)
    Branch(north, "Harbor", label=label)
    app.synth()
    return folder


def test_steps_of_nested_stacks_have_the_paths_of_their_own_constructs(tmp_path: Path) -> None:
    """Each instance of a class of nested stacks is named by its own path, at any depth."""
    old, new = (synthesize(tmp_path / label, label) for label in ("one", "two"))
    found = rehearse(old, new, failures="none", orders=1)
    topics = [step.place for step in found.steps if step.type == "AWS::SNS::Topic"]
    assert sorted(map(found.named, topics)) == ["North/Harbor/Topic", "North/Topic", "South/Topic"]


def test_lost_data_of_a_nested_stack_is_named_by_its_own_path(tmp_path: Path) -> None:
    """Of two nested stacks with the same logical IDs, the one whose data is lost is named, and its
    name acknowledges the problem.
    """
    old = synthesize_shops(tmp_path / "old", north_orders="north-orders")
    new = synthesize_shops(tmp_path / "new", north_orders="north-orders-2")

    found = rehearse(old, new, failures="none", orders=1)
    (error,) = [problem for problem in found.errors if problem.code == "rehearse-data-lost"]
    assert found.named(found.place_of(error)) == "North/Orders"
    assert error.construct == "Shops/North/Orders/Resource"

    name = "rehearse-data-lost@North/Orders"
    known = rehearse(old, new, failures="none", orders=1, acknowledge=[name])
    assert error.code in {problem.code for problem in known.acknowledged}
    changed_stacks = [step.place for step in known.steps if "Stack" in step.type]
    assert [known.named(place) for place in changed_stacks] == ["North"]


def synthesize_shops(folder: Path, *, north_orders: str) -> Path:
    """Synthesize two nested stacks with a table each; the name of the first one is given."""
    app = cdk.App(outdir=str(folder), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "Shops")
    for branch, table_name in (("North", north_orders), ("South", "south-orders")):
        dynamodb.Table(
            cdk.NestedStack(stack, branch),
            "Orders",
            partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
            table_name=table_name,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
    app.synth()
    return folder
