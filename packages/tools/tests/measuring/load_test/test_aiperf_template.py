"""The template that NVIDIA AIPerf fills in is the request, with AIPerf's prompt in its place."""

from __future__ import annotations

import json
import shlex
from typing import Any

import jinja2
import numpy as np
import pytest

from constructs_triton_client import Invocation
from constructs_triton_client.wire import encode_request
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.load_test.aiperf_template import (
    aiperf_command,
    format_aiperf_template,
)

PROMPT = 'a "quoted" <b>{{ text }}</b> prompt\n'


def invocation(body: Any, **options: str) -> Invocation:
    """A request with this body as JSON."""
    return Invocation(json.dumps(body).encode(), "application/json", options)


def filled(request: Invocation) -> Any:
    """What AIPerf 0.13.0 sends: it renders the template with ``autoescape``."""
    template = jinja2.Environment(autoescape=True).from_string(format_aiperf_template(request))
    return json.loads(template.render(text=PROMPT))


def test_a_prompt_takes_the_place_of_each_single_string() -> None:
    """Numbers and lists of strings stay, also with what Jinja would take for an expression."""
    arrays = {
        "text": np.array([["old"]], object),
        "labels": np.array(["{{ a }}", "{% b %}"], object),
        "scores": np.array([1.5, 2], np.float32),
    }
    encoded = encode_request(arrays, binary=False)
    body = json.loads(encoded.body)
    wanted = json.loads(encoded.body)
    wanted["inputs"][0]["data"] = [PROMPT]
    assert filled(invocation(body)) == wanted


def test_a_prompt_is_the_text_of_a_generation() -> None:
    """Other fields of Triton's generate extension stay."""
    body = {"text_input": "old", "max_tokens": 9, "stop": "{#"}
    assert filled(invocation(body)) == {**body, "text_input": PROMPT}


def test_chat_completions_are_left_to_aiperf() -> None:
    """It has an endpoint type for them, which also counts their tokens."""
    with pytest.raises(InvalidValueError, match="--endpoint-type chat"):
        format_aiperf_template(invocation({"messages": []}))


def test_the_command_names_the_model_of_a_multi_model_endpoint() -> None:
    """It is a header of InvokeEndpoint."""
    request = invocation({"inputs": []}, TargetModel="a b.tar.gz")
    command = aiperf_command("t.j2", "vision", request, endpoint_url="http://127.0.0.1:8080")
    words = shlex.split(command)
    assert words[:2] == ["aiperf", "profile"]
    assert words[words.index("--custom-endpoint") + 1] == "/endpoints/vision/invocations"
    assert words[-1] == "X-Amzn-SageMaker-Target-Model:a b.tar.gz"
