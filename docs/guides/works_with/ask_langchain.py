"""Print a story while it is written: python ask_langchain.py "Once upon a time"."""

from __future__ import annotations

import json
import sys
from typing import Any

import boto3
from langchain_aws.llms import SagemakerEndpoint
from langchain_aws.llms.sagemaker_endpoint import LLMContentHandler


class GenerateHandler(LLMContentHandler):
    """Requests and events of Triton's generate extension."""

    content_type = accepts = "application/json"

    def transform_input(self, prompt: str, model_kwargs: dict[str, Any]) -> bytes:
        return json.dumps({"text_input": prompt, **model_kwargs}).encode()

    def transform_output(self, output: Any) -> str:
        """Join the texts of all events of `invoke`, or of the one line that `stream` has read."""
        lines = (
            output if isinstance(output, bytes) else output.read()
        ).splitlines()
        events = [
            json.loads(line.removeprefix(b"data: ")) for line in lines if line
        ]
        for event in events:
            if "error" in event:
                raise ValueError(event["error"])
        return "".join(event["text_output"] for event in events)


llm = SagemakerEndpoint(
    client=boto3.client("sagemaker-runtime"),
    endpoint_name="story",
    content_handler=GenerateHandler(),
    model_kwargs={"max_tokens": 12},
)
print(llm.invoke(sys.argv[1]))
for part in llm.stream(sys.argv[1]):
    print(part, end="|", flush=True)
print()
