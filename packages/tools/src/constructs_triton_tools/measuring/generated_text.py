"""The text and the tokens in an event of a model that generates, in the forms of Triton, vLLM and
LMI.

Sources: vLLM, entrypoints/openai/chat_completion/serving.py: the first event has a role and no
text, the last one only ``usage``; the reasoning is in ``reasoning``, before vLLM's PR 33402 in
``reasoning_content``. LMI, lmi_input_output_schema.md: ``{"token": {"text": ...}}``, one token in
each event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from constructs_triton_client.generation import objects_in


def generated_text(event: Mapping[str, Any]) -> str | None:
    """Return the text that an event adds, also reasoning and tool calls;
    ``None`` without such a field.
    """
    if isinstance(event.get("choices"), list):
        pieces = list[str]()
        for choice in objects_in(event, "choices"):
            pieces += (piece for piece in _pieces(choice) if isinstance(piece, str))
        return "".join(pieces)

    # LMI's own form has a token, and Triton's generate extension a text or a list of texts.
    token = event.get("token")
    value = token.get("text") if isinstance(token, dict) else event.get("text_output")
    texts: list[Any] = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        return None
    return "".join(texts)


def _pieces(choice: Mapping[str, Any]) -> Iterator[Any]:
    yield choice.get("text")  # of completions, which have no messages
    for delta in objects_in(choice, "delta"):
        yield delta.get("reasoning") or delta.get("reasoning_content")
        yield delta.get("content")
        yield delta.get("refusal")
        for call in objects_in(delta, "tool_calls"):
            for function in objects_in(call, "function"):
                yield from (function.get("name"), function.get("arguments"))


def count_tokens(event: Mapping[str, Any]) -> int | None:
    """Return the tokens of an event; ``None`` if it does not have their number.

    They are the sum of Triton's ``num_output_tokens``, and one for an event of LMI's own form. An
    event whose text is empty and that has no number has no tokens: it is often the first or the
    last one.
    """
    value = event.get("num_output_tokens")
    counts = value if isinstance(value, list) else [value]
    # A bool is an int, and no number of tokens.
    if counts and all(type(count) is int and count >= 0 for count in counts):
        return sum(counts)
    if isinstance(event.get("token"), dict):
        return 1
    return 0 if generated_text(event) == "" else None


def count_all_tokens(event: Mapping[str, Any]) -> int | None:
    """Return the tokens of the stream up to this event, if its ``usage`` has them."""
    usage = event.get("usage")
    if not isinstance(usage, dict):
        return None
    total = usage.get("completion_tokens")
    return total if type(total) is int and total >= 0 else None
