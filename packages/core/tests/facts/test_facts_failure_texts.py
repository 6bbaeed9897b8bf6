"""The error texts of Triton's sources, and how they are found in a line."""

from __future__ import annotations

import pytest

from constructs_triton_core.facts.failure_texts import find_texts, known_texts
from constructs_triton_core.facts.failures import known_failures


def test_every_text_has_an_entry_and_is_found_in_itself() -> None:
    """No text is without an entry, and each text that is long enough is found in a line of it."""
    ids = {failure.id for failure in known_failures()}
    texts = known_texts()
    assert {text.id for text in texts} <= ids
    long = [text for text in texts if len(text.text.replace("⟨⟩", "")) >= 40]
    assert len(long) > 1000
    for text in long[::7]:
        line = text.text.replace("⟨⟩", "some value")
        assert text.text in {found.text for found in find_texts(line)}, line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            'E1 a.cc:1] "Non-decoupled model cannot send; Unable to send response. '
            'Response sender has been closed.\\n\\nAt:"',
            "Unable to send response. Response sender has been closed.",
        ),
        ("'m' version 7 is not found", "'⟨⟩' version ⟨⟩ is not found"),
        ("version is not found, so 'm' fails", None),
    ],
)
def test_text_is_found_with_its_parts_in_order(line: str, expected: str | None) -> None:
    """Holes take any value, also where a message has the two characters of a line break."""
    assert next((found.text for found in find_texts(line)), None) == expected


def test_writer_names_the_program_and_its_releases() -> None:
    """The file is one of Triton's, with the releases that have the text."""
    (first, *_) = find_texts(
        "'get_response_sender' function must be called only when the model is using the decoupled "
        "transaction policy."
    )
    assert first.writer == "Triton's python_backend, infer_request.cc (22.05 to 24.05)"
