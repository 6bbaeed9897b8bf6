"""Rehearsals of several stacks, of which one imports what another exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cdk_rehearse import rehearse
from cdk_rehearse.updates.report import Rehearsal
from cdk_rehearse.updates.simulation import simulate
from cdk_rehearse.updates.versions import Request, StackVersion, Version
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.errors import InvalidValueError

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

TOPIC = {"Type": "AWS::SNS::Topic"}
IMPORTED = {"Fn::ImportValue": {"Fn::Sub": "Producer:${Name}"}}


def producer(*, exports: str = "Producer:Name", topic_name: str = "alerts") -> StackVersion:
    """A topic whose name is exported; not, if ``exports`` is empty."""
    output = {"Value": {"Fn::GetAtt": ["Topic", "TopicName"]}, "Export": {"Name": exports}}
    resources = {"Topic": {**TOPIC, "Properties": {"TopicName": topic_name}}}
    return _version(
        "Producer", {"Resources": resources, "Outputs": {"Name": output} if exports else {}}
    )


def consumer(*, imports: bool = True) -> StackVersion:
    """A topic that shows the imported name."""
    shown = {"DisplayName": IMPORTED} if imports else {}
    parameters = {"Name": {"Type": "String", "Default": "Name"}}
    resources = {"Reader": {**TOPIC, "Properties": {"TopicName": "reader", **shown}}}
    return _version("Consumer", {"Parameters": parameters, "Resources": resources})


def _version(name: str, body: dict[str, Any]) -> StackVersion:
    return StackVersion(name, Template(body), names=frozenset({name}))


def rehearsal(old: tuple[StackVersion, ...], new: tuple[StackVersion, ...]) -> Rehearsal:
    return simulate(Request(Version(old), Version(new), failures="none"))


def test_only_the_stack_of_the_step_fails() -> None:
    """If a step fails, the step of the same logical ID in another stack, such
    as a stage, does not.
    """
    # Given two stages, in which the topic is created after a bucket that is retained,
    bucket = {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain"}
    body = {"Resources": {"Bucket": bucket, "Topic": {**TOPIC, "DependsOn": "Bucket"}}}
    stages = Version((_version("Beta", body), _version("Prod", body)))

    found = simulate(Request(Version(()), stages, orders=1))

    # each failure of a topic leaves the bucket of its own stage behind.
    assert [step.stack for step in found.steps if step.logical_id == "Topic"] == ["Beta", "Prod"]
    failures = [failure for failure in found.failures if failure.logical_id == "Topic"]
    left = [[bucket.physical_id for bucket in failure.leftovers] for failure in failures]
    (of_beta,), (of_prod,) = left
    assert of_beta.startswith("beta-")
    assert of_prod.startswith("prod-")


@pytest.mark.parametrize(
    ("new", "reason", "fix"),
    [
        (
            (producer(exports=""), consumer(imports=False)),
            "Producer:Name cannot be deleted as it is in use",
            "keep the export for one more deployment",
        ),
        (
            (producer(topic_name="alarms"), consumer()),
            "Producer:Name cannot be updated as it is in use",
            "under another construct ID, and keep the old one",
        ),
    ],
)
def test_export_in_use_cannot_be_removed_or_changed(
    new: tuple[StackVersion, ...], reason: str, fix: str
) -> None:
    """The producer is deployed first, while the old consumer still imports the value."""
    found = rehearsal((producer(), consumer()), new)
    assert found.status == {"Producer": "UPDATE_ROLLBACK_COMPLETE"}
    assert found.reason == f"Export {reason} by Consumer"
    (problem,) = found.problems
    assert problem.code == "rehearse-update-fails"
    assert "Stack.export_value" in problem.hint
    assert fix in problem.hint


def test_export_is_removed_in_two_deployments() -> None:
    """After the consumer no longer imports the value, its export can be removed."""
    kept, unused = (
        (producer(), consumer(imports=False)),
        (producer(exports=""), consumer(imports=False)),
    )
    assert rehearsal((producer(), consumer()), kept).problems == ()
    found = rehearsal(kept, unused)
    assert found.problems == ()
    assert found.deletion is not None
    assert found.deletion.succeeds


def test_stack_whose_export_is_in_use_is_not_deleted() -> None:
    """CloudFormation refuses the deletion before it begins, and the stack keeps its status."""
    found = rehearsal((producer(), consumer()), (consumer(),))
    assert found.status == {"Consumer": "UPDATE_COMPLETE", "Producer": "CREATE_COMPLETE"}
    assert (
        found.reason
        == "Delete canceled. Cannot delete export Producer:Name as it is in use by Consumer"
    )
    assert found.steps == ()
    assert [problem.code for problem in found.problems] == ["rehearse-update-fails"]


def test_one_stack_of_several_is_selected() -> None:
    """Of another stack, only the imports are known: their values are not simulated."""
    old = Version((producer(), consumer()))
    found = rehearse(
        old, Version((producer(), consumer(imports=False))), stacks=["Consumer"], failures="none"
    )
    assert [(step.stack, step.logical_id) for step in found.steps] == [("Consumer", "Reader")]
    assert "value of an export Producer:Name" in found.not_simulated


def test_template_alone_is_compared_with_one_stack(tmp_path: Path) -> None:
    """A template has the name of its file, which selects a stack; otherwise ``stacks`` has to."""
    (tmp_path / "manifest.json").write_text('{"version": "36.0.0", "artifacts": {}}')
    both = Version(tuple(_in_folder(each, tmp_path) for each in (producer(), consumer())))
    alone = Version((producer(topic_name="alarms"),))
    found = rehearse(alone, both, failures="none", orders=1)
    assert found.status == {"Producer": "UPDATE_COMPLETE"}
    other = Version((_version("Other", dict(alone.stacks[0].template.body)),))
    with pytest.raises(InvalidValueError, match="pass --stack with one of Producer, Consumer"):
        rehearse(other, both)
    found = rehearse(both, other, stacks=["Producer"], failures="none", orders=1)
    assert found.replaced == ("Topic",)


def _in_folder(version: StackVersion, folder: Path) -> StackVersion:
    return StackVersion(version.name, version.template, folder, names=version.names)
