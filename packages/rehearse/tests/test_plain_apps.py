"""Rehearsals of an app without models: a table, queues, functions, events and a service of ECS."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cdk_rehearse.cli.text import report_lines
from cdk_rehearse.services.resource_schemas import stateful_types
from cdk_rehearse.updates.lost_data import LOSES_DATA
from cdk_rehearse.updates.report import Rehearsal
from cdk_rehearse.updates.simulation import simulate
from cdk_rehearse.updates.versions import Failures, Request, StackVersion, Version
from constructs_triton_core.cloud_assembly.template import Template

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

Resources = dict[str, dict[str, Any]]

FOREIGN = re.compile(r"sagemaker|triton|\bmodels?\b|endpoint|may read v|answers", re.IGNORECASE)
"""Words of apps with models."""


def _arn(name: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [name, "Arn"]}


def _resource(type: str, policy: str = "", **properties: Any) -> dict[str, Any]:
    policies = {"DeletionPolicy": policy, "UpdateReplacePolicy": policy} if policy else {}
    return {"Type": f"AWS::{type}", "Properties": properties, **policies}


def _table(policy: str = "", **properties: Any) -> dict[str, Any]:
    key = [{"AttributeName": "id", "KeyType": "HASH"}]
    attributes = [{"AttributeName": name, "AttributeType": "S"} for name in ("id", "customer")]
    given = {"KeySchema": key, "AttributeDefinitions": attributes, "BillingMode": "PAY_PER_REQUEST"}
    return _resource("DynamoDB::Table", policy, **{**given, **properties})


def _function(runtime: str) -> dict[str, Any]:
    code = {"ZipFile": "def handler(event, context): pass"}
    return _resource(
        "Lambda::Function", Code=code, Runtime=runtime, Handler="index.handler", Role=_arn("Role")
    )


def shop() -> Resources:
    """The resources of the app."""
    trust = {
        "Effect": "Allow",
        "Principal": {"Service": "lambda.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }
    task = {
        "Name": "web",
        "Image": "nginx",
        "Essential": True,
        "PortMappings": [{"ContainerPort": 80}],
    }
    target = {"ContainerName": "web", "ContainerPort": 80, "TargetGroupArn": {"Ref": "Targets"}}
    network = {"AwsvpcConfiguration": {"Subnets": [{"Ref": "Subnet"}]}}
    forward = {"Type": "forward", "TargetGroupArn": {"Ref": "Targets"}}
    # The CDK's target of a rule adds this policy to its queue.
    send = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": _arn("Jobs"),
    }
    redrive = {"deadLetterTargetArn": _arn("Dead"), "maxReceiveCount": 3}
    empty = {"Fn::GetAtt": ["Emptier", "Arn"]}
    balancer = "ElasticLoadBalancingV2"
    return {
        "Orders": _table("Retain"),
        "Dead": _resource("SQS::Queue"),
        "Jobs": _resource("SQS::Queue", RedrivePolicy=redrive),
        "JobsPolicy": _resource(
            "SQS::QueuePolicy",
            Queues=[{"Ref": "Jobs"}],
            PolicyDocument={"Version": "2012-10-17", "Statement": [send]},
        ),
        "Role": _resource(
            "IAM::Role", AssumeRolePolicyDocument={"Version": "2012-10-17", "Statement": [trust]}
        ),
        "Worker": _function("python3.13"),
        "Api": {**_function("nodejs22.x"), "DependsOn": ["Worker"]},
        "Source": _resource(
            "Lambda::EventSourceMapping",
            EventSourceArn=_arn("Jobs"),
            FunctionName={"Ref": "Worker"},
        ),
        "Bus": _resource("Events::EventBus", Name="shop"),
        "Placed": _resource(
            "Events::Rule",
            EventBusName={"Ref": "Bus"},
            EventPattern={"source": ["shop"]},
            Targets=[{"Id": "Jobs", "Arn": _arn("Jobs")}],
        ),
        "Vpc": _resource("EC2::VPC", CidrBlock="10.0.0.0/16"),
        "Subnet": _resource("EC2::Subnet", VpcId={"Ref": "Vpc"}, CidrBlock="10.0.0.0/24"),
        "Balancer": _resource(f"{balancer}::LoadBalancer", Subnets=[{"Ref": "Subnet"}]),
        "Targets": _resource(
            f"{balancer}::TargetGroup", VpcId={"Ref": "Vpc"}, Port=80, Protocol="HTTP"
        ),
        "Listener": _resource(
            f"{balancer}::Listener",
            LoadBalancerArn={"Ref": "Balancer"},
            Port=80,
            Protocol="HTTP",
            DefaultActions=[forward],
        ),
        "Cluster": _resource("ECS::Cluster"),
        "Task": _resource("ECS::TaskDefinition", ContainerDefinitions=[task], NetworkMode="awsvpc"),
        "Service": _resource(
            "ECS::Service",
            Cluster={"Ref": "Cluster"},
            TaskDefinition={"Ref": "Task"},
            DesiredCount=2,
            LoadBalancers=[target],
            NetworkConfiguration=network,
        ),
        "Alerts": _resource("SNS::Topic"),
        "Uploads": _resource("S3::Bucket"),
        "Emptier": _function("nodejs22.x"),
        "Empties": {
            "Type": "Custom::S3AutoDeleteObjects",
            "Properties": {"ServiceToken": empty, "BucketName": {"Ref": "Uploads"}},
        },
        "Log": _resource("Logs::LogGroup", "Retain"),
    }


def edited(**changed: Any) -> Resources:
    """The app with other properties or resources, by logical ID; ``None`` removes one."""
    resources = copy.deepcopy(shop())
    for name, value in changed.items():
        if value is None:
            del resources[name]
        elif "Type" in value:
            resources[name] = value
        else:
            properties = {**resources[name]["Properties"], **value}
            given = {key: setting for key, setting in properties.items() if setting is not None}
            resources[name]["Properties"] = given
    return resources


def rehearsal(
    old: Resources | None, new: Resources | None, failures: Failures = "none"
) -> Rehearsal:
    """Rehearse the update of a template alone."""
    return simulate(Request(_version(old), _version(new), failures=failures))


def _version(resources: Resources | None) -> Version:
    """The stack with these resources; no stack without any."""
    if resources is None:
        return Version(())
    return Version((StackVersion("Shop", Template({"Resources": resources})),))


def losses(found: Rehearsal) -> dict[str, str]:
    """The message of each problem with data, by logical ID."""
    return {
        problem.path: problem.message for problem in found.problems if problem.code in LOSES_DATA
    }


EDITS = {
    "create": (None, shop()),
    "update": (
        shop(),
        edited(Worker={"Runtime": "python3.14", "MemorySize": 512}, Service={"DesiredCount": 4}),
    ),
    "failure": (shop(), edited(Orders={"NoSuchProperty": 1})),
    "deletion": (shop(), None),
}


@pytest.mark.parametrize("edit", EDITS)
def test_report_has_no_word_about_models(edit: str) -> None:
    """The text of a report names nothing of SageMaker,
    and what is not simulated takes a few lines.
    """
    found = rehearsal(*EDITS[edit])
    text = "\n".join(report_lines(found))
    assert FOREIGN.findall(text) == []
    (what,) = re.findall(
        r"not simulated +(what resources of \d+ types do \(DynamoDB, .*?\))", text, re.DOTALL
    )
    assert "SQS" in what
    assert [step.logical_id for step in found.steps] or edit == "failure"


def test_small_changes_have_no_problem() -> None:
    """Another runtime, more memory and more tasks replace nothing and lose nothing."""
    found = rehearsal(*EDITS["update"])
    assert found.status == {"Shop": "UPDATE_COMPLETE"}
    assert (found.replaced, found.problems) == ((), ())


def _database(name: str) -> dict[str, Any]:
    return _resource(
        "RDS::DBInstance", "Snapshot", DBName=name, Engine="mysql", AllocatedStorage="20"
    )


CUSTOMER = [{"AttributeName": "customer", "KeyType": "HASH"}]
REPLACED = {
    "retained": (
        shop(),
        edited(Orders={"TableName": "orders"}),
        "Orders",
        "of TableName; its data stays",
    ),
    "key schema": (
        shop(),
        edited(Orders={"KeySchema": CUSTOMER}),
        "Orders",
        "of KeySchema; its data stays",
    ),
    "deleted": (
        edited(Orders=_table()),
        edited(Orders=_table(TableName="orders")),
        "Orders",
        "of TableName; its data is deleted",
    ),
    "queue": (
        shop(),
        edited(Jobs={"FifoQueue": True}),
        "Jobs",
        "of FifoQueue; its data is deleted",
    ),
    "snapshot": (
        edited(Base=_database("shop")),
        edited(Base=_database("store")),
        "Base",
        "of DBName; AWS makes a snapshot",
    ),
    "emptied bucket": (
        shop(),
        edited(Uploads={"BucketName": "new"}),
        "Uploads",
        "of BucketName; its data is deleted",
    ),
    "removed": (
        shop(),
        edited(Dead=None, Jobs={"RedrivePolicy": None}),
        "Dead",
        "removed; its data is deleted",
    ),
    "moved": (shop(), edited(Orders=None, Sales=_table()), "Orders", "removed; its data stays"),
    "key": (
        edited(Key=_resource("KMS::Key", KeyPolicy={})),
        shop(),
        "Key",
        "can never be read again",
    ),
}


@pytest.mark.parametrize("edit", REPLACED)
def test_data_that_is_lost_is_reported(edit: str) -> None:
    """The first problem names the resource, the property that replaces it, and what becomes of the
    data; data that AWS deletes is an error.
    """
    old, new, place, message = REPLACED[edit]
    report = rehearsal(old, new)
    found = losses(report)
    assert list(found) == [place]
    assert message in found[place]
    assert report.problems[0].path == place
    is_deleted = "deleted" in message or "never" in message
    assert [problem.path for problem in report.errors] == ([place] if is_deleted else [])


def test_protected_data_stays() -> None:
    """AWS does not delete a protected table, so it is left behind;
    only its own deletion is an error.
    """
    protected = edited(Orders=_table("Delete", DeletionProtectionEnabled=True))

    # An update that removes it leaves it behind,
    removed = rehearsal(protected, edited(Orders=None))
    assert [leftover.logical_id for leftover in removed.leftovers] == ["Orders"]
    assert "protected against deletion" in removed.leftovers[0].reason
    assert losses(removed) == {}

    # and so does one that replaces it.
    replaced = rehearsal(protected, edited(Orders=_table("Delete", KeySchema=CUSTOMER)))
    assert "its data stays in the old one" in losses(replaced)["Orders"]

    # The deletion of its stack fails, later or in a rollback,
    created = rehearsal(None, protected, failures="each")
    assert created.errors == []
    assert any("deleting NEW later fails: DELETE_FAILED" in line for line in report_lines(created))
    assert {failure.status for failure in created.failures} == {"ROLLBACK_FAILED"}

    # and that is an error if the deletion is what is rehearsed.
    codes = {problem.code for problem in rehearsal(protected, None).errors}
    assert codes - set(LOSES_DATA) == {"rehearse-update-fails"}


def test_transform_is_not_simulated() -> None:
    """A template with a transform, as of ``add_rotation_single_user``, is rehearsed as it is."""
    rotation = {"Location": {"ApplicationId": "arn:aws:serverlessrepo:a", "SemanticVersion": "1.1"}}
    application = {"Type": "AWS::Serverless::Application", "Properties": rotation}
    template = {
        "Transform": "AWS::Serverless-2016-10-31",
        "Resources": edited(Rotation=application),
    }
    transformed = Version((StackVersion("Shop", Template(template)),))

    found = simulate(Request(_version(shop()), transformed, failures="none"))

    assert found.status == {"Shop": "UPDATE_COMPLETE"}, found.reason
    assert "AWS::Serverless::Application Rotation" in found.not_simulated
    assert "Transform AWS::Serverless-2016-10-31" in found.not_simulated


def test_table_with_a_name_is_not_replaced_in_place() -> None:
    """CloudFormation refuses another key schema for a table whose template gives its name."""
    named = edited(Orders={"TableName": "orders"})
    other = edited(Orders={"TableName": "orders", "KeySchema": CUSTOMER})
    found = rehearsal(named, other)
    assert [problem.code for problem in found.errors] == ["rehearse-name-collision"]
    assert "custom-named resource requires replacing" in found.reason
    assert losses(found) == {}


def test_deletion_names_the_data_that_is_deleted() -> None:
    """The retained table and log group are left, and everything else with data is deleted."""
    found = rehearsal(shop(), None)
    assert sorted(losses(found)) == ["Dead", "Jobs", "Uploads"]
    assert {leftover.logical_id for leftover in found.leftovers} == {"Orders", "Log"}


def test_types_with_data_are_those_of_aws() -> None:
    """The list of AWS in cfn-lint has tables, queues, buckets, keys and file systems,
    and no functions.
    """
    assert stateful_types() >= {
        "AWS::DynamoDB::Table",
        "AWS::SQS::Queue",
        "AWS::S3::Bucket",
        "AWS::KMS::Key",
        "AWS::EFS::FileSystem",
        "AWS::RDS::DBInstance",
    }
    assert not {"AWS::Lambda::Function", "AWS::CloudFormation::Stack"} & stateful_types()


#: The program without the constructs: their packages cannot be imported, and nothing imports them.
ALONE = """
import sys
for name in ("constructs_triton", "triton_model_check", "constructs_triton_tools", "aws_cdk"):
    sys.modules[name] = None
import cdk_rehearse.construct_libraries as libraries
libraries.construct_libraries = lambda: ()
from cdk_rehearse.cli import main
from cdk_rehearse.updates import rehearsing, worker
rehearsing._PROCESS.call = lambda request, **limits: worker.answer(request)
raise SystemExit(main(sys.argv[1:]))
"""


def _run_alone(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ALONE, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_program_runs_without_the_constructs(tmp_path: Path) -> None:
    """``cdk-rehearse OLD NEW`` needs no command, and exits with 1 if the update has an error."""
    (tmp_path / "shop.json").write_text(json.dumps({"Resources": shop()}))
    other = edited(Orders={"TableName": "orders"}, Bus={"NoSuchProperty": 1})
    (tmp_path / "new.json").write_text(json.dumps({"Resources": other}))
    run = _run_alone(
        "shop.json", "new.json", "--failures", "none", "--orders", "1", folder=tmp_path
    )
    assert (run.returncode, run.stderr) == (1, "")
    assert "error[rehearse-update-fails]" in run.stdout


@pytest.mark.parametrize(
    "words", [["--help"], [], ["old.json", "new.json"], ["--fleet", "x", "a", "b"]]
)
def test_help_and_errors_have_no_word_about_models(words: list[str], tmp_path: Path) -> None:
    """The help names all options but the one about fleets;
    the name of the program has no command in it.
    """
    run = _run_alone(*words, folder=tmp_path)
    assert FOREIGN.findall(run.stdout + run.stderr) == []
    assert run.returncode == (0 if words == ["--help"] else 2)
    if words == ["--help"]:
        assert run.stdout.startswith("usage: cdk-rehearse [options] [OLD NEW ...]")
        assert {
            "--deployed",
            "--stack",
            "--parameters",
            "--failures",
            "--orders",
            "--serve",
            "--json",
        } <= {*re.findall(r"--[a-z]+", run.stdout)}
