"""An app with lookups and a caller in another Region, through the CDK's command line and
``rehearse --serve``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deploy_app import write_models

from cdk_rehearse.services.service_api import client

BUDGET_MINUTES = 3

CDK = Path(__file__).resolve().parents[2] / "node_modules" / ".bin" / "cdk"
APP = Path(__file__).with_name("regions_app.py")
SERVE = [sys.executable, "-m", "constructs_triton.cli", "rehearse", "--serve", "--json"]
EUROPE, AMERICA = "eu-west-1", "us-east-1"


@dataclass
class Served:
    """An account that another process serves, and the folder of the app."""

    variables: dict[str, str]
    folder: Path

    def cdk(self, *arguments: str, succeeds: bool = True, **settings: str) -> str:
        """Run ``cdk`` on the app, and return what it prints."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        quiet = {"CDK_VALIDATION": "false", "CI": "1", "NO_COLOR": "1"}
        command = [str(CDK), *arguments, "--app", f"{sys.executable} {APP}"]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**kept, **self.variables, **quiet, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode == 0) is succeeds, done.stdout + done.stderr
        return done.stdout + done.stderr

    def client(self, service: str, region: str) -> Any:
        return client(service, self.variables["AWS_ENDPOINT_URL"], region)

    def config(self) -> str:
        """The configuration that the endpoint serves."""
        found = self.client("sagemaker", EUROPE).describe_endpoint(EndpointName="BerthsRotterdam")
        assert found["EndpointStatus"] == "InService"
        return str(found["EndpointConfigName"])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    write_models(tmp_path / "models", (("berths", 1),))
    write_models(tmp_path / "changed", (("berths", 2),))
    with subprocess.Popen(SERVE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Served(json.loads(process.stdout.readline()), tmp_path)
        process.terminate()


def test_app_of_two_regions_with_lookups(served: Served) -> None:
    """What the CDK has looked up is deployed, the caller in the other Region may call the ARN that
    the endpoint has, a failed update is rolled back, and ``cdk destroy`` leaves no endpoint.
    """
    served.cdk("bootstrap", f"aws://123456789012/{EUROPE}", f"aws://123456789012/{AMERICA}")
    served.cdk("deploy", "HarborBase", "--require-approval", "never", IS_BASE="1")
    served.cdk("deploy", "--all", "--require-approval", "never")
    config = served.config()
    sagemaker = served.client("sagemaker", EUROPE)
    (variant,) = sagemaker.describe_endpoint_config(EndpointConfigName=config)["ProductionVariants"]
    assert variant["InstanceType"] == "ml.c6i.2xlarge"

    iam = served.client("iam", AMERICA)
    (name,) = iam.list_role_policies(RoleName="HarborClerk")["PolicyNames"]
    policy = iam.get_role_policy(RoleName="HarborClerk", PolicyName=name)["PolicyDocument"]
    (allowed,) = {statement["Resource"] for statement in policy["Statement"]}
    assert allowed == sagemaker.describe_endpoint(EndpointName="BerthsRotterdam")["EndpointArn"]
    assert allowed == f"arn:aws:sagemaker:{EUROPE}:123456789012:endpoint/berthsrotterdam"

    printed = served.cdk(
        "deploy", "--all", "--require-approval", "never", succeeds=False, IS_BROKEN="1"
    )
    assert "DashboardBody must be a valid JSON object" in printed
    assert served.config() == config

    served.cdk("destroy", "--all", "--force")
    served.cdk("destroy", "--all", "--force", IS_BASE="1")
    assert sagemaker.list_endpoints()["Endpoints"] == []
