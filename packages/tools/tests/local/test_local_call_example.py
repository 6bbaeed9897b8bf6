"""The code that `local up` prints for an endpoint."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from textwrap import dedent

import pytest
from fake_container import endpoint_of, fake_server

from constructs_triton_tools.local.call_example import call_example
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton_tools.local.sources.specs import ContainerSpec

STORY = """backend: "python"
input [ { name: "text_input" data_type: TYPE_STRING dims: [ 1 ] },
        { name: "max_tokens" data_type: TYPE_INT32 dims: [ 1 ] },
        { name: "echo" data_type: TYPE_BOOL dims: [ 1 ] },
        { name: "prefix" data_type: TYPE_FP32 dims: [ -1, 2 ] },
        { name: "seed" data_type: TYPE_INT32 dims: [ 1 ] optional: true } ]
"""


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
    code = dedent(call_example("http://127.0.0.1:8080", running(tmp_path, inference_type)))
    ast.parse(code)
    assert f"runtime.{call}" in code
    assert 'EndpointName="e"' in code


def test_client_of_an_earlier_call_is_not_repeated(tmp_path: Path) -> None:
    """The call of a further endpoint has no client of its own."""
    code = call_example("http://127.0.0.1:8080", running(tmp_path, "infer"), has_client=False)
    assert "boto3.client" not in code
    assert code.startswith("\n  body = json.dumps(")


@pytest.mark.parametrize(("max_batch_size", "shape"), [(0, [1, 2]), (4, [1, 1, 2])])
def test_call_has_a_request_with_all_required_inputs(
    tmp_path: Path, max_batch_size: int, shape: list[int]
) -> None:
    """Each input has its shape, with a batch axis if the model has one, and a value per element."""
    folder = tmp_path / "opt/ml/model/story/1"
    folder.mkdir(parents=True)
    config = f"max_batch_size: {max_batch_size}\n{STORY}"
    (folder.parent / "config.pbtxt").write_text(config)
    (folder / "model.py").touch()
    code = call_example("http://127.0.0.1:8080", running(tmp_path, "infer"))
    (line,) = (each for each in code.splitlines() if "json.dumps(" in each)
    found = eval(line.partition("json.dumps(")[2].removesuffix(")"))
    prefix = next(each for each in found["inputs"] if each["name"] == "prefix")
    assert prefix == {"name": "prefix", "datatype": "FP32", "shape": shape, "data": [1, 1]}
    assert [each["name"] for each in found["inputs"]][:3] == ["text_input", "max_tokens", "echo"]


@pytest.mark.parametrize(
    ("config", "body"),
    [
        (STORY, {"text_input": "hello", "max_tokens": 1, "echo": True, "prefix": [1, 1]}),
        ('backend: "python"\n', {"text_input": "hello"}),
        ("wrong {", {"text_input": "hello"}),
        (None, {"text_input": "hello"}),
    ],
)
def test_call_of_a_stream_has_the_required_inputs(
    tmp_path: Path, config: str | None, body: dict[str, object]
) -> None:
    """The body has a value for each input that the model requires,
    or a text if they are not known.
    """
    if config is not None:
        (tmp_path / "opt/ml/model/story/1").mkdir(parents=True)
        (tmp_path / "opt/ml/model/story/config.pbtxt").write_text(config)
    code = call_example("http://127.0.0.1:8080", running(tmp_path, "generate_stream"))
    (line,) = (each for each in code.splitlines() if "Body=" in each)
    assert json.loads(ast.literal_eval(line.partition("Body=")[2].removesuffix(")"))) == body


def running(folder: Path, inference_type: str) -> RunningEndpoint:
    environment = {"SAGEMAKER_TRITON_INFERENCE_TYPE": inference_type}
    container = ContainerSpec("m", "", "s3://b/m.tar.gz", environment, Path("m.tar.gz"))
    return endpoint_of(fake_server(folder, container=container), container)
