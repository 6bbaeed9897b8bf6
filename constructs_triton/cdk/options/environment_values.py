"""Checks of the values of ``TritonEnvironment``: ranges, choices and types,
and findings about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from constructs_triton.cdk.validation.property_types import shown
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit, TextLimit
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.limit_checks import check_name, check_range, check_string
from constructs_triton_core.spelling import did_you_mean
from constructs_triton_core.tokens import is_token
from triton_model_check.facts.environment import VariableFacts
from triton_model_check.facts.published import load

PingMode = Literal["ready", "live"]
InferenceType = Literal["infer", "generate", "generate_stream"]


class ByteSize(Protocol):
    """A size such as ``aws_cdk.Size``, which this module must not import."""

    def is_unresolved(self) -> bool:
        """Whether it is a token."""

    def to_bytes(self) -> float:
        """The size in bytes."""


_PORT = RangeLimit(1, 65535)
# The script adds everything to one command line without quotes: spaces split, and the shell expands
# globs.
_ONE_WORD = TextLimit(1024, r"[^\s*?\[\]]+", "one word without white space, *, ? or brackets", 1)

_RANGES = {
    "thread_count": RangeLimit(1, None, "threads"),
    "buffer_manager_thread_count": RangeLimit(0, None, "threads"),
    "model_load_gpu_limit": RangeLimit(0, 1),
    "shm_default_byte_size": RangeLimit(1 << 20, None, "bytes"),
    "shm_growth_byte_size": RangeLimit(1, None, "bytes"),
    "log_verbose": RangeLimit(0, None),
    "metrics_port": _PORT,
    "grpc_port": _PORT,
    "tensorflow_version": RangeLimit(1, 2),
}
SIZES = ("shm_default_byte_size", "shm_growth_byte_size")
_SWITCHES = (
    "model_namespacing",
    "log_info",
    "log_warning",
    "log_error",
    "allow_metrics",
    "allow_grpc",
)
_CHOICES = {
    "ping_mode": ("ready", "live"),
    "inference_type": ("infer", "generate", "generate_stream"),
}


def check_values(environment: Any) -> None:
    """Check all values of a ``TritonEnvironment``."""
    for keyword in _SWITCHES:
        _check_switch(keyword, getattr(environment, keyword))
    for keyword, limit in _RANGES.items():
        _check_number(keyword, getattr(environment, keyword), limit)
    for keyword, allowed in _CHOICES.items():
        _check_choice(keyword, getattr(environment, keyword), allowed)
    default_model_name = environment.default_model_name
    if default_model_name is not None:
        check_name("environment.default_model_name", default_model_name, _ONE_WORD)
    for keyword in ("additional_models", "additional_args"):
        _check_words(keyword, getattr(environment, keyword))


def _check_number(keyword: str, value: Any, limit: RangeLimit) -> None:
    """Check that the value of a keyword is a number in its range."""
    path = f"environment.{keyword}"
    if value is None or (isinstance(value, str) and is_token(value)):
        return
    if isinstance(value, bool) and keyword == "log_verbose":
        return
    if is_token(value):
        raise InvalidValueError(
            f"{path}: a number token cannot be converted to a string; pass a string token instead"
        )
    check_range(path, value, limit)
    if keyword != "model_load_gpu_limit" and value != int(value):
        raise InvalidValueError(
            f"{path}: must be a whole number, got {value:g}; write {int(value)}"
        )


def in_bytes(keyword: str, value: Any) -> float | str | None:
    """Return a size as a number of bytes. Numbers and strings are returned unchanged.

    Raises:
        InvalidValueError: the value is not a size, or it is a token.
    """
    if value is None or isinstance(value, int | float | str):
        return value
    path = f"environment.{keyword}"
    if not (hasattr(value, "is_unresolved") and hasattr(value, "to_bytes")):
        raise InvalidValueError(
            f"{path}: must be a size, got {shown(value)}; write Size.mebibytes(64)"
        )
    if value.is_unresolved():
        raise InvalidValueError(
            f"{path}: a size token cannot be converted to a string; "
            "pass a string token with the number of bytes instead"
        )
    return int(value.to_bytes())


def is_no_number(value: str) -> bool:
    """Whether a variable is neither a whole number nor a token."""
    return not is_token(value) and not value.isdecimal()


def _check_switch(keyword: str, value: object) -> None:
    if value is None or isinstance(value, bool):
        return
    if is_token(value):
        check_string(f"environment.{keyword}", value)
        return
    raise InvalidValueError(
        f"environment.{keyword}: must be True or False, got {value!r}; write True or False"
    )


def _check_choice(keyword: str, value: str | None, allowed: Sequence[str]) -> None:
    """Check that the value of a keyword is one of the allowed words."""
    if is_token(value):
        check_string(f"environment.{keyword}", value)
        return
    if value is not None and value not in allowed:
        words = ", ".join(f'"{word}"' for word in allowed)
        hint = did_you_mean(value, allowed) or "use one of them, or remove it"
        raise InvalidValueError(
            f'environment.{keyword}: must be one of {words}, got "{value}"; {hint}'
        )


def _check_words(keyword: str, words: Sequence[str]) -> None:
    """Check that the value of a keyword is a list of words without white space."""
    if is_token(words) or not isinstance(words, Sequence):
        raise InvalidValueError(
            f"environment.{keyword}: must be a list that is known at synth, got {shown(words)}; "
            'write ["..."]'
        )
    if isinstance(words, str):
        raise InvalidValueError(
            f'environment.{keyword}: must be a list, got "{words}"; write ["{words}"]'
        )
    for index, word in enumerate(words):
        check_name(f"environment.{keyword}[{index}]", word, _ONE_WORD)


def single_model_only(row: VariableFacts, path: str) -> Finding:
    """Report a variable that multi-model endpoints ignore."""
    return without_effect(path, f"a multi-model endpoint does not read {row.name}")


def not_live(path: str, mode: str) -> Finding:
    """Report a ping mode that one broken model makes fail."""
    return error(
        "ping-mode-multi-model",
        path,
        f'one model that fails to load would make the endpoint permanently unhealthy, got "{mode}"',
        'remove it, or set "live"',
    )


def no_number(path: str, value: str) -> Finding:
    """Report a size with a unit, which Triton ignores."""
    return error(
        "environment-size-not-a-number",
        path,
        f'Triton reads a number of bytes and ignores a unit, got "{value}"',
        "write the number of bytes, such as 16777216, "
        "or use TritonEnvironment with Size.mebibytes(16)",
    )


def without_effect(path: str, message: str) -> Finding:
    """Report a setting that nothing reads."""
    return Finding(
        code="environment-variable-without-effect",
        severity=Severity.WARNING,
        path=path,
        message=message,
        hint="remove it",
        source=load("environment")["sources"]["variables"],
    )


def error(code: str, path: str, message: str, hint: str) -> Finding:
    """Report what the image refuses."""
    source = load("environment")["sources"]["variables"]
    return Finding(code, Severity.ERROR, path, message, hint, source)
