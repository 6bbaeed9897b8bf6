"""`local up` with a folder in place of S3: callers find the models of a deployment by name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from local_assembly import adding_model, below, write_archive, write_files
from triton_server import needs_server

from constructs_triton import InstanceType, ModelSource, TritonModelRepository, TritonMultiModelEndpoint
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

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


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalEndpoint]:
    """A multi-model endpoint whose stack copies one model into a bucket."""
    models = write_files(tmp_path / "models", below("ten", adding_model(10)))
    app = cdk.App(outdir=str(tmp_path / "cdk.out"), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "Tenants")
    bucket = s3.Bucket(stack, "Bucket", bucket_name="tenant-models")
    TritonMultiModelEndpoint(
        stack,
        "Endpoint",
        endpoint_name="tenants",
        instance_type=InstanceType.of("ml.c6i.large"),
        model_repository=TritonModelRepository(
            stack, "Models", source=ModelSource.from_directory(models), bucket=bucket
        ),
    )
    assembly = app.synth().directory
    with LocalEndpoint.from_assembly(assembly, bucket_folder=tmp_path / "s3") as local:
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
    """It calls a model of the stack, and one that ModelLibrary adds, by name and without credentials."""
    assert _run(CALL, local.endpoint_url, INDEX, "ten") == "[11.0]"
    archive = write_archive(tmp_path / "seven.tar.gz", below("seven", adding_model(7)))
    assert "seven-" in _run(ADD, "seven", archive, AWS_ENDPOINT_URL_S3=local.endpoint_url)
    assert _run(CALL, local.endpoint_url, INDEX, "seven") == "[8.0]"
    assert _run(CALL, local.endpoint_url, INDEX, "ten") == "[11.0]"
