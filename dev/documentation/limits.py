"""Writes the page of limits from the limits that the checks use."""

from __future__ import annotations

from pathlib import Path

from constructs_triton_core.facts import limits

HEAD = """# Limits

The limits of the SageMaker and Application Auto Scaling APIs that the constructs check at synth. The last
column has the source of each limit: the name of its shape in botocore's service model.

| limit | value | shape |
|---|---|---|
"""


def write_limits(path: Path) -> None:
    """Write the page."""
    rows = [
        f"| {name.replace('_', ' ').lower()} | {_value(value)} | {_shape(value)} |"
        for name, value in vars(limits).items()
        if name.isupper() and not name.startswith("_")
    ]
    path.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


def _value(value: object) -> str:
    if isinstance(value, limits.TextLimit):
        allowed = f": {value.allowed}" if value.allowed else ""
        return f"{value.min_length} to {value.max_length} characters{allowed}"
    return limits.plain_number(value) if isinstance(value, int | float) else str(value)


def _shape(value: object) -> str:
    shape = getattr(value, "shape", "")
    return f"`{shape}`" if shape else ""
