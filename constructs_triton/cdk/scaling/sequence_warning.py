"""A warning about sequences on several instances, which SageMaker does not keep together."""

from __future__ import annotations

from collections.abc import Sequence

from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token

__all__ = ["sequence_finding"]


def sequence_finding(path: str, models: Sequence[str], count: float, unit: str) -> Finding | None:
    """Return a warning if the requests of a sequence may reach several instances or copies.

    Args:
        path: The property that sets the number.
        models: The models that keep sequences.
        count: The largest number of instances or copies.
        unit: What is counted.
    """
    if not models or is_token(count) or count <= 1:
        return None
    names = ", ".join(f'"{name}"' for name in models)
    return Finding(
        "sequence-on-several-instances",
        Severity.WARNING,
        path,
        f"model {names} keeps the state of a sequence, but SageMaker sends each request to any of up to "
        f"{count:g} {unit}",
        "use one, or several variants of one instance and choose one by the sequence with TargetVariant, or "
        "carry the state in the requests; acknowledge this if a sequence is one request",
    )
