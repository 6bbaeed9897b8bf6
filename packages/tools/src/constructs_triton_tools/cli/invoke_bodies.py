"""What ``invoke`` sends and prints beside tensors: whole bodies, streams of text, and a token."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton_client import Invocation, SageMakerTransport
from constructs_triton_client.transports.bearer_token import LONGEST_SECONDS
from constructs_triton_client.waking import when_awake
from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note
from constructs_triton_tools.cli.options import is_container, open_session

if TYPE_CHECKING:
    from constructs_triton_client import TritonClient


def read_body(text: str) -> dict[str, Any]:
    """Read the JSON object of ``--body``, or that of its file.

    Raises:
        InvalidValueError: the file cannot be read, or it is not a JSON object.
    """
    try:
        body = parse_bounded_json(read_regular(Path(text[1:])) if text.startswith("@") else text)
        if not isinstance(body, dict):
            raise ValueError("it is not an object")
    except (OSError, ValueError) as error:
        raise InvalidValueError(
            f"--body: must be a JSON object, got {text!r:.60} ({error}); write it in quotes, or @ "
            "and the path of its file"
        ) from None
    return body


def send_body(arguments: argparse.Namespace, client: TritonClient, options: dict[str, Any]) -> None:
    """Send a whole request, and print the response as it is."""
    if arguments.inference_component is not None:
        options["InferenceComponentName"] = arguments.inference_component
    if arguments.target_model is not None:
        options["TargetModel"] = client.archive_of(arguments.target_model)
    body = json.dumps(read_body(arguments.body)).encode()
    invocation = Invocation(body, "application/json", options)
    reply = when_awake(lambda: client.transport.invoke(invocation), arguments.wake_timeout)
    print_lines(*reply.body.decode(errors="replace").splitlines())


def print_stream(events: Iterable[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print the text of events as it arrives, and those without text as a line of their fields."""
    from constructs_triton_tools.measuring.generated_text import generated_text

    is_in_line = False
    try:
        for event in events:
            text = None if as_json else generated_text(event)
            if as_json:
                print_json(dict(event), indent=None)
            elif text is None:
                print_lines(", ".join(f"{name}: {value}" for name, value in event.items()))
            else:
                *lines, rest = text.split("\n")
                print_lines(*lines)
                print_lines(rest, end="")
                is_in_line = bool(rest) or (is_in_line and not lines)
    finally:
        if is_in_line:
            print_lines("")


def print_token(arguments: argparse.Namespace) -> None:
    """Print a token of SageMaker's OpenAI path alone on standard output, so that a shell can keep
    it.

    Raises:
        InvalidValueError: the endpoint is a container, or ``--valid-for`` is out of range.
    """
    if is_container(arguments):
        raise InvalidValueError(
            "--print-token: a container needs no token; give the name of an endpoint"
        )
    if not 1 <= (seconds := int(arguments.valid_for.total_seconds())) <= LONGEST_SECONDS:
        raise InvalidValueError(f"--valid-for: must be from 1s to 12h, got {seconds}s; write 12h")
    transport = SageMakerTransport(
        arguments.endpoint, session=open_session(arguments), endpoint_url=arguments.endpoint_url
    )
    token = transport.bearer_token(seconds)
    expires = datetime.now(UTC) + arguments.valid_for
    path = ""
    if arguments.inference_component:
        path = f"inference-components/{arguments.inference_component}/"
    address = transport.client("sagemaker-runtime").meta.endpoint_url
    url = f"{address}/endpoints/{arguments.endpoint}/{path}openai/v1"
    if arguments.json:
        print_json(
            {"base_url": url, "api_key": token, "expires": expires.isoformat(timespec="seconds")}
        )
    else:
        print_lines(token)
        print_note(
            f"base URL: {url}", f"the token expires at {expires:%Y-%m-%d %H:%M} UTC, or earlier"
        )
