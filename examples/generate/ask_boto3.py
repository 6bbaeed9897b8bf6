"""Print the tokens that the decoder generates, with boto3 alone."""

from __future__ import annotations

import json
import sys

import boto3

runtime = boto3.Session("local", "local", region_name="us-east-1").client(
    "sagemaker-runtime", endpoint_url="http://127.0.0.1:8080"
)
body = json.dumps({"text_input": sys.argv[1], "max_tokens": 8})
response = runtime.invoke_endpoint_with_response_stream(EndpointName="decoder", Body=body)
received = b""
for part in response["Body"]:
    received += part["PayloadPart"]["Bytes"]
    # A part is any piece of the stream. An event ends with an empty line.
    *events, received = received.split(b"\n\n")
    for event in events:
        print(json.loads(event.removeprefix(b"data: "))["text_output"], end="", flush=True)
print()
