"""Shows how to call an endpoint that runs on this machine."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_tools.local.page.forms import model_form
from constructs_triton_tools.local.sources.inference_type import used_inference_type

if TYPE_CHECKING:
    from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint

_CLIENT = """
  import json
  import boto3
  runtime = boto3.client("sagemaker-runtime", endpoint_url="{url}", region_name="{region}",
                         aws_access_key_id="local", aws_secret_access_key="local")
"""
_CALL = """\
  body = json.dumps({body})
  response = runtime.invoke_endpoint(EndpointName="{name}", ContentType="application/json", \
Body=body{target})
  print(json.load(response["Body"]))
"""
_STREAM_CALL = """\
  response = runtime.invoke_endpoint_with_response_stream(
      EndpointName="{name}", ContentType="application/json", Body={body}{target})
  for event in response["Body"]:
      print(event["PayloadPart"]["Bytes"].decode())
"""
_ASYNC_CALL = """\
  # The endpoint is asynchronous. {folder}
  response = runtime.invoke_endpoint_async(EndpointName="{name}", ContentType="application/json",
                                           InputLocation="s3://{path}1")
"""
# In place of S3, with and without --bucket-folder.
_FOLDER = """Its S3 is the folder {folder}: write the request to the file
  # {file}, and wait for the file of OutputLocation."""
_NO_FOLDER = "Calls need a folder in place of S3: start the run with --bucket-folder DIR."

#: A longer example would fill the screen.
_MOST_ELEMENTS = 16


def invocation_url(url: str, endpoint: RunningEndpoint) -> str:
    """Return the address that receives the requests of an endpoint."""
    path = "invocations" if endpoint.spec.asynchronous is None else "async-invocations"
    return f"{url}/endpoints/{endpoint.spec.name}/{path}"


def index_url(url: str, endpoint: RunningEndpoint) -> str:
    """Return the address of the names of the models of a multi-model endpoint."""
    return f"{url}/endpoints/{endpoint.spec.name}/index.json"


def call_example(
    url: str,
    endpoint: RunningEndpoint,
    bucket_folder: Path | None = None,
    *,
    has_client: bool = True,
) -> str:
    """Return lines of Python that call an endpoint with boto3,
    with the client if ``has_client``.
    """
    spec = endpoint.spec
    client = _CLIENT.format(url=url, region=spec.region) if has_client else "\n"
    if spec.asynchronous is None:
        names = {"name": spec.name, "target": _target(endpoint)}
        kind = _inference_type(endpoint)
        if kind == "generate_stream":
            return client + _STREAM_CALL.format(
                **names, body=repr(json.dumps(_generated_inputs(endpoint)))
            )
        body = repr(_generated_inputs(endpoint)) if kind == "generate" else _request(endpoint)
        return client + _CALL.format(**names, body=body)
    path = spec.asynchronous.input_prefix.removeprefix("s3://")
    folder = _NO_FOLDER
    if bucket_folder is not None:
        folder = _FOLDER.format(folder=bucket_folder, file=bucket_folder / f"{path}1")
    return client + _ASYNC_CALL.format(name=spec.name, path=path, folder=folder)


def _inference_type(endpoint: RunningEndpoint) -> str:
    """Return how the first container of an endpoint answers."""
    container = endpoint.all_servers()[0].server.container
    return used_inference_type(container, container.image)


def _generated_inputs(endpoint: RunningEndpoint) -> dict[str, object]:
    """Return a value for each required input of the model;
    a text if its configuration has no inputs.
    """
    values = {tensor["name"]: _value(tensor) for tensor in _inputs(endpoint)[0]}
    return values or {"text_input": "hello"}


def _request(endpoint: RunningEndpoint) -> str:
    """Return Python for a request of the KServe protocol with all required inputs."""
    inputs, is_batched = _inputs(endpoint)
    return f'{{"inputs": [{", ".join(_python_input(tensor, is_batched) for tensor in inputs)}]}}'


def _python_input(tensor: Mapping[str, Any], is_batched: bool) -> str:
    """Return one input: a value for each element, and 1 for each dimension of any size."""
    sizes = [size if size > 0 else 1 for size in tensor["dims"]]
    shape = [1, *sizes] if is_batched else sizes
    count = math.prod(shape)
    data = f"[{_one(tensor)!r}]" if count == 1 else f"[{_one(tensor)!r}] * {count}"
    head = f'"name": "{tensor["name"]}", "datatype": "{tensor["datatype"]}"'
    return f'{{{head}, "shape": {shape}, "data": {data}}}'


def _inputs(endpoint: RunningEndpoint) -> tuple[list[Mapping[str, Any]], bool]:
    """Return the required inputs of the model that the example calls, and whether it has a batch
    axis.
    """
    archives = _archives(endpoint)
    try:
        form: Any = model_form(endpoint.all_servers()[0], archives[0] if archives else None)
    except ConstructsTritonError:  # the server has its own message about these models
        return [], False
    required = [tensor for tensor in form["inputs"] if not tensor["optional"]]
    return required, form.get("max_batch_size", 0) > 0


def _value(tensor: Mapping[str, Any]) -> object:
    """Return a value of an input in the form of Triton's generate extension:
    a list for several elements.
    """
    one = _one(tensor)
    count = math.prod(size for size in tensor["dims"] if size > 0)
    return one if count == 1 else [one] * min(count, _MOST_ELEMENTS)


def _one(tensor: Mapping[str, Any]) -> object:
    """Return a value of one element."""
    values: dict[str, object] = {"BYTES": "hello", "BOOL": True}
    return values.get(tensor["datatype"], 1)


def _archives(endpoint: RunningEndpoint) -> list[str]:
    """Return the archives of a multi-model endpoint in alphabetical order."""
    variants = endpoint.spec.variants
    return sorted(variants[0].container.archives) if variants else []


def _target(endpoint: RunningEndpoint) -> str:
    """Return the argument that chooses what an endpoint runs,
    for endpoints that run several things.
    """
    if endpoint.components:
        name = next(iter(endpoint.components))
        return f',\n                                     InferenceComponentName="{name}"'
    archives = _archives(endpoint)
    return f', TargetModel="{archives[0]}"' if archives else ""
