"""Messages inside other messages: their words without escapes, and who passed them on."""

from __future__ import annotations

import pytest

from constructs_triton_tools.operations.diagnosis import (
    Message,
    format_diagnoses,
    recognize,
    recognize_inner,
)
from constructs_triton_tools.operations.nested_message import (
    inner_messages,
    speakers,
    without_escapes,
)

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


def test_inner_messages_begin_behind_their_introduction() -> None:
    """The innermost is first; the second exception of a traceback only follows from the first."""
    outer = "RuntimeError: cannot load it, caused by ValueError: the size is odd"
    assert [inner.text for inner in inner_messages(outer)] == [
        "the size is odd",
        "ValueError: the size is odd",
        "cannot load it, caused by ValueError: the size is odd",
    ]
    later = "During handling of the above exception, another occurred: KeyError: not this one"
    (inner,) = inner_messages(f"ValueError: the first one {later}")
    assert inner.text.startswith("the first one")


def test_an_unexplained_inner_message_is_not_guessed() -> None:
    """If only the words around a message are known, the first line says so and quotes it."""
    text = "Failed to bundle asset a, bundle output is located at b: Error: zorp is not installed"
    found = recognize(Message(text, "the message"))
    assert found is not None
    assert (found.id, found.unexplained) == ("cdk-bundle-failed", "zorp is not installed")
    first, second, *_ = format_diagnoses([found]).splitlines()
    assert first.startswith('cause: not known, no entry of the catalogue fits "zorp is not')
    assert second.startswith("  next: ")


def test_inner_cause_is_found_beside_the_outer_one() -> None:
    """Both causes are named if an entry explains the words around an inner message, and another
    the inner message.
    """
    text = (
        "Failed to increase the shared memory pool size for key 'k' to 67108864 bytes. If you are "
        "running Triton inside docker, use '--shm-size' flag to control the shared memory region "
        "size. Error: No space left on device"
    )
    outer = recognize(Message(text, "the message"))
    inner = recognize_inner(Message(text, "the message"))
    assert outer is not None
    assert inner is not None
    assert (outer.id, inner.id) == ("shm-grow", "disk-full")
