"""The code that `local up` prints for an endpoint."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest
from fake_container import fake_server

from constructs_triton_tools.local.call_example import call_example
from constructs_triton_tools.local.gateway.local_variant import LocalVariant
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton_tools.local.sources.specs import ContainerSpec, EndpointSpec, VariantSpec


@pytest.mark.parametrize(
    ("inference_type", "call"),
    [
        ("infer", "invoke_endpoint("),
        ("generate", "invoke_endpoint("),
        ("generate_stream", "invoke_endpoint_with_response_stream("),
    ],
)
def test_call_fits_the_inference_type(tmp_path: Path, inference_type: str, call: str) -> None:
    """Python that calls the operation of the endpoint."""
    environment = {"SAGEMAKER_TRITON_INFERENCE_TYPE": inference_type}
    container = ContainerSpec("m", "", "s3://b/m.tar.gz", environment, Path("m.tar.gz"))
    variant = VariantSpec("A", container)
    server = fake_server(tmp_path, container=container)
    endpoint = RunningEndpoint(EndpointSpec("e", "s", (variant,)), [LocalVariant(variant, server, None)])
    code = dedent(call_example("http://127.0.0.1:8080", endpoint))
    ast.parse(code)
    assert f"runtime.{call}" in code
    assert 'EndpointName="e"' in code
