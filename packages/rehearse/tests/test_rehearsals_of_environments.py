"""Rehearsals of apps whose stacks are in several accounts and Regions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_assembly import endpoint, of_code, write_assembly

from cdk_rehearse.cli.text import report_lines
from cdk_rehearse.updates.environments import by_environment
from cdk_rehearse.updates.report import Rehearsal
from cdk_rehearse.updates.simulation import simulate
from cdk_rehearse.updates.versions import (
    NONE,
    Failures,
    Request,
    StackVersion,
    Version,
    read_version,
)
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.errors import InvalidValueError

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

STAGING, PRODUCTION = "aws://111111111111/eu-west-1", "aws://222222222222/us-east-1"
VIRGINIA, IRELAND = "aws://111111111111/us-east-1", "aws://111111111111/eu-west-1"
Resources = dict[str, Any]
PARAMETER = "/cdk/exports/Reader/Writeruseast1RefTopic9D7CE2C3"


def stack(name: str, environment: str, resources: Resources, **outputs: Any) -> StackVersion:
    account, _, region = environment.removeprefix("aws://").partition("/")
    values = {output: {"Value": value} for output, value in outputs.items()}
    template = Template({"Resources": resources, "Outputs": values})
    return StackVersion(name, template, None, account, region, frozenset({name}))


def topic(name: str, **properties: Any) -> Resources:
    return {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": name, **properties}}}


def rehearsal(
    old: tuple[StackVersion, ...],
    new: tuple[StackVersion, ...],
    fleets: Mapping[str, int] | None = None,
    failures: Failures = "none",
) -> Rehearsal:
    return simulate(Request(Version(old), Version(new), fleets or {}, failures, 1))


def stages(*archives: str, name: str = "Digits") -> tuple[StackVersion, ...]:
    """The same stack and endpoint in two accounts, scaled to 4 instances, each with its archive."""
    return tuple(
        stack(name, place, endpoint(archive=archive, scaled_to=4))
        for place, archive in zip((STAGING, PRODUCTION), archives, strict=True)
    )


def test_unchanged_stages_with_the_same_names_have_no_problem() -> None:
    """Each account has its own endpoint of the name,
    and the report adds the environment to both names.
    """
    app = stages("one.tar.gz", "one.tar.gz")
    found = rehearsal(app, app, failures="each")
    assert found.status == {
        f"Digits ({place})": "UPDATE_COMPLETE" for place in (STAGING, PRODUCTION)
    }
    assert [fleet.endpoint for fleet in found.instances] == [
        f"digits ({place})" for place in (STAGING, PRODUCTION)
    ]
    assert (found.steps, found.problems, found.callers) == ((), (), ())
    assert found.way_back is not None
    assert found.way_back.succeeds
    assert found.deletion is not None
    assert found.deletion.succeeds


def test_problem_names_its_environment_and_the_step_of_the_whole_update(tmp_path: Path) -> None:
    """The steps of the second environment follow those of the first,
    also in failures and messages.
    """
    # Given a topic in the first environment, and an endpoint in the second one,
    before = (stack("A", STAGING, topic("alerts")), stack("B", PRODUCTION, endpoint()))
    # whose role can no longer read its model after the update,
    narrowed = endpoint(readable="two.tar.gz")
    after = (
        stack("A", STAGING, topic("alerts", DisplayName="x")),
        stack("B", PRODUCTION, narrowed),
    )

    folder = write_assembly(tmp_path / "assets", {})
    found = simulate(Request(_with_assets(before, folder), _with_assets(after, folder), orders=1))

    # the one step of the first environment comes first,
    assert [step.number for step in found.steps] == list(range(1, len(found.steps) + 1))
    assert [step.stack for step in found.steps] == ["A", *["B"] * (len(found.steps) - 1)]
    assert {failure.logical_id for failure in found.failures if failure.step == 1} == {"Topic"}
    assert max(failure.step for failure in found.failures) > 1

    # and the problem is that of the second environment, from the step that causes it on.
    (lost,) = of_code(found.problems, "rehearse-reader-loses-access")
    (policy,) = [step for step in found.steps if step.logical_id == "Policy"]
    assert lost.path == f"endpoint digits ({PRODUCTION})"
    assert lost.message.startswith(f"from step {policy.number} (update Policy) on")


def _with_assets(stacks: tuple[StackVersion, ...], folder: Path) -> Version:
    """Return a version whose stacks are of the assembly in this folder."""
    return Version(tuple(replace(bare, directory=folder) for bare in stacks))


def test_rehearsal_stops_at_the_first_environment_that_fails() -> None:
    """The environments after it are not reached, as with ``cdk deploy --all``,
    and the report says so.
    """
    old = (stack("A", STAGING, topic("alerts")), stack("B", PRODUCTION, topic("alerts")))
    new = (
        stack("A", STAGING, topic("alerts", Unknown="x")),
        stack("B", PRODUCTION, topic("others")),
    )
    found = rehearsal(old, new)
    assert found.status == {"A": "UPDATE_ROLLBACK_COMPLETE"}
    assert [(problem.code, problem.path) for problem in found.problems] == [
        ("rehearse-update-fails", f"Topic ({STAGING})")
    ]
    assert f"{PRODUCTION}, since the update fails before" in found.not_simulated


def test_stage_that_leaves_the_app_is_no_deletion_of_the_app() -> None:
    """Its endpoint is reported as deleted, in its environment only."""
    whole = stages("one.tar.gz", "one.tar.gz")
    found = rehearsal(whole, whole[:1])
    stopped = [
        problem.path for problem in found.problems if problem.code == "rehearse-serving-stops"
    ]
    assert stopped == [f"endpoint digits ({PRODUCTION})"]
    assert found.callers == (f"endpoint digits ({PRODUCTION}) no longer exists",)


def test_fleet_belongs_to_every_environment_that_has_the_endpoint() -> None:
    """With the environment behind its name, as in the report, it belongs to this one only."""
    app = stages("one.tar.gz", "one.tar.gz")
    found = rehearsal(app, app, {"digits": 3, f"digits ({PRODUCTION})": 2})
    assert [fleet.before for fleet in found.instances] == [3, 2]
    names = (
        stack("A", STAGING, endpoint(name="one")),
        stack("B", PRODUCTION, endpoint(name="two")),
    )
    with pytest.raises(
        InvalidValueError, match=r"logical ID of one \(Endpoint\), two \(Endpoint\)"
    ):
        rehearsal(names, names, {"three": 1})


def test_quota_is_that_of_an_account_in_a_region() -> None:
    """Instances of several environments are not added."""
    found = rehearsal((), stages("one.tar.gz", "one.tar.gz"))
    text = " ".join(" ".join(report_lines(found)).split())
    assert text.count('the quota "ml.g5.xlarge for endpoint usage" in aws:') == 2


def test_stack_without_an_environment_is_in_the_only_known_one() -> None:
    """A template alone is compared in the account and Region of the assembly,
    or in the default ones.
    """
    bare = replace(stack("A", STAGING, topic("alerts")), account="", region="")
    assert list(by_environment(Request(Version((bare,)), Version(stages("x", "x")[:1])))) == [
        STAGING
    ]
    assert list(by_environment(Request(NONE, Version((bare,))))) == ["aws://123456789012/us-east-1"]
    assert len(by_environment(Request(Version((bare,)), Version(stages("x", "x"))))) == 3


def writer(value: Any = None, *, exports: bool = True) -> Resources:
    """A topic in Virginia, whose ARN the CDK writes to a parameter in Ireland."""
    values = {PARAMETER: value or {"Ref": "Topic"}} if exports else {}
    properties = {
        "ServiceToken": "arn:x",
        "WriterProps": {"region": "eu-west-1", "exports": values},
    }
    return {"Writer": {"Type": "Custom::CrossRegionExportWriter", "Properties": properties}}


def reader(*, imports: bool = True) -> Resources:
    """A policy in Ireland for the topic, which must be the ARN of a topic."""
    role = {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": []}}
    found: Resources = {"Role": {"Type": "AWS::IAM::Role", "Properties": role}}
    if imports:
        values = {PARAMETER: f"{{{{resolve:ssm:{PARAMETER}}}}}"}
        properties = {
            "ServiceToken": "arn:x",
            "ReaderProps": {"region": "eu-west-1", "imports": values},
        }
        found["Reader"] = {"Type": "Custom::CrossRegionExportReader", "Properties": properties}
        found["Policy"] = publishes({"Fn::GetAtt": ["Reader", PARAMETER]})
    return found


def publishes(resource: Any) -> Resources:
    statement = {"Effect": "Allow", "Action": "sns:Publish", "Resource": resource}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    properties = {"PolicyName": "p", "PolicyDocument": document, "Roles": [{"Ref": "Role"}]}
    return {"Type": "AWS::IAM::Policy", "Properties": properties}


def app(folder: Path, code: str, resources: Resources, others: Resources) -> Version:
    """Write an assembly with the stack ``Writer``, whose function has this code,
    and the stack ``Reader``.
    """
    (folder / "asset.1").mkdir(parents=True)
    (folder / "asset.1" / "index.js").write_text(code)
    source = {"source": {"path": "asset.1", "packaging": "zip"}, "destinations": {}}
    (folder / "Writer.assets.json").write_text(json.dumps({"version": "1", "files": {"1": source}}))
    artifacts: dict[str, Any] = {
        "Writer.assets": {
            "type": "cdk:asset-manifest",
            "properties": {"file": "Writer.assets.json"},
        }
    }
    # The stack that reads is declared first, and depends on the other one.
    for name, environment, needs, body in (
        ("Reader", IRELAND, ["Writer"], others),
        ("Writer", VIRGINIA, ["Writer.assets"], resources),
    ):
        (folder / f"{name}.template.json").write_text(json.dumps({"Resources": body}))
        artifacts[name] = {
            "type": "aws:cloudformation:stack",
            "environment": environment,
            "dependencies": needs,
            "properties": {"templateFile": f"{name}.template.json"},
        }
    (folder / "manifest.json").write_text(json.dumps({"version": "36.0.0", "artifacts": artifacts}))
    return read_version(folder)


GUARDED = "throw new Error('Some exports have changed!\\n')"


@pytest.mark.parametrize("code", [GUARDED, "putParameter"])
def test_reference_to_another_region_is_resolved(tmp_path: Path, code: str) -> None:
    """The stack that reads gets the value of the other Region,
    so nothing changes and nothing is opaque.
    """
    whole = app(tmp_path, code, topic("alerts") | writer(), reader())
    found = simulate(Request(whole, whole, {}, "each", 2))
    assert found.status == {"Writer": "UPDATE_COMPLETE", "Reader": "UPDATE_COMPLETE"}
    assert (found.steps, found.problems) == ((), ())
    assert not any("Parameter" in note for note in found.not_simulated)


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (topic("others") | writer(), f"Some exports have changed!\n{PARAMETER}"),
        (
            topic("alerts") | writer(exports=False),
            f"updated: \n{PARAMETER} is in use by stack(s) Reader",
        ),
    ],
)
def test_value_that_is_read_can_neither_change_nor_be_removed(
    tmp_path: Path, new: Resources, reason: str
) -> None:
    """The CDK's function up to 2.252 refuses it, also in the rollback (aws-cdk issue 30771).

    What the hint says succeeds: first the stack that reads without the reference, and then the new
    version.
    """
    old = app(tmp_path / "old", GUARDED, topic("alerts") | writer(), reader())
    after = app(tmp_path / "new", GUARDED, new, reader(imports=False))
    found = simulate(Request(old, after, {}, "none", 1))
    assert found.status == {"Writer": "UPDATE_ROLLBACK_FAILED"}
    assert reason in found.reason
    assert "npx cdk deploy --exclusively" in found.problems[0].hint
    between = app(tmp_path / "between", GUARDED, topic("alerts") | writer(), reader(imports=False))
    for versions in ((old, between), (between, after)):
        assert simulate(Request(*versions, {}, "none", 1)).problems == ()


def test_changed_value_is_not_written_again_by_a_later_release(tmp_path: Path) -> None:
    """The stack that reads keeps the former ARN, and the report says so."""
    old = app(tmp_path / "old", "putParameter", topic("alerts") | writer(), reader())
    new = app(tmp_path / "new", "putParameter", topic("others") | writer(), reader())
    found = simulate(Request(old, new, {}, "none", 1))
    assert found.status == {"Writer": "UPDATE_COMPLETE", "Reader": "UPDATE_COMPLETE"}
    assert [step.stack for step in found.steps] == ["Writer"] * len(found.steps)
    kept = "the CDK keeps the former value in the other Region: Writeruseast1RefTopic9D7CE2C3"
    assert kept in found.not_simulated


def test_output_of_another_region_has_the_value_of_its_version() -> None:
    """A change of the output of one stack updates the stack that reads it
    with Fn::GetStackOutput.
    """
    output = {"StackName": "Writer", "OutputName": "Arn", "Region": "us-east-1"}
    role = reader(imports=False) | {"Policy": publishes({"Fn::GetStackOutput": output})}
    old, new = (
        (
            stack("Writer", VIRGINIA, topic(name), Arn={"Ref": "Topic"}),
            replace(stack("Reader", IRELAND, role), needs=frozenset({VIRGINIA})),
        )
        for name in ("alerts", "others")
    )
    found = rehearsal(old, new)
    assert [(step.stack, step.action) for step in found.steps][-1] == ("Reader", "update")
    assert found.problems == ()


def bucket(name: Any) -> Resources:
    return {"Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": name}}}


def role(name: Any) -> Resources:
    trust = {"Version": "2012-10-17", "Statement": []}
    properties = {"RoleName": name, "AssumeRolePolicyDocument": trust}
    return {"Role": {"Type": "AWS::IAM::Role", "Properties": properties}}


@pytest.mark.parametrize("resources", [bucket("models"), role("Readers")])
def test_name_is_unique_in_all_regions_of_an_account(resources: Resources) -> None:
    """The second Region cannot have a role or a bucket of the name, which the rehearsal of each
    Region alone does not see.
    """
    new = (stack("App", VIRGINIA, resources), stack("App", IRELAND, resources))
    (found,) = rehearsal((), new).problems
    (logical_id,) = resources
    assert found.code == "rehearse-name-collision"
    assert found.path == f"{logical_id} ({IRELAND})"
    assert f"that of {logical_id} in App ({VIRGINIA})" in found.message
    assert "self.region" in found.hint


def test_bucket_is_unique_in_all_accounts_and_a_role_is_not() -> None:
    """Two accounts have a role of the same name each, but only one can have the bucket."""
    resources = {**bucket("models"), **role("Readers")}
    new = (stack("A", STAGING, resources), stack("B", PRODUCTION, resources))
    assert [problem.path for problem in rehearsal((), new).problems] == [f"Bucket ({PRODUCTION})"]


@pytest.mark.parametrize(
    "name", [None, {"Fn::Sub": "models-${AWS::Region}"}, {"Fn::ImportValue": "Name"}]
)
def test_name_that_differs_or_is_not_known_is_no_collision(name: Any) -> None:
    """A name with the Region in it is another one there; what is not known is no error."""
    new = (stack("App", VIRGINIA, bucket(name)), stack("App", IRELAND, bucket(name)))
    codes = {problem.code for problem in rehearsal((), new).problems}
    assert "rehearse-name-collision" not in codes


def test_names_that_are_deployed_are_no_collision() -> None:
    """What OLD has already was accepted by AWS, for example from partitions that are not known."""
    app = (stack("App", VIRGINIA, role("Readers")), stack("App", IRELAND, role("Readers")))
    assert rehearsal(app, app).problems == ()
