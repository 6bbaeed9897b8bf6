"""``constructs-triton adopt`` as a user meets it: problems, secrets, permissions,
hostile archives.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from adopt_command import DEFAULT, KEY, account_with_archive, expect_app, refusing, run, serve
from described_endpoints import describe
from notebook_endpoints import BUCKET, ROLE, write_archive
from synthesized_adoption import ARTIFACT, synthesize
from test_adopt_kinds import Notebook, components, files, isolated, own_image, several_variants

from cdk_rehearse import SimulatedAccount
from constructs_triton.testing import assert_endpoint

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("deploy_engine")]

DENIED = "AccessDeniedException"
ENDPOINT_ARN = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/notebook"
SECRETS = {
    "HF_TOKEN": "short-value",
    "DB_PASSWORD": "correct horse",
    "SERVICE_KEY": "0451",
    "AWS_ID": "AKIAABCDEFGHIJKLMNOP",
    "GIT": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "HUB": "hf_abcdefghijklmnopqrstuvwxyz",
    "SESSION": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "DATABASE_URL": "postgres://reader:wordpass@db.internal/models",
    "CERTIFICATE": "-----BEGIN PRIVATE KEY-----MIIBsecretbody-----END PRIVATE KEY-----",
    "BLOB": "q7Zt1LmX9vR4kP2sWc8YdN5bJfH3aEoG",
    # The names of parameters may be no keyword, no module and no number of Python.
    "PASS": "open sesame",
    "S3": "ghp_zyxwvutsrqponmlkjihgfedcba9876543210",
    "SUPER": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[SimulatedAccount]:
    """An account with the archive of one model."""
    with account_with_archive(tmp_path) as account:
        yield account


def test_app_synthesizes_and_is_described(aws: SimulatedAccount, tmp_path: Path) -> None:
    """The command synthesizes the app that it writes,
    and ADOPT.md has its sections and commands.
    """
    serve(aws)
    metric = {"MetricName": "ModelLatency", "Namespace": "AWS/SageMaker", "Statistic": "Average"}
    rule = {
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanThreshold",
    }
    for name in ("notebook", "others"):
        dimensions = [
            {"Name": "EndpointName", "Value": name},
            {"Name": "VariantName", "Value": "AllTraffic"},
        ]
        aws.client("cloudwatch").put_metric_alarm(
            AlarmName=f"{name}-is-slow", Dimensions=dimensions, **metric, **rule
        )
    code, printed = run(aws, "notebook", "-o", str(tmp_path / "app"))
    assert (code, "does not synthesize" in printed) == (0, False), printed
    answers = json.loads((tmp_path / "app" / "answers" / "describe_alarms.json").read_text())
    assert [each["AlarmName"] for each in answers["MetricAlarms"]] == ["notebook-is-slow"]
    report = (tmp_path / "app" / "ADOPT.md").read_text()
    assert "alarm notebook-is-slow" in report
    titles = [line.removeprefix("## ") for line in report.splitlines() if line.startswith("## ")]
    sections = [
        "Carried over",
        "Different on purpose",
        "Could not be read",
        "Steps",
        "What stays behind",
    ]
    assert titles == sections
    assert "npx cdk deploy" in report
    mapping = json.loads((tmp_path / "app" / "import.json").read_text())
    assert mapping == {"Endpoint": {"EndpointArn": ENDPOINT_ARN}}
    assert (tmp_path / "app" / "models" / "first" / "config.pbtxt").is_file()
    assert run(aws, "notebook", "-o", str(tmp_path / "app"))[0] == 2


def test_secrets_are_written_nowhere(aws: SimulatedAccount, tmp_path: Path) -> None:
    """Secrets in variables and tags become parameters; no file and no message contains them."""
    Notebook(aws).model("first", {"Environment": {**SECRETS, "MODE": "fast", "PIN": "4711"}})
    Notebook(aws).endpoint(tags={"2fa-token": "tag-secret", "team": "vision"})
    code, printed = run(aws, "notebook", "-o", str(tmp_path / "app"), "--no-synth", "--json")
    assert code == 0, printed
    files = [path for path in (tmp_path / "app").rglob("*") if path.is_file()]
    everything = printed + "".join(path.read_text() for path in files)
    assert [each for each in [*SECRETS.values(), "tag-secret"] if each in everything] == []
    report = (tmp_path / "app" / "ADOPT.md").read_text()
    written = (
        report.partition("## Values that are written as they are")[2]
        .partition("\n## ")[0]
        .splitlines()
    )
    assert written[-2:] == [
        f"- tags of {ENDPOINT_ARN}: team",
        "- variables of model first: MODE, PIN",
    ]
    stack = synthesize(tmp_path / "app", tmp_path / "assembly")
    assert_endpoint(stack, instance_types="ml.g5.xlarge")
    template = json.loads((tmp_path / "assembly" / "Endpoint.template.json").read_text())
    added = {
        name: each for name, each in template["Parameters"].items() if name != "BootstrapVersion"
    }
    assert len(added) == len(SECRETS) + 1
    assert all(each == {"Type": "String", "NoEcho": True} for each in added.values())
    (model,) = [
        each for each in template["Resources"].values() if each["Type"] == "AWS::SageMaker::Model"
    ]
    environment = model["Properties"]["PrimaryContainer"]["Environment"]
    assert environment["MODE"] == "fast"
    assert all(environment[name]["Ref"] in added for name in SECRETS)


def test_what_is_not_carried_over_has_to_be_accepted(aws: SimulatedAccount, tmp_path: Path) -> None:
    """Without ``--accept`` of each code, nothing is written and the exit code is 1."""
    model = write_archive(
        tmp_path / "wrong.tar.gz", {"first": 1}, "max_batch_size: 4\nmax_queue: 3\n"
    )
    aws.client("s3").upload_file(str(model), BUCKET, KEY)
    serve(aws, {"ImageConfig": {"RepositoryAccessMode": "Vpc"}}, AcceleratorType="ml.eia2.medium")
    app = tmp_path / "app"
    code, printed = run(aws, "notebook", "-o", str(app), "--no-synth")
    assert (code, app.exists()) == (1, False)
    codes = [
        line.partition("]")[0].strip(" [")
        for line in printed.splitlines()
        if line.startswith("  [")
    ]
    assert {"accelerator-type", "image-config"} < set(codes)
    some = [word for each in codes[1:] for word in ("--accept", each)]
    assert run(aws, "notebook", "-o", str(app), "--no-synth", *some)[0] == 1
    code, _ = run(aws, "notebook", "-o", str(app), "--no-synth", "--accept", codes[0], *some)
    assert (code, app.exists()) == (0, True)
    assert "AcceleratorType is not carried over" in (app / "ADOPT.md").read_text()
    synthesize(app, tmp_path / "assembly")


def test_hostile_archive_is_not_unpacked(aws: SimulatedAccount, tmp_path: Path) -> None:
    """An archive that would write outside of its folder is an error,
    and stays in S3 if accepted.
    """
    hostile = tmp_path / "hostile.tar.gz"
    with tarfile.open(hostile, "w:gz") as archive:
        found = tarfile.TarInfo("link")
        found.type, found.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(found)
    aws.client("s3").upload_file(str(hostile), BUCKET, KEY)
    serve(aws, DEFAULT)
    code, printed = run(aws, "notebook", "-o", str(tmp_path / "app"), "--no-synth")
    assert (code, "[archive]" in printed) == (1, True)
    app = expect_app(aws, tmp_path, "--accept", "archive")
    assert not (app / "models").exists()
    assert "ModelSource.from_bucket(" in (app / "app.py").read_text()


def test_large_archives_stay_in_s3(aws: SimulatedAccount, tmp_path: Path) -> None:
    """Archives over ``--max-download`` are referred to,
    and the report says that they were not checked.
    """
    serve(aws, DEFAULT)
    app = expect_app(aws, tmp_path, "--max-download", "0")
    assert "was not downloaded and checked" in (app / "ADOPT.md").read_text()
    assert f'"{KEY}"' in (app / "app.py").read_text()


def test_key_of_an_archive_is_known_to_the_role(aws: SimulatedAccount, tmp_path: Path) -> None:
    """The role may decrypt archives that stay in S3 with the KMS key that encrypts them."""
    key = aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    body = (tmp_path / "model.tar.gz").read_bytes()
    aws.client("s3").put_object(
        Bucket=BUCKET,
        Key="many/a.tar.gz",
        Body=body,
        ServerSideEncryption="aws:kms",
        SSEKMSKeyId=key,
    )
    serve(aws, {"ModelDataUrl": f"s3://{BUCKET}/many/", "Mode": "MultiModel"})
    expect_app(aws, tmp_path)
    assert key in (tmp_path / "assembly-import" / "Endpoint.template.json").read_text()


def test_archive_with_further_models_stays_whole(aws: SimulatedAccount, tmp_path: Path) -> None:
    """Models that the served model does not need are still in the archive that the app uploads."""
    archive = write_archive(tmp_path / "two.tar.gz", {"first": 1, "other": 2})
    aws.client("s3").upload_file(str(archive), BUCKET, KEY)
    serve(aws, DEFAULT)
    assert (expect_app(aws, tmp_path) / "models.tar.gz").read_bytes() == archive.read_bytes()
    assembly = tmp_path / "assembly-import"
    assets = json.loads((assembly / "Endpoint.assets.json").read_text())["files"].values()
    assert archive.read_bytes() in [
        (assembly / each["source"]["path"]).read_bytes() for each in assets
    ]


def test_what_cannot_be_looked_at_ends_with_two(aws: SimulatedAccount, tmp_path: Path) -> None:
    """An unknown endpoint, a deleted configuration and missing arguments end with exit code 2."""
    assert run(aws, "nothing", "-o", str(tmp_path / "app"))[0] == 2
    assert run(aws, "notebook")[0] == 2
    serve(aws)
    with refusing("describe_endpoint_config", "ValidationException", "Could not find"):
        code, printed = run(aws, "notebook", "-o", str(tmp_path / "app"))
    assert (code, "its configuration config-2023 cannot be read" in printed) == (2, True)
    assert not (tmp_path / "app").exists()


REFUSED = (
    ("list_tags", DENIED, "sagemaker:ListTags"),
    ("get_role", "AccessDenied", "iam:GetRole"),
    ("head_object", "403", "s3:GetObject"),
    ("describe_scalable_targets", DENIED, "application-autoscaling:DescribeScalableTargets"),
)


def test_refused_calls_are_named(aws: SimulatedAccount, tmp_path: Path) -> None:
    """What the credentials may not read is named in the report, with each permission."""
    serve(aws, DEFAULT)
    with ExitStack() as stack:
        for operation, code, _ in REFUSED:
            stack.enter_context(refusing(operation, code))
        report = (expect_app(aws, tmp_path) / "ADOPT.md").read_text()
    for _, _, permission in REFUSED:
        assert f"{permission}: access denied; add this permission to your role" in report


def test_new_endpoint_is_created_beside_the_old_one(aws: SimulatedAccount, tmp_path: Path) -> None:
    """With another name, both endpoints exist, and both scale by the same policies."""
    several_variants(Notebook(aws))
    expect_app(aws, tmp_path, switch="new-endpoint")
    stack = aws.deploy(tmp_path / "assembly-new-endpoint", ARTIFACT)
    assert (stack.name, stack.status) == ("notebook-cdk", "CREATE_COMPLETE"), stack.reason
    old, new = describe(aws, "notebook"), describe(aws, "notebook-cdk")
    assert new["DescribeEndpoint.EndpointName"] == "notebook-cdk"
    targets = [path for path in old if path.endswith(".TargetValue")]
    assert [new[path] for path in targets] == [old[path] for path in targets] == [70, 70]


def test_printed_policy_has_exactly_the_calls(aws: SimulatedAccount, tmp_path: Path) -> None:
    """Endpoints of all kinds together need each action of the printed policy, and no other."""
    policy = json.loads(run(aws, "--policy")[1])
    allowed = {action for statement in policy["Statement"] for action in statement["Action"]}
    grant = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [grant]})
    aws.client("iam").put_role_policy(RoleName=ROLE, PolicyName="inline", PolicyDocument=document)
    used: set[str] = set()
    for number, kind in enumerate((several_variants, isolated, own_image, files, components)):
        aws.client("ecr").create_repository(repositoryName="serving") if kind is own_image else None
        kind(Notebook(aws))
        with mock.patch("botocore.client.BaseClient._make_api_call", recording(used)):
            code, printed = run(aws, "notebook", "-o", str(tmp_path / str(number)), "--no-synth")
        assert code == 0, printed
        aws.client("sagemaker").delete_endpoint(
            EndpointName="notebook"
        ) if kind is not components else None
        delete_models(aws) if kind is not components else None
    assert used == allowed - {"kms:Decrypt"}


def delete_models(aws: SimulatedAccount) -> None:
    sagemaker = aws.client("sagemaker")
    sagemaker.delete_endpoint_config(EndpointConfigName="config-2023")
    for each in sagemaker.list_models()["Models"]:
        sagemaker.delete_model(ModelName=each["ModelName"])


PERMISSIONS = {"s3:HeadObject": "s3:GetObject", "s3:ListObjectsV2": "s3:ListBucket"}


def recording(used: set[str]) -> Any:
    """Record the IAM action of each call of boto3."""
    from botocore.client import BaseClient

    original: Any = vars(BaseClient)["_make_api_call"]

    def call(client: Any, operation: str, request: Any) -> Any:
        action = f"{client.meta.service_model.signing_name}:{operation}"
        action = action.replace("monitoring:", "cloudwatch:")
        used.add(PERMISSIONS.get(action, action))
        return original(client, operation, request)

    return call
