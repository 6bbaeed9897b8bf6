"""Runs the scripts of an example, and reads the calls of its template."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import programs
import pytest
from programs import PROJECT, synthesize_app

from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint

PUBLISHED_SYSTEMS = PROJECT / "examples" / "published_systems"

Template = dict[str, Any]


def run_script(
    example: str, script: str, *arguments: object, systems: Path = PUBLISHED_SYSTEMS
) -> str:
    """Return what the script prints; skip the test with its message if a download fails.

    ``systems`` is a copy of the examples, for scripts that write beside themselves.
    """
    done = programs.run_script(systems / example / script, *arguments)
    if done.returncode == os.EX_TEMPFAIL:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout


def synthesize(
    example: str, directory: Path, *, systems: Path = PUBLISHED_SYSTEMS, **context: str
) -> Path:
    """Return the example's cloud assembly, synthesized with the settings of its cdk.json."""
    synthesize_app(systems / example / "app.py", directory, context)
    return directory


def read_template(assembly: Path, stack: str) -> Template:
    """Return the template of the stack."""
    template: Template = json.loads((assembly / f"{stack}.template.json").read_text())
    return template


def endpoint_calls(template: Template, endpoint_name: str) -> dict[str, dict[str, Any]]:
    """Return the parameters of CloudFormation's calls of SageMaker for one endpoint, by boto3's
    method.

    A value that is known only at deployment is written as ``<name>``.
    """
    resources = template["Resources"]
    (endpoint,) = [
        each["Properties"]
        for each in resources.values()
        if each["Type"] == "AWS::SageMaker::Endpoint"
        and each["Properties"]["EndpointName"] == endpoint_name
    ]
    config = resources[_logical_id(endpoint["EndpointConfigName"])]["Properties"]
    (variant,) = config["ProductionVariants"]
    model = resources[_logical_id(variant["ModelName"])]["Properties"]
    calls = {"create_model": model, "create_endpoint_config": config, "create_endpoint": endpoint}
    return {name: _resolve(parameters) for name, parameters in calls.items()}


def _logical_id(reference: Any) -> str:
    return str(reference["Fn::GetAtt"][0])


def _resolve(value: Any) -> Any:
    match value:
        case {"Ref": name} | {"Fn::GetAtt": [name, _]}:
            return f"<{name}>"
        case {"Fn::FindInMap": [_, _, name]}:
            return f"<{name}>"
        case {"Fn::Sub": str(text)} | str(text):
            return text
        case {"Fn::Join": [separator, parts]}:
            return str(separator).join(str(_resolve(part)) for part in parts)
        case dict():
            return {key: _resolve(part) for key, part in value.items()}
    return [_resolve(part) for part in value] if isinstance(value, list) else value


# Fixtures of the tests of one example. The module of the tests has its NAME and the name of an
# ENDPOINT.


@pytest.fixture(scope="module")
def assembly(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(request.module.NAME, tmp_path_factory.mktemp("example") / "cdk.out")


@pytest.fixture(scope="module")
def endpoint(request: pytest.FixtureRequest, assembly: Path) -> Iterator[LocalEndpoint]:
    with LocalEndpoint.from_assembly(assembly, endpoint=request.module.ENDPOINT) as local:
        yield local


@pytest.fixture(scope="module")
def client(request: pytest.FixtureRequest, endpoint: LocalEndpoint) -> TritonClient:
    return TritonClient.for_endpoint(request.module.ENDPOINT, endpoint_url=endpoint.endpoint_url)
