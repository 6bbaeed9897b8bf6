"""The CDK's own command line against an AWS on loopback, from bootstrap to destroy."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from deploy_app import synthesize
from deploy_synth import INSTANCE_TYPE, MAX_CAPACITY, STACK
from stack_view import StackView

from cdk_rehearse import SimulatedAccount
from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint

PROJECT = Path(__file__).resolve().parents[2]
CDK = PROJECT / "node_modules" / ".bin" / "cdk"

BUDGET_MINUTES = 4
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.usefixtures("budget"),
    pytest.mark.skipif(
        shutil.which("node") is None or not CDK.exists(),
        reason="the CDK's command line needs Node and `npm ci`; the same steps run without it elsewhere",
    ),
]


class CommandLine:
    """Runs ``cdk`` in a directory."""

    def __init__(self, aws: SimulatedAccount, directory: Path) -> None:
        self.aws = aws
        self.directory = directory

    def run(self, *arguments: str, cwd: Path | None = None) -> str:
        """Run a command that must succeed, and return its output."""
        result = self.aws.run_cdk(CDK, *arguments, cwd=cwd or self.directory)
        assert result.returncode == 0, result.stdout
        return result.stdout

    def fail(self, *arguments: str) -> str:
        """Run a command that must fail, and return its output."""
        result = self.aws.run_cdk(CDK, *arguments, cwd=self.directory)
        assert result.returncode != 0, result.stdout
        return result.stdout

    def deploy(self, app: str | Path, *arguments: str, cwd: Path | None = None) -> str:
        return self.run("deploy", "--app", str(app), "--require-approval", "never", *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def cdk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """An account that ``cdk bootstrap`` has prepared."""
    with SimulatedAccount() as aws:
        command_line = CommandLine(aws, tmp_path_factory.mktemp("cdk"))
        command_line.run("bootstrap", f"aws://{aws.api.account}/{aws.api.region}")
        yield command_line


def test_bootstrap_creates_the_toolkit_stack(cdk: CommandLine) -> None:
    """The toolkit stack has a private asset bucket and the roles that deployments assume."""
    assert cdk.aws.stack("CDKToolkit").status == "CREATE_COMPLETE"
    bucket = f"cdk-hnb659fds-assets-{cdk.aws.api.account}-{cdk.aws.api.region}"
    block = cdk.aws.client("s3").get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
    assert all(block.values())
    roles = [role["RoleName"] for role in cdk.aws.client("iam").list_roles()["Roles"]]
    for purpose in ("deploy", "file-publishing", "cfn-exec", "lookup"):
        assert any(purpose in role for role in roles)


@pytest.mark.parametrize(
    ("app", "stack", "endpoints"),
    [
        ("app.py", "TritonDemo", {"digits", "catalog"}),
        ("examples/multi_model/app.py", "MultiModel", {"MultiModel-Catalog"}),
    ],
)
def test_app_deploys_twice_and_is_destroyed(
    cdk: CommandLine, tmp_path: Path, app: str, stack: str, endpoints: set[str]
) -> None:
    """An app deploys, a second deployment finds no changes, and destroy retains the bucket and the log."""
    assembly = tmp_path / "cdk.out"
    cdk.deploy(f"{sys.executable} {app}", "--output", str(assembly), cwd=PROJECT)
    view = StackView(cdk.aws, stack)
    found = cdk.aws.client("sagemaker").list_endpoints()["Endpoints"]
    assert {re.sub("[0-9A-F]{8}-[0-9A-Z]{12}$", "", each["EndpointName"]) for each in found} == endpoints
    assert {each["EndpointStatus"] for each in found} == {"InService"}
    assert "(no changes)" in cdk.deploy(assembly)
    cdk.run("destroy", "--app", str(assembly), "--force")
    assert view.leftovers() == {"bucket", "log-group"}


def test_stack_is_changed_and_rolled_back(cdk: CommandLine, tmp_path: Path) -> None:
    """Deploy, diff, update, predict, roll back and destroy, observed through the APIs."""
    assemblies = synthesize(tmp_path, "first", "changed_model", "broken")
    outputs = tmp_path / "outputs.json"
    cdk.deploy(assemblies / "first", "--outputs-file", str(outputs))
    view = StackView(cdk.aws, STACK)
    assert view.output("ManyName") in outputs.read_text()
    before = view.physical_ids()

    difference = cdk.run("diff", "--app", str(assemblies / "changed_model"))
    (model_line,) = [line for line in difference.splitlines() if "[~] AWS::SageMaker::Model " in line]
    assert model_line.endswith("replace")
    assert view.physical_ids() == before

    cdk.deploy(assemblies / "changed_model")
    changed = view.physical_ids()
    assert changed["endpoint:Single"] == before["endpoint:Single"]
    assert changed["model:Single"] != before["model:Single"]
    assert view.count_models() == 2
    with LocalEndpoint.from_aws(cdk.aws.endpoint_url, endpoint=view.output("SingleName")) as local:
        client = TritonClient.for_endpoint(view.output("SingleName"), endpoint_url=local.endpoint_url)
        answer = client.infer({"x": np.ones((1, 4), dtype=np.float32)})
    np.testing.assert_array_equal(answer["y"], np.full((1, 4), 12, dtype=np.float32))

    refusal = cdk.fail("deploy", "--app", str(assemblies / "broken"), "--require-approval", "never")
    assert "must be a valid JSON object" in refusal
    assert view.stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert view.physical_ids() == changed
    assert [target["MaxCapacity"] for target in view.scalable_targets("ManyName")] == [MAX_CAPACITY]
    (variant,) = view.endpoint_config("ManyName")["ProductionVariants"]
    assert variant["InstanceType"] == INSTANCE_TYPE

    cdk.run("destroy", "--app", str(assemblies / "first"), "--force")
    assert view.leftovers() == {"bucket", "log-group"}
