"""Which code the Lambda functions of a simulated account run, with which variables,
and what they print.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from shared_endpoint import trust

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.account import copy_account
from cdk_rehearse.construct_libraries import library_handler
from cdk_rehearse.copies import Copy, Original, copy_process
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_functions import CODE_DIRECTORY, CODE_FOLDER

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_functions")]

#: Prints its variables, and what a terminal or a CI service would act on.
FUNCTION = """
import os
print("\\x1b]0;TITLE\\x07")
print("::error::printed")
def handler(event, context):
    return dict(os.environ)
"""
HOSTILE = {
    "HOME": "/elsewhere",
    "PATH": "/elsewhere",
    "AWS_ENDPOINT_URL_S3": "http://192.0.2.1",
    "_HANDLER": "os.getcwd",
    "SIMULATED_FUNCTION_TIMEOUT": "1",
}


def zipped(files: dict[str, str]) -> bytes:
    """A ``.zip`` file with these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def library_code(folder: str) -> bytes:
    """The code of a function of this library, as the CDK packs it."""
    root = CODE_DIRECTORY / CODE_FOLDER
    paths = [*root.glob("*.py"), *(root / folder).glob("*.py")]
    return zipped({path.relative_to(CODE_DIRECTORY).as_posix(): path.read_text() for path in paths})


def create(aws: SimulatedAccount, code: bytes, handler: str) -> None:
    """Create the function ``f`` over the API, with variables that would replace
    those of the account.
    """
    role = aws.client("iam").create_role(
        RoleName="r", AssumeRolePolicyDocument=json.dumps(trust("lambda"))
    )
    policy = {
        "Version": "2012-10-17",
        "Statement": {"Effect": "Allow", "Action": "logs:*", "Resource": "*"},
    }
    aws.client("iam").put_role_policy(
        RoleName="r", PolicyName="p", PolicyDocument=json.dumps(policy)
    )
    aws.client("logs").create_log_group(logGroupName="/aws/lambda/f")
    aws.client("lambda").create_function(
        FunctionName="f",
        Runtime="python3.13",
        Role=role["Role"]["Arn"],
        Handler=handler,
        Code={"ZipFile": code},
        Environment={"Variables": {**HOSTILE, "GIVEN": "1"}},
    )


def invoke(aws: SimulatedAccount) -> dict[str, Any]:
    """The response to an invocation."""
    response: dict[str, Any] = aws.client("lambda").invoke(FunctionName="f", Payload=b"{}")
    return response


def log(aws: SimulatedAccount) -> str:
    """All that the function has printed."""
    events = aws.client("logs").filter_log_events(logGroupName="/aws/lambda/f")["events"]
    return "\n".join(event["message"] for event in events)


@pytest.mark.parametrize("folder", ["adoption", "model_sync", "scaling_guard", "update_check"])
def test_handler_is_that_of_the_code(folder: str) -> None:
    """A function of this library is recognized by its code, and its handler is known;
    a change is not.
    """
    assert library_handler(library_code(folder)) == f"{CODE_FOLDER}.{folder}.handler.handler"
    assert library_handler(zipped({"index.py": FUNCTION})) is None


def test_template_chooses_neither_handler_nor_variables(capfd: pytest.CaptureFixture[str]) -> None:
    """The library's own handler runs, though the function names one of the standard library."""
    with SimulatedAccount() as aws:
        create(aws, library_code("adoption"), "this.s")
        assert invoke(aws)["FunctionError"] == "Unhandled"
        assert "constructs_triton_functions/adoption/handler.py" in log(aws)
    assert "Zen" not in "".join(capfd.readouterr())


def test_code_of_others_does_not_run_over_the_api() -> None:
    """Also a caller of the simulated Lambda API gets only the functions of this library to run."""
    with SimulatedAccount() as aws:
        create(aws, zipped({"index.py": FUNCTION}), "index.handler")
        with pytest.raises(ClientError):
            invoke(aws)
        assert aws.functions.are_idle()


def test_output_and_variables_of_other_functions(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all functions run, they get no variables of the caller,
    and what they print is in the log.
    """
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    with SimulatedAccount(functions="python") as aws:
        create(aws, zipped({"index.py": FUNCTION}), "index.handler")
        variables = json.loads(invoke(aws)["Payload"].read())
        assert "\x1b]0;TITLE" in log(aws)
        assert "::error::printed" in log(aws)
    assert variables["GIVEN"] == "1"
    assert {name: variables.get(name) for name in HOSTILE}.items().isdisjoint(HOSTILE.items())
    assert "GITHUB_TOKEN" not in variables
    assert capfd.readouterr() == ("", "")


CALLER = """
import boto3
def handler(event, context):
    return len(boto3.client("dynamodb").list_tables()["TableNames"])
"""


def test_permission_that_no_table_has_refuses_nothing() -> None:
    """A user's own function may call any service; whether its role may is not known."""
    with SimulatedAccount(functions="python") as aws:
        create(aws, zipped({"index.py": CALLER}), "index.handler")
        assert json.loads(invoke(aws)["Payload"].read()) == 0, log(aws)
        assert aws.not_simulated["policies:"] == [
            "whether dynamodb:ListTables is allowed is not known"
        ]


WRITER = """
import boto3
def handler(event, context):
    boto3.client("s3").create_bucket(Bucket="of-the-function")
"""
ENDLESS = """
def handler(event, context):
    while True:
        pass
"""


def test_function_of_a_copy_changes_the_copy(tmp_path: Path) -> None:
    """In a copy of the account, a function calls the services of the copy."""
    with SimulatedAccount(functions="python") as aws:
        create(aws, zipped({"index.py": WRITER}), "index.handler")
        policy = {
            "Version": "2012-10-17",
            "Statement": {"Effect": "Allow", "Action": "s3:*", "Resource": "*"},
        }
        aws.client("iam").put_role_policy(
            RoleName="r", PolicyName="s3", PolicyDocument=json.dumps(policy)
        )
        side = copy_account(aws, lambda: copy_process("with a function", str(tmp_path)))
        if isinstance(side, Original):
            with side:
                failed = "FunctionError" in invoke(aws)
                buckets = aws.client("s3").list_buckets()["Buckets"]
                side.send((failed, [bucket["Name"] for bucket in buckets]))
        assert isinstance(side, Copy)
        assert side.receive() == (False, ["of-the-function"])
        side.forget()
        assert aws.client("s3").list_buckets()["Buckets"] == []


def test_function_that_never_ends_fails_its_step() -> None:
    """Lambda ends it at its timeout, and CloudFormation waits for no other response."""
    with SimulatedAccount(functions="python") as aws:
        create(aws, zipped({"index.py": ENDLESS}), "index.handler")
        functions = aws.client("lambda")
        function = functions.update_function_configuration(FunctionName="f", Timeout=1)
        custom = {
            "Type": "Custom::Endless",
            "Properties": {"ServiceToken": function["FunctionArn"]},
        }
        stack = aws.stacks.add("S")
        aws.deployer.deploy(stack, Template({"Resources": {"Endless": custom}}), {})
        assert "Endless: CloudFormation did not receive a response" in stack.reason
