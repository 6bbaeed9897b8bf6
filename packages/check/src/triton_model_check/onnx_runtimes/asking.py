"""Whether the ONNX Runtime of an image is asked about its models."""

from __future__ import annotations

from typing import Literal, get_args

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean, quoted

__all__ = ["Asking", "minor_release", "read_asking"]

Asking = Literal["auto", "fetch", "never"]
"""``"auto"``: if it is installed or was fetched before. ``"fetch"``: it is fetched if necessary."""


def read_asking(place: str, text: str) -> Asking:
    """Return the word that says when ONNX Runtime is asked for its verdict of a model file.

    With ``fetch``, a release that is not installed is downloaded. ``place`` begins the message of
    the error.

    Raises:
        InvalidValueError: it is another word.
    """
    choices: tuple[Asking, ...] = get_args(Asking)
    for each in choices:
        if text == each:
            return each
    hint = did_you_mean(text, choices, f"use one of {quoted(choices)}")
    raise InvalidValueError(f'{place}: must be auto, fetch or never, got "{text}"; {hint}')


def minor_release(version: str) -> str:
    """Return ``"1.23"`` of ``"1.23.2"``: Triton and PyPI have different patches of a release."""
    return ".".join(version.split(".")[:2])
