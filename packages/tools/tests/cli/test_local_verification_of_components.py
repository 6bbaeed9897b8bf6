"""``local up --verify`` of an endpoint with inference components."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.cli.local_run.verification import LocalVerification
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton_tools.local.sources.specs import ComponentSpec, ContainerSpec, EndpointSpec


def test_several_components_are_verified_one_by_one(tmp_path: Path) -> None:
    """The error has the command for one of them."""
    tensor = {"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}
    request = {"name": "first", "inputs": [tensor], "outputs": [tensor]}
    (tmp_path / "requests.json").write_text(json.dumps({"version": 1, "requests": [request]}))
    container = ContainerSpec("m", "", "s3://b/k")
    components = tuple(ComponentSpec(name, container) for name in ("one", "two"))
    endpoint = RunningEndpoint(EndpointSpec("e", "s", (), components=components), [])
    command = "constructs-triton verify e FILE --inference-component NAME --endpoint-url http://x"
    with pytest.raises(
        InvalidValueError, match=rf"got one, two; run without --verify, .*{command}"
    ):
        LocalVerification(tmp_path / "requests.json")._verify("http://x", [endpoint])
