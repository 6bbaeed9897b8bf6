"""The findings about environment variables of the container."""

from __future__ import annotations

from constructs_triton.facts.environment import VariableFacts
from constructs_triton.facts.published import load
from constructs_triton.findings import Finding, Severity

__all__ = ["error", "no_number", "not_live", "single_model_only", "without_effect"]


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
        "write the number of bytes, such as 16777216, or use TritonEnvironment with Size.mebibytes(16)",
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
