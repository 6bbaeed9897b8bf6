"""Print a story while it is written: python ask_llamaindex.py "Once upon a time"."""

from __future__ import annotations

import sys
from typing import Any

from llama_index.core.llms import (
    CompletionResponse,
    CompletionResponseGen,
    CustomLLM,
    LLMMetadata,
)

from constructs_triton_client import TritonClient


class TritonLLM(CustomLLM):
    """Completes a prompt with an endpoint that streams `text_output`."""

    endpoint_name: str
    max_tokens: int = 12

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            model_name=self.endpoint_name, num_output=self.max_tokens
        )

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        client = TritonClient.for_endpoint(self.endpoint_name)
        text = ""
        for event in client.infer_stream(
            {"text_input": prompt, "max_tokens": self.max_tokens}
        ):
            text += event.text()
            yield CompletionResponse(text=text, delta=event.text())

    def complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        *_, last = self.stream_complete(prompt, formatted, **kwargs)
        return last


llm = TritonLLM(endpoint_name="story")
print(llm.complete(sys.argv[1]))
for part in llm.stream_complete(sys.argv[1]):
    print(part.delta, end="|", flush=True)
print()
