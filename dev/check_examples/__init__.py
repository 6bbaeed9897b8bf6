"""For every fault of every check: the smallest repository that trips it, and the same repository
fixed.

The key of an example is the code of its check. Further faults of the same check add a few words, as
in ``"state-initial: no name"``. ``generate_checks_doc.py`` prints the examples into the
documentation. The tests check that the failing repository trips only its check, that the fixed one
trips none, and that every fault has an example.
"""

from __future__ import annotations

from check_examples import (
    config,
    endpoint,
    ensembles,
    files,
    generation,
    model_files,
    onnx,
    python_backend,
    python_contract,
    scheduling,
    servers,
    tensors,
)
from check_examples.repositories import Example, Files, write

__all__ = ["EXAMPLES", "Example", "Files", "code_of", "write"]

EXAMPLES: dict[str, Example] = {
    **config.EXAMPLES,
    **files.EXAMPLES,
    **tensors.EXAMPLES,
    **scheduling.EXAMPLES,
    **python_backend.EXAMPLES,
    **python_contract.EXAMPLES,
    **model_files.EXAMPLES,
    **onnx.EXAMPLES,
    **ensembles.EXAMPLES,
    **endpoint.EXAMPLES,
    **servers.EXAMPLES,
    **generation.EXAMPLES,
}


def code_of(key: str) -> str:
    """Return the code of the check that the example with this key trips."""
    return key.partition(":")[0]
