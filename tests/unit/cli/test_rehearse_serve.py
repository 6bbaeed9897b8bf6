"""``constructs-triton rehearse --serve``: an account for the tools of AWS."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from urllib.parse import urlsplit

import boto3
import numpy as np
import pytest
from botocore.exceptions import ClientError, WaiterError

from cdk_rehearse.cli.serve import _shell_lines
from cdk_rehearse.services.service_api import client
from constructs_triton.cli import main
from constructs_triton_client import TritonClient
from constructs_triton_core.errors import InvocationError

COMMAND = [sys.executable, "-m", "constructs_triton.cli", "rehearse", "--serve", "--json"]
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:writer"
TEMPLATE = {"Resources": {"Jobs": {"Type": "AWS::SQS::Queue"}, "News": {"Type": "AWS::SNS::Topic"}}}


@pytest.mark.e2e
def test_served_account_is_used_by_its_variables_until_ctrl_c(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The printed variables are enough to deploy. Ctrl-C ends the server with exit code 130.

    A call of an endpoint is refused with the command that runs its models.
    """
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        variables = json.loads(process.stdout.readline())
        for name in [each for each in os.environ if each.startswith("AWS_")]:
            monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        cloudformation = boto3.session.Session().client("cloudformation")
        cloudformation.create_change_set(
            StackName="Shop",
            ChangeSetName="first",
            ChangeSetType="CREATE",
            TemplateBody=json.dumps(TEMPLATE),
        )
        cloudformation.execute_change_set(StackName="Shop", ChangeSetName="first")
        waiter = cloudformation.get_waiter("stack_create_complete")
        waiter.wait(StackName="Shop", WaiterConfig={"Delay": 1})
        assert len(boto3.session.Session().client("sns").list_topics()["Topics"]) == 1
        expected = (
            f"run `constructs-triton local up --aws-endpoint-url {variables['AWS_ENDPOINT_URL']}`"
        )
        with pytest.raises(InvocationError, match=expected):
            TritonClient.for_endpoint("digits").infer({"pixels": np.full((1, 64), 0.1, "float32")})
        process.send_signal(signal.SIGINT)
        _, notes = process.communicate()
    assert (process.returncode, notes) == (130, "not simulated: AWS::SQS::Queue Shop/Jobs\n")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(
            ("127.0.0.1", int(urlsplit(variables["AWS_ENDPOINT_URL"]).port or 0))
        )


@pytest.mark.e2e
def test_served_account_has_stacks_in_several_regions() -> None:
    """``--region`` is the first Region; others have stacks and services of their own."""
    command = [*COMMAND, "--region", "eu-west-1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        variables = json.loads(process.stdout.readline())
        url, topics = variables["AWS_ENDPOINT_URL"], {}
        for region in ("eu-west-1", "us-west-2"):
            stacks = client("cloudformation", url, region)
            body = json.dumps({"Resources": {f"In{region[:2]}": {"Type": "AWS::SNS::Topic"}}})
            stacks.create_stack(StackName="Shop", TemplateBody=body)
            stacks.get_waiter("stack_create_complete").wait(
                StackName="Shop", WaiterConfig={"Delay": 1}
            )
            found = client("sns", url, region).list_topics()["Topics"]
            topics[region] = [each["TopicArn"].rpartition(":")[2][:9] for each in found]
        with pytest.raises(ClientError, match="mars is not a Region"):
            client("sns", url, "mars").list_topics()
        process.terminate()
    assert variables["AWS_REGION"] == "eu-west-1"
    assert topics == {"eu-west-1": ["Shop-Ineu"], "us-west-2": ["Shop-Inus"]}
    assert process.returncode == 0


def export_writer(value: str) -> dict[str, object]:
    """The template of a stack that passes a value on, as ``cross_region_references`` writes it."""
    exports = {"region": "eu-west-1", "exports": {"/cdk/exports/Users/Topic": value}}
    properties = {"ServiceToken": FUNCTION, "WriterProps": exports}
    return {
        "Resources": {
            "Exports": {"Type": "Custom::CrossRegionExportWriter", "Properties": properties}
        }
    }


def export_reader() -> dict[str, object]:
    """The template of the stack in the other Region: its reader, and a topic with the value."""
    name = "/cdk/exports/Users/Topic"
    imports = {name: f"{{{{resolve:ssm:{name}}}}}"}
    reader = {
        "ServiceToken": FUNCTION,
        "ReaderProps": {"region": "eu-west-1", "prefix": "Users", "imports": imports},
    }
    topic = {"TopicName": {"Fn::GetAtt": ["Imports", name]}}
    return {
        "Resources": {
            "Imports": {"Type": "Custom::CrossRegionExportReader", "Properties": reader},
            "Topic": {"Type": "AWS::SNS::Topic", "Properties": topic},
        }
    }


@pytest.mark.e2e
@pytest.mark.parametrize("first", ["us-east-1", "eu-west-1"])
def test_served_account_passes_values_to_another_region(first: str) -> None:
    """A stack in one Region gives a stack in another the value of ``cross_region_references``,
    whichever Region was first. It can be deleted after its reader, as in aws-cdk#34813, and takes
    the value back.
    """
    command = [*COMMAND, "--region", first]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["AWS_ENDPOINT_URL"]
        writer = client("cloudformation", url, "us-east-1")
        writer.create_stack(StackName="Owner", TemplateBody=json.dumps(export_writer("digits")))
        writer.get_waiter("stack_create_complete").wait(
            StackName="Owner", WaiterConfig={"Delay": 1}
        )
        reader = client("cloudformation", url, "eu-west-1")
        reader.create_stack(StackName="Users", TemplateBody=json.dumps(export_reader()))
        reader.get_waiter("stack_create_complete").wait(
            StackName="Users", WaiterConfig={"Delay": 1}
        )
        (found,) = client("sns", url, "eu-west-1").list_topics()["Topics"]
        writer.delete_stack(StackName="Owner")
        with pytest.raises(WaiterError):
            writer.get_waiter("stack_delete_complete").wait(
                StackName="Owner", WaiterConfig={"Delay": 1}
            )
        (owner,) = writer.describe_stacks(StackName="Owner")["Stacks"]
        reader.delete_stack(StackName="Users")
        reader.get_waiter("stack_delete_complete").wait(
            StackName="Users", WaiterConfig={"Delay": 1}
        )
        writer.delete_stack(StackName="Owner")
        writer.get_waiter("stack_delete_complete").wait(
            StackName="Owner", WaiterConfig={"Delay": 1}
        )
        left = client("ssm", url, "eu-west-1").describe_parameters()["Parameters"]
        process.terminate()
    assert found["TopicArn"].endswith(":digits")
    assert "/cdk/exports/Users/Topic is in use by stack(s) Users" in owner["StackStatusReason"]
    assert left == []


def role(name: str) -> dict[str, object]:
    """A role with a name."""
    principal = {"Service": "lambda.amazonaws.com"}
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal}
    document = {"Version": "2012-10-17", "Statement": statement}
    properties = {"RoleName": name, "AssumeRolePolicyDocument": document}
    return {"Type": "AWS::IAM::Role", "Properties": properties}


@pytest.mark.e2e
def test_regions_of_a_served_account_have_one_iam_and_read_each_others_outputs() -> None:
    """A role exists in all Regions, also in one that starts later, and its name only once."""
    output = {"StackName": "First", "OutputName": "Name", "Region": "us-east-1"}
    bodies = {
        ("First", "us-east-1"): {
            "Resources": {"Role": role("shared")},
            "Outputs": {"Name": {"Value": {"Ref": "Role"}}},
        },
        ("Second", "eu-west-1"): {
            "Resources": {"Role": role("of-second")},
            "Outputs": {"Got": {"Value": {"Fn::GetStackOutput": output}}},
        },
        ("Third", "us-west-2"): {"Resources": {"Role": role("of-second")}},
    }
    ends = {}
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["AWS_ENDPOINT_URL"]
        for (name, region), body in bodies.items():
            stacks = client("cloudformation", url, region)
            stacks.create_stack(StackName=name, TemplateBody=json.dumps(body))
            # The waiter returns too when a rollback has ended.
            with suppress(WaiterError):
                stacks.get_waiter("stack_create_complete").wait(
                    StackName=name, WaiterConfig={"Delay": 1}
                )
            ends[name] = stacks.describe_stacks(StackName=name)["Stacks"][0]
        roles = {each["RoleName"] for each in client("iam", url, "us-east-1").list_roles()["Roles"]}
        process.terminate()
    assert ends["Second"]["StackStatus"] == "CREATE_COMPLETE"
    assert ends["Second"]["Outputs"][0]["OutputValue"] == "shared"
    assert ends["Third"]["StackStatus"] == "ROLLBACK_COMPLETE"
    assert "of-second" in ends["Third"]["StackStatusReason"]
    assert roles >= {"shared", "of-second"}


@pytest.mark.e2e
def test_a_program_ends_the_served_account_without_an_error() -> None:
    """SIGTERM, with which a script or a service manager ends a server, gives exit code 0."""
    with subprocess.Popen(
        COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        json.loads(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        _, notes = process.communicate()
    assert (process.returncode, notes) == (0, "")


def test_shell_lines_set_the_variables_in_a_shell() -> None:
    """The lines replace a profile of the user, and bash reads the values as they are."""
    wanted = {"AWS_ENDPOINT_URL": "http://127.0.0.1:5000", "AWS_CONFIG_FILE": "/dev/null"}
    script = "\n".join([*_shell_lines(wanted), "env"])
    environment = {"PATH": os.environ["PATH"], "AWS_PROFILE": "work"}
    run = subprocess.run(
        ["bash", "-ec", script], capture_output=True, text=True, env=environment, check=True
    )
    found = dict(line.split("=", 1) for line in run.stdout.splitlines() if line.startswith("AWS_"))
    assert found == wanted


def test_serve_takes_nothing_to_rehearse(capsys: pytest.CaptureFixture[str]) -> None:
    """OLD and NEW beside ``--serve`` are an error, and nothing is started."""
    assert main(["rehearse", "--serve", "old", "new"]) == 2
    assert "--serve: rehearses nothing; remove OLD, NEW" in capsys.readouterr().err
