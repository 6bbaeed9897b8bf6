"""`local up` of several stacks with a folder in place of S3: models by name, archives,
and a queue.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import boto3
import numpy as np
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from local_assembly import adding_model, below, write_archive, write_files
from programs import PROJECT
from triton_server import needs_server

from constructs_triton import (
    AsyncInferenceConfig,
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)
from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

FLAGS = PROJECT / "node_modules/aws-cdk/lib/init-templates/.recommended-feature-flags.json"
REQUEST = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [1]}]}
INDEX = "s3://tenant-models/models/index.json"
CALL = """
import sys
import numpy as np
from constructs_triton_client import TritonClient

url, index, name = sys.argv[1:]
client = TritonClient.for_endpoint("tenants", endpoint_url=url, index=index, target_model=name)
print(client.infer({"X": np.array([1], "f4")})["Y"].tolist())
"""
ADD = """
import sys
from constructs_triton_tools.operations import ModelLibrary

print(ModelLibrary("tenant-models", "models/").add(sys.argv[1], sys.argv[2]).uploaded)
"""


class Platform(cdk.Stack):
    """What a platform team owns."""

    def __init__(self, scope: cdk.App) -> None:
        super().__init__(scope, "Platform")
        self.vpc = ec2.Vpc(self, "Network", max_azs=2)
        self.key = kms.Key(self, "Key")
        self.bucket = s3.Bucket(self, "Queue", bucket_name="queue")
        self.role = iam.Role(
            self, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com")
        )


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


class Tenants(cdk.Stack):
    """A multi-model endpoint whose stack copies one model into a bucket."""

    def __init__(self, scope: cdk.App, models: Path) -> None:
        super().__init__(scope, "Tenants")
        bucket = s3.Bucket(self, "Bucket", bucket_name="tenant-models")
        TritonMultiModelEndpoint(
            self,
            "Endpoint",
            endpoint_name="tenants",
            instance_type=InstanceType.of("ml.c6i.large"),
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_directory(models), bucket=bucket
            ),
        )


class Trained(cdk.Stack):
    """A multi-model endpoint of the archives that another program puts under a prefix."""

    def __init__(self, scope: cdk.App) -> None:
        super().__init__(scope, "Trained")
        bucket = s3.Bucket.from_bucket_name(self, "Bucket", "trained")
        TritonMultiModelEndpoint(
            self,
            "Many",
            endpoint_name="many",
            instance_type=InstanceType.of("ml.c6i.xlarge"),
            model_repository=TritonModelRepository(
                self, "Models", source=ModelSource.from_archive_prefix(bucket, "team/models/")
            ),
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the assembly, and of ``s3``."""
    return tmp_path_factory.mktemp("buckets")


@pytest.fixture(scope="module")
def local(folder: Path) -> Iterator[LocalEndpoint]:
    """One run of all stacks, with the flags of a new app,
    which include weak references between stacks.
    """
    flags = json.loads(FLAGS.read_text())
    assert flags["@aws-cdk/core:defaultCrossStackReferences"] == "weak"
    app = cdk.App(
        context=flags, outdir=str(folder / "cdk.out"), builtin_cloud_formation_validation=False
    )
    Serving(app, Platform(app), write_files(folder / "one", below("adder", adding_model(10))))
    Tenants(app, write_files(folder / "several", below("ten", adding_model(10))))
    Trained(app)
    archive = folder / "s3/trained/team/models/three.tar.gz"
    archive.parent.mkdir(parents=True)
    write_archive(archive, below("three", adding_model(3)))
    with LocalEndpoint.from_assembly(app.synth().directory, bucket_folder=folder / "s3") as local:
        yield local


def _run(code: str, *words: str | Path, **variables: str) -> str:
    """Run a program without AWS credentials and without a Region."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    kept |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "none", **variables}
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_caller_reads_the_index_of_the_local_run(local: LocalEndpoint, tmp_path: Path) -> None:
    """It calls a model of the stack, and one that ModelLibrary adds,
    by name and without credentials.
    """
    assert _run(CALL, local.endpoint_url, INDEX, "ten") == "[11.0]"
    archive = write_archive(tmp_path / "seven.tar.gz", below("seven", adding_model(7)))
    assert "seven-" in _run(ADD, "seven", archive, AWS_ENDPOINT_URL_S3=local.endpoint_url)
    assert _run(CALL, local.endpoint_url, INDEX, "seven") == "[8.0]"
    assert _run(CALL, local.endpoint_url, INDEX, "ten") == "[11.0]"


def test_archives_of_other_programs_are_served_from_a_folder(local: LocalEndpoint) -> None:
    """A folder in place of S3 contains what a training job puts under the prefix."""
    client = TritonClient.for_endpoint("many", endpoint_url=local.endpoint_url)
    result = client.infer({"X": np.array([1.0], np.float32)}, TargetModel="three.tar.gz")
    assert result["Y"].tolist() == [4.0]


def test_an_endpoint_takes_everything_from_another_stack(
    local: LocalEndpoint, folder: Path
) -> None:
    """It answers, writes to the bucket of the other stack,
    and reads only what the other stack's role may.
    """
    answer = _call(local, folder / "s3", "async/input/1")
    assert json.loads(answer)["outputs"][0]["data"] == [11]
    assert _call(local, folder / "s3", "in/1").startswith("AccessDenied: role Role")
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
