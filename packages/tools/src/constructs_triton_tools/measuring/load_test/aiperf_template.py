"""Writes a request as a template of NVIDIA AIPerf, which fills in its own prompts."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from constructs_triton_client import Invocation
from constructs_triton_core.errors import InvalidValueError

#: Stands for AIPerf's prompt until the JSON is written. JSON text cannot contain this character.
_PROMPT = "\0"
_PROMPT_IN_JSON = json.dumps(_PROMPT)
_PROMPT_OF_AIPERF = "{{ text|tojson }}"

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_HEADERS = {
    "TargetModel": "X-Amzn-SageMaker-Target-Model",
    "TargetVariant": "X-Amzn-SageMaker-Target-Variant",
    "InferenceComponentName": "X-Amzn-SageMaker-Inference-Component",
}
"""Headers of InvokeEndpoint, as in botocore's model of ``sagemaker-runtime``."""


def format_aiperf_template(invocation: Invocation) -> str:
    """Return the Jinja template of a request, for AIPerf's endpoint type ``template``.

    AIPerf's prompt takes the place of each BYTES tensor of one element, and of ``text_input`` of
    Triton's generate extension. Everything else is sent as it is in ``invocation``, whose body is
    JSON.

    Raises:
        InvalidValueError: it is a chat completion, which AIPerf writes itself.
    """
    body = json.loads(invocation.body)
    if isinstance(body, dict) and "messages" in body:
        raise InvalidValueError(
            "--export-aiperf: AIPerf writes chat completions itself; "
            "use its `--endpoint-type chat`, without a template"
        )
    text = _STRING.sub(_without_braces, json.dumps(_with_prompt(body), indent=2))
    return text.replace(_PROMPT_IN_JSON, _PROMPT_OF_AIPERF) + "\n"


def aiperf_command(
    template: str, endpoint: str, invocation: Invocation, *, endpoint_url: str
) -> str:
    """Return the command that sends a template to an endpoint at this URL."""
    is_generated = "text_input" in json.loads(invocation.body)
    options = {
        "--model": endpoint,
        "--url": endpoint_url,
        "--custom-endpoint": f"/endpoints/{endpoint}/invocations",
        "--endpoint-type": "template",
        "--tokenizer": "builtin",
        "--concurrency": "4",
        "--request-count": "200",
    }
    extra = {
        "payload_template": template,
        "response_field": "text_output" if is_generated else "outputs[0].data",
    }
    words = ["aiperf", "profile"]
    for name, value in options.items():
        words += [name, value]
    for name, value in extra.items():
        words += ["--extra-inputs", f"{name}:{value}"]
    for name, value in invocation.options.items():
        words += ["--header", f"{_HEADERS[name]}:{value}"]
    return shlex.join(words)


def _with_prompt(body: Any) -> Any:
    if not isinstance(body, dict):
        return body
    changed = dict(body)
    if isinstance(body.get("text_input"), str):
        changed["text_input"] = _PROMPT
    if isinstance(body.get("inputs"), list):
        changed["inputs"] = [_tensor_with_prompt(tensor) for tensor in body["inputs"]]
    return changed


def _tensor_with_prompt(tensor: Mapping[str, Any]) -> Mapping[str, Any]:
    if tensor.get("datatype") != "BYTES" or len(tensor["data"]) != 1:
        return tensor
    return {**tensor, "data": [_PROMPT]}


def _without_braces(found: re.Match[str]) -> str:
    """Return a JSON string without the braces that begin an expression of Jinja."""
    return found[0].replace("{", "\\u007b")
