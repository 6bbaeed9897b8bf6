"""Endpoints that ``adopt`` refuses: one message each, nothing is written,
and each hint leads to an app.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from adopt_command import DEFAULT, KEY, account_with_archive, expect_app, refusing, run, serve
from notebook_endpoints import BUCKET
from synthesized_adoption import ARTIFACT
from test_adopt_kinds import ARCHIVE, IMAGE, ROLE_ARN, VARIANT, Notebook, components

from cdk_rehearse import SimulatedAccount

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("deploy_engine")]

Kind = Callable[[Notebook], None]


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[SimulatedAccount]:
    with account_with_archive(tmp_path) as account:
        yield account


def expect_refusal(
    aws: SimulatedAccount, tmp_path: Path, code: str, *texts: str, switch: str
) -> None:
    """``adopt`` ends with 1, prints one problem with these texts, and leaves no file or folder."""
    before = sorted(tmp_path.iterdir())
    found, printed = run(aws, "notebook", "-o", str(tmp_path / "new" / "app"), switch=switch)
    problems = [line for line in printed.splitlines() if line.startswith("  [")]
    assert (found, len(problems)) == (1, 1), printed
    assert problems[0].startswith(f"  [{code}] ")
    assert [each for each in texts if each not in problems[0]] == []
    assert "endpoint notebook: nothing was written" in printed
    assert sorted(tmp_path.iterdir()) == before


# Endpoints that no construct creates.


def serverless(notebook: Notebook) -> None:
    notebook.model()
    config = {"MemorySizeInMB": 2048, "MaxConcurrency": 5}
    notebook.endpoint(
        {"ServerlessConfig": config, "InstanceType": None, "InitialInstanceCount": None}
    )


def pipeline(notebook: Notebook) -> None:
    containers = [{"Image": IMAGE, "ModelDataUrl": ARCHIVE} for _ in range(2)]
    notebook.sagemaker.create_model(
        ModelName="first", ExecutionRoleArn=ROLE_ARN, Containers=containers
    )
    notebook.endpoint()


@pytest.mark.parametrize(
    ("kind", "problem", "switch"),
    [
        (serverless, ("serverless-config", "endpoint notebook: is serverless"), "take-over"),
        (
            pipeline,
            ("containers", "model first: is a serial pipeline of 2 containers"),
            "new-endpoint",
        ),
    ],
    ids=["serverless", "pipeline"],
)
def test_endpoint_without_construct_cannot_be_accepted(
    aws: SimulatedAccount, tmp_path: Path, kind: Kind, problem: tuple[str, str], switch: str
) -> None:
    """Serverless endpoints and serial pipelines end with exit code 1, accepted or not."""
    kind(Notebook(aws))
    expect_refusal(aws, tmp_path, *problem, switch=switch)
    found, printed = run(
        aws, "notebook", "-o", str(tmp_path / "app"), "--accept", problem[0], switch=switch
    )
    assert (found, (tmp_path / "app").exists()) == (1, False)
    assert "--accept does not help here" in printed


def test_model_of_a_serverless_endpoint_is_adopted_on_instances(
    aws: SimulatedAccount, tmp_path: Path
) -> None:
    """The endpoint with instances that the message asks for has an app."""
    serverless(Notebook(aws))
    sagemaker = aws.client("sagemaker")
    sagemaker.create_endpoint_config(EndpointConfigName="instances", ProductionVariants=[VARIANT])
    sagemaker.create_endpoint(EndpointName="second", EndpointConfigName="instances")
    expect_app(aws, tmp_path, name="second", switch="take-over")


# Endpoints that can be adopted in another way.


def of_a_stack(notebook: Notebook) -> None:
    notebook.model()
    notebook.endpoint(tags={"aws:cloudformation:stack-name": "Vision"})


@pytest.mark.parametrize(
    ("kind", "problem", "switches"),
    [
        (
            components,
            (
                "take-over-components",
                "hosts inference components, which an update cannot take over",
            ),
            ["new-endpoint", "import"],
        ),
        (of_a_stack, ("stack", "belongs to CloudFormation stack Vision"), ["new-endpoint"]),
    ],
    ids=["components", "stack"],
)
def test_message_names_the_switches_that_work(
    aws: SimulatedAccount, tmp_path: Path, kind: Kind, problem: tuple[str, str], switches: list[str]
) -> None:
    """What an update cannot take over is refused with the other ways,
    and each of them has an app.
    """
    kind(Notebook(aws))
    ways = [f"--switch {each}" for each in switches]
    expect_refusal(aws, tmp_path, *problem, *ways, switch="take-over")
    for each in switches:
        expect_app(aws, tmp_path, switch=each)


def test_components_of_a_new_endpoint_have_new_names(aws: SimulatedAccount, tmp_path: Path) -> None:
    """The app deploys beside the old endpoint, though the name of a component
    is unique in an account.
    """
    components(Notebook(aws))
    expect_app(aws, tmp_path, switch="new-endpoint")
    stack = aws.deploy(tmp_path / "assembly-new-endpoint", ARTIFACT)
    assert stack.status == "CREATE_COMPLETE", stack.reason
    listed = aws.client("sagemaker").list_inference_components()["InferenceComponents"]
    assert {each["InferenceComponentName"] for each in listed} == {"scorer", "scorer-cdk"}
    report = (tmp_path / "app-new-endpoint" / "ADOPT.md").read_text()
    assert "Let callers use notebook-cdk, scorer-cdk." in report


# Archives that can no longer be read.


LOST_KEYS = {
    "disabled key": (
        "KMS.DisabledException",
        "arn:aws:kms:us-east-1:123456789012:key/1 is disabled.",
    ),
    "deleted key": (
        "AccessDenied",
        (
            "User: arn:aws:iam::123456789012:user/me is not authorized to perform: kms:Decrypt on "
            "the resource associated with this ciphertext because "
            "the resource does not exist in this Region"
        ),
    ),
}


@pytest.mark.parametrize(
    ("error", "mode"),
    [(LOST_KEYS["disabled key"], "SingleModel"), (LOST_KEYS["deleted key"], "MultiModel")],
    ids=LOST_KEYS,
)
def test_archive_with_a_lost_key_is_one_problem(
    aws: SimulatedAccount, tmp_path: Path, error: tuple[str, str], mode: str
) -> None:
    """An archive that its KMS key does not decrypt has to be accepted, and then stays in S3."""
    s3 = aws.client("s3")
    for name in ("a", "b"):
        s3.copy_object(Bucket=BUCKET, Key=f"many/{name}.tar.gz", CopySource=f"{BUCKET}/{KEY}")
    url = ARCHIVE if mode == "SingleModel" else f"s3://{BUCKET}/many/"
    serve(aws, {**DEFAULT, "ModelDataUrl": url, "Mode": mode})
    reason = error[0] if error[0].startswith("KMS") else "kms:Decrypt: access denied"
    lost = ARCHIVE if mode == "SingleModel" else f"{url}a.tar.gz"
    texts = (f"{lost}: cannot be read", reason, "restore its KMS key")
    with refusing("get_object", *error):
        expect_refusal(aws, tmp_path, "archive", *texts, switch="import")
        expect_app(aws, tmp_path, "--accept", "archive", switch="import")
    expect_app(aws, tmp_path, switch="new-endpoint")  # as if the key was restored


@pytest.mark.parametrize("lost", ["archive", "bucket"])
def test_lost_archive_is_one_problem(aws: SimulatedAccount, tmp_path: Path, lost: str) -> None:
    """An archive that was deleted is a problem until it is uploaded again."""
    serve(aws, DEFAULT)
    s3 = aws.client("s3")
    s3.delete_object(Bucket=BUCKET, Key=KEY)
    if lost == "bucket":
        s3.delete_bucket(Bucket=BUCKET)
    texts = (f"{ARCHIVE}: cannot be read (s3:HeadObject: 404", "upload the archive again")
    expect_refusal(aws, tmp_path, "archive", *texts, switch="take-over")
    if lost == "bucket":
        s3.create_bucket(Bucket=BUCKET)
    s3.upload_file(str(tmp_path / "model.tar.gz"), BUCKET, KEY)
    expect_app(aws, tmp_path, switch="take-over")


def test_lost_archive_without_a_model_name_has_no_app(
    aws: SimulatedAccount, tmp_path: Path
) -> None:
    """If nothing but the archive says which model is served, its loss cannot be accepted."""
    serve(aws)
    aws.client("s3").delete_object(Bucket=BUCKET, Key=KEY)
    expect_refusal(aws, tmp_path, "archive", "cannot be read", switch="take-over")
    found, printed = run(aws, "notebook", "-o", str(tmp_path / "app"), "--accept", "archive")
    assert (found, "--accept does not help" in printed, (tmp_path / "app").exists()) == (
        1,
        True,
        False,
    )


def test_archive_that_is_not_read_needs_the_name_of_the_model(
    aws: SimulatedAccount, tmp_path: Path
) -> None:
    """An archive that is too large, of a model without a name,
    is refused with the two ways to read it.
    """
    serve(aws)
    words = ["notebook", "-o", str(tmp_path / "app"), "--max-download", "0"]
    found, printed = run(aws, *words)
    assert (found, "its archive was not read (see --max-download and --policy)" in printed) == (
        1,
        True,
    )
    expect_app(aws, tmp_path, switch="import")
