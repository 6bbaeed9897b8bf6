"""Streams of language models, written as the containers' sources write them.

vLLM: entrypoints/openai/chat_completion/serving.py, ``chat_completion_stream_generator``. LMI (DJL
Serving): engines/python/setup/djl_python, ``lmi_vllm/request_response_utils.py``,
``async_utils.py`` and ``output_formatter.py``; an empty line of it is a piece of vLLM's that has no
token.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

ANSWER = "Grüß\n dich"


def chunk(delta: dict[str, Any], reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk with one choice."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"} | {
        "choices": [choice],
        **fields,
    }


FUNCTION = {
    "index": 0,
    "id": "call-1",
    "type": "function",
    "function": {"name": "now", "arguments": ""},
}
ROLE = chunk({"role": "assistant", "content": ""})
REASONING = chunk({"reasoning": "hm "})
WORDS = [chunk({"content": word}) for word in ("Grü", "ß\n", " dich")]
STOP = chunk({"content": ""}, "stop", stop_reason=None)
USAGE = {
    **chunk({}),
    "choices": [],
    "usage": {"prompt_tokens": 9, "total_tokens": 15, "completion_tokens": 6},
}
CHUNKS = [ROLE, REASONING, *WORDS, STOP, USAGE]
TOOL = [
    ROLE,
    chunk({"tool_calls": [FUNCTION]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"zone":"UTC"}'}}]}),
    chunk({}, "tool_calls"),
]
ERROR = {
    "error": {"message": "out of memory", "type": "InternalServerError", "param": None, "code": 500}
}
WHOLE = {"object": "chat.completion", "choices": [{"index": 0, "message": {"content": ANSWER}}]}


def events(chunks: Iterable[dict[str, Any]], *, is_done: bool = True) -> bytes:
    """vLLM's form: server-sent events, and a last one that is not JSON."""
    text = "".join(f"data: {json.dumps(each, ensure_ascii=False)}\n\n" for each in chunks)
    return (text + "data: [DONE]\n\n" * is_done).encode()


def lines(chunks: Iterable[dict[str, Any]]) -> bytes:
    """LMI's form: application/jsonlines, with empty lines."""
    return ("".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in chunks) + "\n").encode()


def token(text: str, **last: Any) -> dict[str, Any]:
    """An event of LMI's own form; the last one has the whole text."""
    return {"index": 0, "token": {"id": 7, "text": text, "logprob": -0.1}} | {
        "generated_text": None,
        "details": None,
        **last,
    }


LMI = [
    token("a"),
    token(" b"),
    token(".", generated_text="a b.", details={"finish_reason": "length"}),
]
LMI_FAILED = [
    token("a"),
    token("", generated_text="", details={"finish_reason": "error", "generated_tokens": None}),
]
