"""The apps and the workflow of docs/guides/deploy_on_approval.md."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from cdk_apps import flat, only, resources, statement_list
from guide_apps import programs_of, templates_of
from programs import PROJECT

PAGE = "deploy_on_approval.md"


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The stacks of both apps."""
    folder = tmp_path_factory.mktemp("approval")
    found: dict[str, Any] = {}
    for number, code in enumerate(programs_of(PAGE)):
        found |= templates_of(code, folder / str(number))
    return found


@pytest.fixture(scope="module")
def workflow() -> Any:
    """The workflow of the page."""
    (text,) = re.findall(
        r"^```yaml\n(.+?)^```", (PROJECT / "docs/guides" / PAGE).read_text(), re.M | re.S
    )
    return yaml.safe_load(text)


@pytest.mark.parametrize(
    ("stack", "target"), [("Pipeline", "<Pipeline"), ("Deployments", "<Dispatch")]
)
def test_approval_starts_the_deployment(templates: dict[str, Any], stack: str, target: str) -> None:
    """The rule matches approvals of the group, as AWS documents the event,
    and starts the deployment.
    """
    rules = resources(templates[stack], "AWS::Events::Rule").values()
    (rule,) = [
        each["Properties"]
        for each in rules
        if "sagemaker" in str(each["Properties"]["EventPattern"])
    ]
    assert rule["EventPattern"] == {
        "source": ["aws.sagemaker"],
        "detail-type": ["SageMaker Model Package State Change"],
        "detail": {
            "ModelPackageGroupName": ["ranking"],
            "ModelApprovalStatus": ["Approved", "Rejected"],
        },
    }
    assert [target in flat(each["Arn"]) for each in rule["Targets"]] == [True]


def test_pipeline_deploys_the_newest_approved_version(
    templates: dict[str, Any], workflow: Any
) -> None:
    """The build asks the registry and passes the version to the app,
    and the workflow asks the same.
    """
    builds = resources(templates["Pipeline"], "AWS::CodeBuild::Project").values()
    (synth,) = [
        text
        for each in builds
        if "list-model-packages" in (text := flat(each["Properties"]["Source"]))
    ]
    question = (
        "--model-approval-status Approved --sort-by CreationTime "
        "--sort-order Descending --max-items 1"
    )
    assert question in synth
    assert "cdk synth -c package=" in synth
    run = workflow["jobs"]["deploy"]["steps"][-1]["run"].replace("\\\n", "")
    assert question in " ".join(run.split())
    assert any(
        "sagemaker:ListModelPackages" in each["Action"]
        for each in statement_list(templates["Pipeline"])
    )


def test_package_reaches_the_model(templates: dict[str, Any]) -> None:
    """The endpoint has the version that the pipeline passes, here the first."""
    (stage,) = [found for name, found in templates.items() if "Ranking" in name]
    container = only(stage, "AWS::SageMaker::Model")["PrimaryContainer"]
    assert container == {
        "ModelPackageName": "arn:aws:sagemaker:eu-west-1:111111111111:model-package/ranking/1"
    }


def test_only_the_environment_of_the_repository_may_deploy(
    templates: dict[str, Any], workflow: Any
) -> None:
    """The role trusts GitHub's tokens of this job alone,
    and the workflow may read and identify itself.
    """
    deployments = templates["Deployments"]
    (role,) = [
        each["Properties"]
        for each in resources(deployments, "AWS::IAM::Role").values()
        if each["Properties"].get("RoleName") == "deploy-ranking"
    ]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Action"] == "sts:AssumeRoleWithWebIdentity"
    name = f"repo:example/ranking:environment:{workflow['jobs']['deploy']['environment']}"
    assert trust["Condition"]["StringEquals"]["token.actions.githubusercontent.com:sub"] == name
    assert workflow["permissions"] == {"contents": "read", "id-token": "write"}
    (credentials,) = [
        each["with"] for each in workflow["jobs"]["deploy"]["steps"] if "configure-aws" in str(each)
    ]
    assert credentials["role-to-assume"].endswith(":role/" + role["RoleName"])
    assert credentials["role-duration-seconds"] <= role["MaxSessionDuration"]
