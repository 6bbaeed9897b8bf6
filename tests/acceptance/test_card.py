"""What the project promises first: it deploys, it fits into an app of yours, and two commands run a
clone.

- ``cdk deploy`` of ``app.py`` succeeds: tested here in a clone. ``test_deploy_demo.py`` also
  updates it, rolls it back and destroys it.
- A construct works in any CDK app with the base installation alone, and a snapshot of its stack
  stays equal when only model files change: tested here, from the wheels.
- ``make demo`` works on a clone, in a new home folder: tested here.
- ``make test`` works on a clone, in a new home folder: ``.ci/run`` shows it, because a test cannot
  run the tests of which it is a part.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo_output import accuracy_of, assert_steps_in_order
from installed_wheels import Environment, install, run
from members import PROJECT, members_of
from smallest_uses import MODELS
from triton_server import needs_server

from cdk_rehearse import SimulatedAccount

BUDGET_MINUTES = 5
APP = """
import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
)

INSTANCE_TYPE = "ml.g5.xlarge"


class Shop(cdk.Stack):
    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        photos = s3.Bucket(self, "Photos")
        models = TritonModelRepository(self, "Models", source=ModelSource.from_directory("models"))
        endpoint = TritonEnsembleEndpoint(
            self,
            "Endpoint",
            model_repository=models,
            ensemble="digits",
            instance_type=InstanceType.of(INSTANCE_TYPE),
        )
        cdk.CfnOutput(self, "Where", value=f"{photos.bucket_name} {endpoint.endpoint_name}")


if __name__ == "__main__":
    app = cdk.App(outdir="cdk.out")
    Shop(app, "Shop")
    app.synth()
"""
TESTS = """
from importlib.util import find_spec

import aws_cdk as cdk
import pytest
from app import Shop
from aws_cdk.assertions import Match, Template

from constructs_triton.testing import TritonTemplateExtension, assert_endpoint


@pytest.fixture
def stack():
    return Shop(cdk.App(), "Shop")


def test_nothing_else_is_installed():
    others = ("numpy", "boto3", "constructs_triton_client", "cdk_rehearse", "cfnlint")
    others += ("tritonclient", "grpc", "ml_dtypes", "rapidjson", "urllib3", "onnx")
    assert [name for name in others if find_spec(name)] == []


def test_assertions_of_the_cdk(stack):
    template = Template.from_stack(stack)
    template.resource_count_is("AWS::SageMaker::Endpoint", 1)
    variant = {"InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
    template.has_resource_properties(
        "AWS::SageMaker::EndpointConfig", {"ProductionVariants": [Match.object_like(variant)]}
    )


def test_assertion_of_the_library(stack):
    assert_endpoint(stack, models=["digits"], instance_types="ml.g5.xlarge")


def test_snapshot(stack, snapshot):
    assert stack == snapshot(extension_class=TritonTemplateExtension)
"""


@pytest.fixture(scope="module")
def shop(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An app of someone else: the base installation, pytest, and syrupy for the snapshot."""
    (root,) = (member for member in members_of() if member.folder == ".")
    requirements = (f"{root.name}=={root.version}", "pytest", "syrupy")
    environment = install(
        sys.executable, tmp_path_factory.mktemp("shop"), *requirements, dist=distributions
    )
    shutil.copytree(MODELS, environment.folder / "models")
    (environment.folder / "app.py").write_text(APP)
    (environment.folder / "test_shop.py").write_text(TESTS)
    return environment


def test_construct_in_an_app_of_someone_else(shop: Environment) -> None:
    """With the base installation alone, the app synthesizes, and assertions and a snapshot pass."""
    shop.run("python", "app.py")
    assert (shop.folder / "cdk.out" / "Shop.template.json").is_file()
    printed = shop.run("python", "-m", "pytest", "-q", "--snapshot-update")
    assert "1 snapshot generated" in printed

    config = shop.folder / "models" / "digits" / "config.pbtxt"
    config.write_text(f"{config.read_text()}# Another version of the models.\n")
    assert "4 passed" in shop.run("python", "-m", "pytest", "-q")

    app = shop.folder / "app.py"
    app.write_text(app.read_text().replace("ml.g5.xlarge", "ml.g5.2xlarge"))
    printed = shop.run("python", "-m", "pytest", "-q", "-k", "snapshot", exit_code=1)
    assert "ml.g5.2xlarge" in printed


def _caches() -> dict[str, str]:
    """The folders of downloads, so that a new home folder does not download gigabytes again."""
    commands = {
        "UV_CACHE_DIR": (sys.executable, "-m", "uv", "cache", "dir"),
        "PIP_CACHE_DIR": (sys.executable, "-m", "pip", "cache", "dir"),
        "npm_config_cache": ("npm", "config", "get", "cache"),
    }
    return {
        name: subprocess.check_output(words, text=True).strip() for name, words in commands.items()
    }


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A clone of the last commit, which is deleted: what ``make`` installs has gigabytes."""
    folder = tmp_path_factory.mktemp("clone") / "constructs_triton"
    run("git", "clone", "--quiet", PROJECT, folder, cwd=PROJECT)
    yield folder
    shutil.rmtree(folder)


@needs_server
def test_make_demo_and_deploy_on_a_clone(clone: Path, tmp_path: Path) -> None:
    """In a new home folder, ``make demo`` installs what it needs and classifies digits;
    then app.py is deployed.
    """
    # This process may itself have been started by make.
    variables = {**_caches(), "HOME": str(tmp_path), "MAKEFLAGS": "", "MAKELEVEL": ""}
    printed = run("make", "demo", cwd=clone, variables=variables)
    demonstration = printed[printed.index("This demo ") :]
    assert_steps_in_order(demonstration, "Synthesize", "Start", "Send")
    assert accuracy_of(demonstration) >= 95
    assert run("git", "status", "--porcelain", cwd=clone) == ""
    assert not (clone / ".venv/bin/mypy").exists()  # only the tests need it

    cdk, app = clone / "node_modules/.bin/cdk", f"{clone}/.venv/bin/python app.py"
    with SimulatedAccount() as account:
        for words in (
            ("bootstrap", f"aws://{account.api.account}/us-east-1"),
            ("deploy", "--require-approval", "never"),
        ):
            done = account.run_cdk(cdk, *words, "--app", app, cwd=clone)
            assert done.returncode == 0, done.stdout
        found = account.client("sagemaker").list_endpoints()["Endpoints"]
        assert {each["EndpointName"]: each["EndpointStatus"] for each in found} == {
            "catalog": "InService",
            "digits": "InService",
        }
