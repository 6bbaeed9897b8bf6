"""Endpoints of the articles' notebooks become apps that deploy the same endpoints
with the same answers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from described_endpoints import changed_paths, describe
from notebook_endpoints import (
    BUCKET,
    ENDPOINTS,
    ROLE,
    NotebookEndpoint,
    create,
    delete,
    prepare_account,
)
from programs import run_command
from synthesized_adoption import synthesize
from triton_server import needs_server

from cdk_rehearse import SimulatedAccount
from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 2
pytestmark = needs_server

_INPUT = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}
REQUEST = json.dumps({"inputs": [_INPUT]}).encode()
Responses = dict[tuple[str, str | None], bytes]


@dataclass(frozen=True)
class Circle:
    """What AWS and the models answer before the adoption and after the deployment of the apps."""

    apps: Path
    adoptions: Mapping[str, Any]
    described: tuple[Mapping[str, Any], Mapping[str, Any]]
    responses: tuple[Responses, Responses]
    objects: tuple[list[str], list[str]]
    roles: tuple[Any, Any]


@pytest.fixture(scope="module")
def circle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Circle]:
    """All endpoints: created by the notebooks' calls, adopted, deleted,
    and deployed by their apps.
    """
    folder = tmp_path_factory.mktemp("adopted")
    with SimulatedAccount() as aws:
        prepare_account(aws)
        for each in ENDPOINTS:
            create(aws, each, folder)
        before = (read(aws), call_all(aws), keys(aws), studio_role(aws))
        adoptions = {each.name: adopt(aws, each, folder / "apps" / each.name) for each in ENDPOINTS}
        for each in ENDPOINTS:
            delete(aws, each)
            assembly = folder / "assemblies" / each.name
            synthesize(folder / "apps" / each.name, assembly)
            stack = aws.deploy(assembly, "Endpoint")
            assert stack.status == "CREATE_COMPLETE", stack.reason
        after = (read(aws), call_all(aws), keys(aws), studio_role(aws))
        pairs = list(zip(before, after, strict=True))
        yield Circle(folder / "apps", adoptions, *pairs)


def read(aws: SimulatedAccount) -> dict[str, Any]:
    return {each.name: describe(aws, each.name) for each in ENDPOINTS}


def adopt(aws: SimulatedAccount, endpoint: NotebookEndpoint, directory: Path) -> Any:
    """Return what ``constructs-triton adopt --json`` prints."""
    directory.parent.mkdir(exist_ok=True)
    words = [
        "adopt",
        endpoint.name,
        "-o",
        str(directory),
        "--switch",
        "import",
        "--no-synth",
        "--json",
    ]
    return json.loads(run_command(*words, environment=aws.environment()))


def call_all(aws: SimulatedAccount) -> Responses:
    """Return the bytes that each model of each endpoint answers, from the archives in S3."""
    with LocalEndpoint.from_aws(aws.endpoint_url) as local:
        return {
            (each.name, target): call(local, each.name, target)
            for each in ENDPOINTS
            for target in each.target_models
        }


def call(local: LocalEndpoint, endpoint: str, target_model: str | None) -> bytes:
    """Return the body of the response, as the notebook's own call of boto3 gets it."""
    target = {} if target_model is None else {"TargetModel": target_model}
    runtime = boto3.client("sagemaker-runtime", endpoint_url=local.endpoint_url)
    response = runtime.invoke_endpoint(
        EndpointName=endpoint, ContentType="application/octet-stream", Body=REQUEST, **target
    )
    body: bytes = response["Body"].read()
    return body


def keys(aws: SimulatedAccount) -> list[str]:
    found = aws.client("s3").list_objects_v2(Bucket=BUCKET)["Contents"]
    return [each["Key"] for each in found]


def studio_role(aws: SimulatedAccount) -> Any:
    iam = aws.client("iam")
    attached = iam.list_attached_role_policies(RoleName=ROLE)["AttachedPolicies"]
    return attached, iam.list_role_policies(RoleName=ROLE)["PolicyNames"]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: each.name)
def test_descriptions_differ_only_where_the_report_says_so(
    circle: Circle, endpoint: NotebookEndpoint
) -> None:
    """Every answer of AWS that changes is named in the report, and nothing else changes."""
    before, after = (each[endpoint.name] for each in circle.described)
    named = {each["path"] for each in circle.adoptions[endpoint.name]["differences"]}
    assert changed_paths(before, after) == named


def test_models_answer_with_the_same_bytes(circle: Circle) -> None:
    """Each model of each endpoint answers the same request with the same bytes,
    under the same name.
    """
    before, after = circle.responses
    assert before == after
    assert len(set(before.values())) > len(ENDPOINTS) / 2


def test_default_bucket_and_studio_role_stay(circle: Circle) -> None:
    """No app owns, empties or changes what the SageMaker SDK and Studio share with others."""
    assert circle.objects[0] == circle.objects[1]
    assert circle.roles[0] == circle.roles[1]


def test_apps_are_formatted_and_short(circle: Circle) -> None:
    """The generated files pass ruff, and an app has fewer than 80 lines."""
    written = [*circle.apps.glob("*/app.py"), *circle.apps.glob("*/tests/test_stack.py")]
    for command in (["format", "--check"], ["check", "--select", "F,I,UP"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--isolated", *map(str, written)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    for app in circle.apps.glob("*/app.py"):
        assert len(app.read_text().splitlines()) < 80
