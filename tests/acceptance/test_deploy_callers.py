"""A stack of callers, deployed once, follows the models of another stack."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import PROJECT
from triton_server import needs_server

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.permissions.access import RoleCredentials
from constructs_triton_core.model_index import ModelIndex
from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 2
pytestmark = needs_server

SCORES = "np.array(scores, np.float32)"
CALL = """
import json, sys
from handler import handler
print(json.dumps(handler({"review": sys.argv[1]}, None)))
"""


@pytest.fixture
def aws() -> Iterator[SimulatedAccount]:
    with SimulatedAccount(functions="python") as account:
        account.bootstrap()
        yield account


def synthesize(folder: Path) -> Path:
    """Synthesize the copy of the example in a folder."""
    app = folder / "examples/composition/app.py"
    environment = {**os.environ, "CDK_OUTDIR": str(folder / "cdk.out"), "CDK_VALIDATION": "false"}
    subprocess.run([sys.executable, str(app)], env=environment, check=True)
    return folder / "cdk.out"


def copy_example(folder: Path) -> Path:
    shutil.copytree(PROJECT / "examples/composition", folder / "examples/composition")
    models = folder / "assets/model_repositories/catalog"
    shutil.copytree(PROJECT / "assets/model_repositories/catalog", models)
    return models


def deployed(aws: SimulatedAccount, stack: str, type: str) -> str:
    """The physical id of the only resource of a type."""
    rows = aws.client("cloudformation").list_stack_resources(StackName=stack)[
        "StackResourceSummaries"
    ]
    (found,) = [row["PhysicalResourceId"] for row in rows if row["ResourceType"] == type]
    return str(found)


class Caller:
    """The deployed function, run in a process of its own with the credentials of its role."""

    def __init__(self, aws: SimulatedAccount, local: LocalEndpoint) -> None:
        self.aws, self.local = aws, local
        name = deployed(aws, "Shop", "AWS::Lambda::Function")
        configuration = aws.client("lambda").get_function_configuration(FunctionName=name)
        self.variables: dict[str, str] = configuration["Environment"]["Variables"]
        self.role_arn: str = configuration["Role"]
        self.credentials: RoleCredentials = aws.access.assume(
            self.role_arn, service="lambda.amazonaws.com", context={}
        )

    def target_model(self, model: str) -> str:
        """The archive that the index names, read with the permissions of the function."""
        s3 = self.aws.client("s3", self.credentials)
        return ModelIndex.from_s3(self.variables["MODEL_INDEX"], s3).target_model(model)

    def may_call(self, target_model: str) -> bool:
        sagemaker = self.aws.client("sagemaker")
        endpoint = sagemaker.describe_endpoint(EndpointName=self.variables["SENTIMENT_ENDPOINT"])
        context = {"sagemaker:TargetModel": target_model}
        return self.aws.access.allows(
            self.role_arn, "sagemaker:InvokeEndpoint", endpoint["EndpointArn"], context
        )

    def call(self, review: str) -> float:
        environment = {
            **self.aws.environment(),
            **self.credentials.as_environment(),
            **self.variables,
            "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": self.local.endpoint_url,
        }
        command = [sys.executable, "-c", CALL, review]
        folder = PROJECT / "examples/composition/function"
        answer = subprocess.run(
            command,
            env={**environment, "PYTHONPATH": str(folder)},
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        return float(json.loads(answer)["score"])


def test_callers_stack_survives_a_change_of_the_model(
    aws: SimulatedAccount, tmp_path: Path
) -> None:
    """Deployed before the change, the function calls the new model after it, and no other model."""
    models = copy_example(tmp_path)
    assembly = synthesize(tmp_path)
    for stack in ("ShopNetwork", "Catalog", "Shop"):
        assert aws.deploy(assembly, stack).status == "CREATE_COMPLETE"
    with LocalEndpoint.from_aws(aws.endpoint_url) as local:
        caller = Caller(aws, local)
        before, first = caller.target_model("sentiment"), caller.call("a wonderful day")
        source = models / "sentiment/1/model.py"
        source.write_text(source.read_text().replace(SCORES, f"({SCORES} * 0 - 7)"))
        assert aws.deploy(synthesize(tmp_path), "Catalog").status == "UPDATE_COMPLETE"
        after = caller.target_model("sentiment")
        assert after != before
        assert -1 <= first <= 1
        assert caller.call("a wonderful day") == -7
    assert caller.may_call(before)
    assert caller.may_call(after)
    assert not caller.may_call(caller.target_model("forecast"))
