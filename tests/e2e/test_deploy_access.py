"""The permissions of the deployed roles, enforced: each grant is required by one step,
and none is wider.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from deploy_app import synthesize
from deploy_synth import STACK, Declared
from stack_view import StackView

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.permissions.access import RoleCredentials
from cdk_rehearse.stacks.stack import Stack
from constructs_triton_core.cloud_assembly.template import Template

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("deploy_engine")]

_DENIED = {"AccessDenied", "AccessDeniedException", "403", "Forbidden"}
Call = Callable[[], Any]


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(tmp_path_factory.mktemp("assemblies"), "first") / "first"


@pytest.fixture(scope="module")
def granted(aws: SimulatedAccount, assembly: Path) -> StackView:
    """The stack with all its grants."""
    assert aws.deploy(assembly, STACK, stack_name="Granted").status == "CREATE_COMPLETE"
    return StackView(aws, "Granted")


def without_grant(assembly: Path, sid: str, action: str | None = None) -> Template:
    """The template without the statements of this name, or without one of their actions."""
    body = json.loads((assembly / f"{STACK}.template.json").read_text())
    found = 0
    for resource in body["Resources"].values():
        if resource["Type"] not in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
            continue
        statements = resource["Properties"]["PolicyDocument"]["Statement"]
        for statement in [each for each in statements if each.get("Sid") == sid]:
            found += 1
            if sid == "ReadArchives":
                # Only the archives: while the list of them is refused, the function waits for its
                # new policy.
                statement["Resource"] = [
                    each for each in statement["Resource"] if ".tar.gz" not in str(each)
                ]
            if action is None and not (sid == "ReadArchives" and statement["Resource"]):
                statements.remove(statement)
            elif action is not None:
                statement["Action"].remove(action)
    assert found, f"no statement is called {sid}"
    return Template(body)


def failed_resources(stack: Stack) -> list[str]:
    """The types of the resources that failed during the creation of the stack."""
    return [event.type for event in stack.events if event.status == "CREATE_FAILED"]


def is_allowed(call: Call) -> bool:
    """Whether a request is allowed; other errors of the service do not matter."""
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"] not in _DENIED
    return True


@pytest.mark.parametrize(
    ("grant", "failing", "reason"),
    [
        (("ReadArchives", None), "Custom::TritonModelSync", "HeadObject"),
        (("PlaceArchives", "s3:PutObject"), "Custom::TritonModelSync", "CopyObject"),
        (("PlaceArchives", "s3:GetObject"), "Custom::TritonModelSync", "HeadObject"),
        (("LoadModel", None), "AWS::SageMaker::Model", "Could not access model data"),
        (("ListModels", None), "AWS::SageMaker::Model", "Could not access model data"),
    ],
)
def test_deployment_fails_without_a_grant(
    aws: SimulatedAccount, assembly: Path, grant: tuple[str, str | None], failing: str, reason: str
) -> None:
    """Without the grant exactly the resource that needs it fails, with the service's reason."""
    name = f"Without{grant[0]}{(grant[1] or '').rpartition(':')[2]}"
    stack = aws.deploy(assembly, STACK, stack_name=name, template=without_grant(assembly, *grant))
    assert stack.status == "ROLLBACK_COMPLETE"
    assert failed_resources(stack) == [failing]
    assert reason in stack.reason


def test_models_cannot_be_loaded_without_the_grant(aws: SimulatedAccount, assembly: Path) -> None:
    """A multi-model endpoint deploys without the grant to read archives,
    and then cannot load one.
    """
    template = without_grant(assembly, "LoadModels")
    assert (
        aws.deploy(assembly, STACK, stack_name="NoLoad", template=template).status
        == "CREATE_COMPLETE"
    )
    view = StackView(aws, "NoLoad")
    s3 = aws.client("s3", execution_credentials(view, "ManyName"))
    bucket, alpha = bucket_of(view), alpha_key(assembly)
    assert not is_allowed(lambda: s3.get_object(Bucket=bucket, Key=alpha))


def test_function_writes_its_log_with_its_own_grant(
    aws: SimulatedAccount, assembly: Path, granted: StackView
) -> None:
    """With the grant the function's log lists the archives that were copied;
    without it there is no log.
    """
    assert any("placed" in line and alpha_key(assembly) in line for line in function_log(granted))
    body = json.loads((assembly / f"{STACK}.template.json").read_text())
    (policy,) = [
        each
        for name, each in body["Resources"].items()
        if each["Type"] == "AWS::IAM::Policy" and "RoleDefaultPolicy" in name
    ]
    policy["Properties"]["PolicyDocument"]["Statement"][0]["Effect"] = "Deny"
    assert (
        aws.deploy(assembly, STACK, stack_name="NoLog", template=Template(body)).status
        == "CREATE_COMPLETE"
    )
    assert function_log(StackView(aws, "NoLog")) == []


def test_sync_role_has_no_other_permission(
    aws: SimulatedAccount, granted: StackView, assembly: Path
) -> None:
    """The function may not delete, list, read other assets, or write outside the prefix."""
    s3 = aws.client("s3", function_credentials(granted))
    bucket, assets, alpha = bucket_of(granted), asset_bucket(aws), alpha_key(assembly)
    others = [each["Key"] for each in aws.client("s3").list_objects_v2(Bucket=assets)["Contents"]]
    (code,) = [key for key in others if key.endswith(".zip")]
    assert is_allowed(lambda: s3.get_object(Bucket=bucket, Key=alpha))
    assert is_allowed(lambda: s3.put_object(Bucket=bucket, Key="models/delta.tar.gz", Body=b""))
    denied: list[Call] = [
        lambda: s3.delete_object(Bucket=bucket, Key=alpha),
        lambda: s3.put_object(Bucket=bucket, Key="elsewhere/alpha.tar.gz", Body=b""),
        lambda: s3.put_object(Bucket=assets, Key=alpha, Body=b""),
        lambda: s3.get_object(Bucket=assets, Key=code),
        lambda: s3.list_objects_v2(Bucket=bucket, Prefix="models/"),
        lambda: s3.list_objects_v2(Bucket=assets),
        s3.list_buckets,
    ]
    assert [is_allowed(call) for call in denied] == [False] * len(denied)


def test_execution_role_of_many_models_only_reads_its_prefix(
    aws: SimulatedAccount, granted: StackView, assembly: Path
) -> None:
    """The role can list and read the prefix, and cannot write, delete or read anything else."""
    s3 = aws.client("s3", execution_credentials(granted, "ManyName"))
    bucket, assets, alpha = bucket_of(granted), asset_bucket(aws), alpha_key(assembly)
    assert is_allowed(lambda: s3.get_object(Bucket=bucket, Key=alpha))
    assert is_allowed(lambda: s3.list_objects_v2(Bucket=bucket, Prefix="models/"))
    denied: list[Call] = [
        lambda: s3.list_objects_v2(Bucket=bucket),
        lambda: s3.list_objects_v2(Bucket=bucket, Prefix="secrets/"),
        lambda: s3.get_object(Bucket=bucket, Key="secrets/alpha.tar.gz"),
        lambda: s3.put_object(Bucket=bucket, Key=alpha, Body=b""),
        lambda: s3.delete_object(Bucket=bucket, Key=alpha),
        lambda: s3.list_objects_v2(Bucket=assets),
    ]
    assert [is_allowed(call) for call in denied] == [False] * len(denied)


def test_execution_role_of_one_model_only_reads_its_archive(
    aws: SimulatedAccount, granted: StackView
) -> None:
    """The role can read the one archive that it serves, and no other object of the asset bucket."""
    s3 = aws.client("s3", execution_credentials(granted, "SingleName"))
    assets = asset_bucket(aws)
    own = granted.model("SingleName")["PrimaryContainer"]["ModelDataUrl"].rpartition("/")[2]
    keys = [each["Key"] for each in aws.client("s3").list_objects_v2(Bucket=assets)["Contents"]]
    readable = [key for key in keys if is_allowed(partial(s3.get_object, Bucket=assets, Key=key))]
    assert readable == [own]
    assert not is_allowed(lambda: s3.put_object(Bucket=assets, Key=own, Body=b""))


def test_execution_role_writes_only_logs_and_metrics(
    aws: SimulatedAccount, granted: StackView
) -> None:
    """The role can use endpoint logs, SageMaker metrics and its image repository, and no others."""
    credentials = execution_credentials(granted, "ManyName")
    logs, metrics, ecr = (aws.client(name, credentials) for name in ("logs", "cloudwatch", "ecr"))
    datum = [{"MetricName": "GPUUtilization", "Value": 1.0}]
    image = {"registryId": "763104351884", "imageIds": [{"imageTag": "26.05-py3"}]}
    assert is_allowed(lambda: logs.create_log_group(logGroupName="/aws/sagemaker/Endpoints/many"))
    assert is_allowed(
        lambda: metrics.put_metric_data(Namespace="/aws/sagemaker/Endpoints", MetricData=datum)
    )
    assert is_allowed(lambda: ecr.batch_get_image(repositoryName="sagemaker-tritonserver", **image))
    denied: list[Call] = [
        lambda: logs.create_log_group(logGroupName="/aws/lambda/other"),
        lambda: metrics.put_metric_data(Namespace="Other", MetricData=datum),
        lambda: ecr.batch_get_image(repositoryName="other", **image),
    ]
    assert [is_allowed(call) for call in denied] == [False] * len(denied)


def execution_credentials(view: StackView, output: str) -> RoleCredentials:
    role = view.model(output)["ExecutionRoleArn"]
    return view.aws.access.assume(role, **view.aws.execution_roles.as_sagemaker())


def function_credentials(view: StackView) -> RoleCredentials:
    return view.aws.access.assume(
        function(view)["Role"], service="lambda.amazonaws.com", context={}
    )


def function(view: StackView) -> dict[str, Any]:
    functions = view.aws.client("lambda").list_functions()["Functions"]
    (found,) = [each for each in functions if each["FunctionName"].startswith(f"{view.name}-")]
    configuration: dict[str, Any] = found
    return configuration


def function_log(view: StackView) -> list[str]:
    """All lines of the log group that the stack created for its function."""
    logs = view.aws.client("logs")
    groups = logs.describe_log_groups(logGroupNamePrefix=f"{view.name}-")["logGroups"]
    (group,) = [each["logGroupName"] for each in groups]
    return [event["message"] for event in logs.filter_log_events(logGroupName=group)["events"]]


def alpha_key(assembly: Path) -> str:
    """The key of a copied archive."""
    return f"models/{Declared(assembly).target_model('alpha')}"


def bucket_of(view: StackView) -> str:
    return view.output("ModelsUrl").removeprefix("s3://").partition("/")[0]


def asset_bucket(aws: SimulatedAccount) -> str:
    return f"cdk-hnb659fds-assets-{aws.api.account}-{aws.api.region}"
