"""The operators that ONNX Runtime knows, with their attributes."""

from __future__ import annotations

from functools import cache

from triton_model_check.facts.published import load


@cache
def operator_attributes(domain: str, operator: str, opset: int) -> frozenset[str] | None:
    """Return the attributes of an operator in an operator set, or ``None`` for an unknown operator.

    ``opset`` is the version of the domain that the model imports.
    """
    definitions: dict[str, list[str]] = (
        load("onnx_operators")["operators"].get(domain or "ai.onnx", {}).get(operator, {})
    )
    known = [int(since) for since in definitions if int(since) <= opset]
    return frozenset(definitions[str(max(known))]) if known else None
