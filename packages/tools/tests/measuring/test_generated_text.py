"""The text and the tokens of events, as each container sends them."""

from __future__ import annotations

from typing import Any

import pytest
from chat_streams import CHUNKS, LMI, REASONING, ROLE, STOP, TOOL, USAGE, WORDS, chunk

from constructs_triton_tools.measuring.generated_text import (
    count_all_tokens,
    count_tokens,
    generated_text,
)

COMPLETION = {
    "object": "text_completion",
    "choices": [{"index": 0, "text": "a", "finish_reason": None}],
}


@pytest.mark.parametrize(
    ("events", "text"),
    [
        (CHUNKS, "hm Grüß\n dich"),
        (TOOL, 'now{"zone":"UTC"}'),
        (LMI, "a b."),
        ([COMPLETION, {**COMPLETION, "choices": []}], "a"),
        (
            [
                chunk({"reasoning_content": "old"}),
                chunk({"reasoning": "b", "reasoning_content": "b"}),
            ],
            "oldb",
        ),
        ([chunk({"content": None, "refusal": "no"})], "no"),
        ([{"text_output": "a"}, {"text_output": ["b", "c"]}], "abc"),
    ],
)
def test_text_of_a_stream(events: list[dict[str, Any]], text: str) -> None:
    """Reasoning, answer and calls of tools, each once; events without them add nothing."""
    assert "".join(generated_text(event) or "" for event in events) == text


@pytest.mark.parametrize(
    "event",
    [
        {"n": 1},
        {"text_output": 1},
        {"text_output": ["a", 1]},
        {"token": {"text": None}},
        {"choices": None},
    ],
)
def test_event_without_text(event: dict[str, Any]) -> None:
    """The caller then prints the fields."""
    assert generated_text(event) is None


@pytest.mark.parametrize(
    "event",
    [
        {
            "choices": [
                1,
                None,
                {"delta": []},
                {"delta": {"tool_calls": [1, {"function": "f"}], "content": 1}},
            ]
        },
        {"choices": [{"text": ["a"]}], "usage": [1]},
    ],
)
def test_malformed_choices_have_no_text(event: dict[str, Any]) -> None:
    """What a container sends in place of an object or a string is ignored."""
    assert (generated_text(event), count_tokens(event), count_all_tokens(event)) == ("", 0, None)


@pytest.mark.parametrize(
    ("event", "tokens"),
    [
        ({"num_output_tokens": 3}, 3),
        ({"num_output_tokens": [1, 2], "text_output": ""}, 3),
        ({"num_output_tokens": 0, "text_output": "a"}, 0),
        ({"text_output": "a"}, None),
        ({"text_output": ""}, 0),
        ({"num_output_tokens": "3"}, None),
        ({"num_output_tokens": []}, None),
        ({"num_output_tokens": True}, None),
        ({"num_output_tokens": -1}, None),
        (ROLE, 0),
        (REASONING, None),
        (WORDS[0], None),
        (STOP, 0),
        (USAGE, 0),
        (TOOL[1], None),
        (LMI[0], 1),
    ],
)
def test_tokens_of_an_event(event: dict[str, Any], tokens: int | None) -> None:
    """Triton's numbers, one of LMI's events; otherwise only that an event without text has none."""
    assert count_tokens(event) == tokens


@pytest.mark.parametrize(
    ("usage", "total"),
    [
        ({"completion_tokens": 6}, 6),
        ({"completion_tokens": 0}, 0),
        ({"completion_tokens": True}, None),
        ({"completion_tokens": -1}, None),
        ({}, None),
        (None, None),
    ],
)
def test_all_tokens_are_those_of_the_usage(usage: Any, total: int | None) -> None:
    """A number of the container; other values are no number."""
    assert count_all_tokens({"usage": usage}) == total
