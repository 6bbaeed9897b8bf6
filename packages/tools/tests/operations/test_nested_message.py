"""Messages inside other messages: their words without escapes, and who passed them on."""

from __future__ import annotations

import pytest

from constructs_triton_tools.operations.diagnosis import Message, format_diagnoses, recognize
from constructs_triton_tools.operations.nested_message import speakers, without_escapes

CALL = (
    "botocore.errorfactory.ModelError: An error occurred (ModelError) when calling the "
    "InvokeEndpoint operation: Received client error (400) from primary with message "
    '"{\\"error\\": \\"onnx runtime error 2: KeyError: \\u0027MODEL_BUCKET\\u0027\\"}".'
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a \"b\" \\\"c\\\"", 'a "b" "c"'),
        (r"KeyError: \u0027a\u0027", "KeyError: 'a'"),
        (r"first\nsecond", "first second"),
        ("&quot;a&quot; &lt;b&gt;", '"a" <b>'),
        (r"C:\models\m and \u0007", r"C:\models\m and  "),
        ("nothing to do", "nothing to do"),
    ],
)
def test_escapes_are_taken_away(text: str, expected: str) -> None:
    """JSON, Python and HTML, also several times; a path of Windows stays."""
    assert without_escapes(text) == expected


def test_speakers_are_in_their_order() -> None:
    """The outermost is first; a message that one program alone wrote has none."""
    assert speakers(CALL) == (
        "Python (ModelError)",
        "the API call InvokeEndpoint",
        "container primary",
        "ONNX Runtime",
    )
    assert speakers("KeyError: 'a'") == ()


def test_innermost_reason_is_explained() -> None:
    """The exception inside the answer decides, and a line says who passed it on."""
    found = recognize(Message(CALL, "the message"))
    assert found is not None
    assert found.id == "py-environment-variable"
    assert "the environment variable MODEL_BUCKET" in found.cause
    line = "  passed on by Python (ModelError), the API call InvokeEndpoint, container primary"
    assert line in format_diagnoses([found])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A cause that only this message has is before the kind, which is before the wrapper.
        ("failed to load 'm' version 1: Internal: KeyError: 'labels'", "py-key-missing"),
        ("failed to load 'm' version 1: Internal: KeyError: 'llama'", "hf-key-error"),
        ("failed to load 'm' version 1: Internal: something new", "load-failed"),
    ],
)
def test_a_kind_is_between_cause_and_wrapper(text: str, expected: str) -> None:
    """What the form of a message shows never hides the entry of one message."""
    found = recognize(Message(text, "the message"))
    assert found is not None
    assert found.id == expected
