"""app.py through the CDK's command line, from bootstrap: deployed, updated,
rolled back and destroyed.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deploy_twice import inventory
from stack_view import StackView

from cdk_rehearse import Behaviour, SimulatedAccount

BUDGET_MINUTES = 4

PROJECT = Path(__file__).resolve().parents[2]
CDK = PROJECT / "node_modules" / ".bin" / "cdk"
STACK, ENDPOINT = "TritonDemo", "digits"
UNFRIENDLY = Behaviour.unfriendly(1)
_DEPLOY = ("deploy", "--app", f"{sys.executable} app.py", "--require-approval", "never")


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedAccount]:
    """An account that ``cdk bootstrap`` has prepared."""
    with SimulatedAccount() as account:
        run(
            account,
            tmp_path_factory.mktemp("cdk"),
            "bootstrap",
            f"aws://{account.api.account}/us-east-1",
        )
        account.behaviour = UNFRIENDLY
        yield account


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A copy of app.py and its models, whose first endpoint is updated with a canary."""
    shutil.copytree(PROJECT / "assets", tmp_path / "assets")
    shutil.copy(PROJECT / "cdk.json", tmp_path)
    text = (PROJECT / "app.py").read_text()
    text = text.replace("import (\n", "import (\n    CapacitySize,\n    Deployment,\n", 1)
    canary = "deployment=Deployment.blue_green_canary(canary_size=CapacitySize.percent(50))"
    name = f'endpoint_name="{ENDPOINT}",'
    assert name in text
    text = text.replace(name, f"{name}\n{canary}, initial_instance_count=2,")
    text = text.replace(
        "    def _serve_digits",
        '        cdk.CfnOutput(self, "Where", value="here")\n\n    def _serve_digits',
    )
    (tmp_path / "app.py").write_text(text)
    return tmp_path


def run(aws: SimulatedAccount, directory: Path, *arguments: str, succeeds: bool = True) -> str:
    """Run ``cdk`` and return what it prints."""
    done = aws.run_cdk(CDK, *arguments, cwd=directory)
    assert (done.returncode == 0) is succeeds, done.stdout
    return done.stdout


def change_models(app: Path, version: str) -> None:
    for config in (app / "assets").rglob("config.pbtxt"):
        config.write_text(f"{config.read_text()}# {version}\n")


def running(aws: SimulatedAccount) -> tuple[str, set[str]]:
    """The configuration that the endpoint runs, and the archives of its variants."""
    sagemaker = aws.client("sagemaker")
    config = sagemaker.describe_endpoint(EndpointName=ENDPOINT)["EndpointConfigName"]
    variants = sagemaker.describe_endpoint_config(EndpointConfigName=config)["ProductionVariants"]
    assert len(variants) == 2
    models = [sagemaker.describe_model(ModelName=variant["ModelName"]) for variant in variants]
    return config, {model["PrimaryContainer"]["ModelDataUrl"] for model in models}


def updates(aws: SimulatedAccount) -> list[dict[str, Any]]:
    """The requests that updated the endpoint."""
    asked = [request for _, operation, request in aws.api.calls if operation == "UpdateEndpoint"]
    return [request for request in asked if request["EndpointName"] == ENDPOINT]


def test_bootstrap_creates_the_toolkit_stack(aws: SimulatedAccount) -> None:
    """The toolkit stack has a private asset bucket and the roles that deployments assume."""
    assert aws.stack("CDKToolkit").status == "CREATE_COMPLETE"
    bucket = f"cdk-hnb659fds-assets-{aws.api.account}-{aws.api.region}"
    block = aws.client("s3").get_public_access_block(Bucket=bucket)[
        "PublicAccessBlockConfiguration"
    ]
    assert all(block.values())
    roles = [role["RoleName"] for role in aws.client("iam").list_roles()["Roles"]]
    for purpose in ("deploy", "file-publishing", "cfn-exec", "lookup"):
        assert any(purpose in role for role in roles)


def test_app_is_deployed_updated_rolled_back_and_destroyed(
    aws: SimulatedAccount, app: Path
) -> None:
    """No fleet is without a permission at any moment, and only what is retained is left."""
    before = inventory(aws)
    run(aws, app, *_DEPLOY, "--outputs-file", "outputs.json")
    view, first = StackView(aws, STACK), running(aws)
    (outputs,) = json.loads((app / "outputs.json").read_text()).values()
    assert outputs == view.stack.output_values
    assert "(no changes)" in run(aws, app, *_DEPLOY)

    change_models(app, "second version")
    difference = run(aws, app, "diff", "--app", f"{sys.executable} app.py")
    changed = [line for line in difference.splitlines() if "[~] AWS::SageMaker::Model " in line]
    assert {line.endswith("replace") for line in changed} == {True}
    assert running(aws) == first
    run(aws, app, *_DEPLOY)
    second = running(aws)
    assert first[0] != second[0]
    assert first[1] != second[1]
    (request,) = updates(aws)
    assert "CANARY" in json.dumps(request)

    change_models(app, "third version")
    aws.behaviour = replace(UNFRIENDLY, endpoint_update="fails")
    assert "SageMaker" in run(aws, app, *_DEPLOY, succeeds=False)
    aws.behaviour = UNFRIENDLY
    assert view.stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert running(aws) == second

    run(aws, app, "destroy", "--app", f"{sys.executable} app.py", "--force")
    assert aws.fleets.losses == []
    assert inventory(aws) == before
    assert view.leftovers() == {"bucket", "log-group"}
