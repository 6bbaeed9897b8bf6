"""`local up` with a network, key, role and bucket of another stack, and the flags of `cdk init`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import boto3
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from local_assembly import adding_model, below, write_files
from triton_server import needs_server

from constructs_triton import (
    AsyncInferenceConfig,
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
)
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

FLAGS = Path("node_modules/aws-cdk/lib/init-templates/.recommended-feature-flags.json")
ROOT = Path(__file__).parents[2]
REQUEST = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [1]}]}


class Platform(cdk.Stack):
    """What a platform team owns."""

    def __init__(self, scope: cdk.App) -> None:
        super().__init__(scope, "Platform")
        self.vpc = ec2.Vpc(self, "Network", max_azs=2)
        self.key = kms.Key(self, "Key")
        self.bucket = s3.Bucket(self, "Queue", bucket_name="queue")
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))


class Serving(cdk.Stack):
    """An asynchronous endpoint, which takes everything from the other stack."""

    def __init__(self, scope: cdk.App, platform: Platform, models: Path) -> None:
        super().__init__(scope, "Serving")
        TritonEndpoint(
            self,
            "Adder",
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_directory(str(models))
            ),
            instance_type=InstanceType.of("ml.g5.xlarge"),
            endpoint_name="adder",
            vpc=platform.vpc,
            encryption_key=platform.key,
            role=platform.role,
            async_inference=AsyncInferenceConfig(bucket=platform.bucket),
        )


@pytest.fixture
def assembly(tmp_path: Path) -> Path:
    """Synthesize the app with the flags of a new app, which include weak references between stacks."""
    models = write_files(tmp_path / "models", below("adder", adding_model(10)))
    flags = json.loads((ROOT / FLAGS).read_text())
    assert flags["@aws-cdk/core:defaultCrossStackReferences"] == "weak"
    app = cdk.App(context=flags, outdir=str(tmp_path / "cdk.out"), builtin_cloud_formation_validation=False)
    Serving(app, Platform(app), models)
    return Path(app.synth().directory)


@pytest.fixture
def local(assembly: Path, tmp_path: Path) -> Iterator[LocalEndpoint]:
    """Run the endpoint."""
    (tmp_path / "s3").mkdir()
    with LocalEndpoint.from_assembly(assembly, bucket_folder=tmp_path / "s3") as local:
        yield local


def test_an_endpoint_takes_everything_from_another_stack(local: LocalEndpoint, tmp_path: Path) -> None:
    """It answers, writes to the bucket of the other stack, and reads only what the other stack's role may."""
    answer = _call(local, tmp_path / "s3", "async/input/1")
    assert json.loads(answer)["outputs"][0]["data"] == [11]
    assert _call(local, tmp_path / "s3", "in/1").startswith("AccessDenied: role Role")
    assert "use a location below one of s3://" in local.messages
    assert "s3://queue/async/input/" in local.messages


def _call(local: LocalEndpoint, folder: Path, key: str) -> str:
    """Put a request into the bucket, call the endpoint, and return the response or the failure."""
    runtime: Any = boto3.client("sagemaker-runtime", endpoint_url=local.endpoint_url)
    path = folder / "queue" / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(REQUEST))
    found = runtime.invoke_endpoint_async(EndpointName="adder", InputLocation=f"s3://queue/{key}")
    places: list[Path] = [
        folder / found[name].removeprefix("s3://") for name in ("OutputLocation", "FailureLocation")
    ]
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for place in places:
            if place.is_file():
                return place.read_text()
        time.sleep(0.05)
    raise AssertionError(local.messages)
