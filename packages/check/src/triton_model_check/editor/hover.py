"""What an editor shows of a place: the explanation of a finding, and the schema's comment."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from constructs_triton_core.findings import Finding
from constructs_triton_core.program.explain import explanation
from triton_model_check.editor.outline import Outline
from triton_model_check.editor.schema_help import describe_field, describe_value, field_at


def explain_findings(findings: Iterable[Finding]) -> list[str]:
    """Return what ``triton-model-check explain`` prints of each code, as Markdown."""
    codes = dict.fromkeys(finding.code for finding in findings)
    return [_explain(code) for code in codes]


def describe_place(text: str, offset: int) -> str:
    """Return what the schema says of the field or the value at an offset; "" if that is nothing."""
    for field in Outline(text).fields():
        names = (*field.block.names, field.name)
        start, end = field.name_span
        if start <= offset <= end:
            described = field_at(names)
            return "" if described is None else describe_field(described)
        for scalar in field.scalars:
            if scalar.span[0] <= offset <= scalar.span[1]:
                described = field_at(names)
                return "" if described is None else describe_value(described, scalar.text)
    return ""


@cache
def _explain(code: str) -> str:
    # Longer than any row of backquotes in an example, so that it ends where it should.
    return f"````text\n{explanation(code)}\n````"
