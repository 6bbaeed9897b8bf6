"""For every fault of every check: the smallest repository that trips it, and the same repository fixed.

The key of a twin is the code of its check. Further faults of the same check add a few words, as in
``"state-initial: no name"``. ``generate_checks_doc.py`` prints the twins into the documentation. The tests
check that the failing twin trips only its check, that the fixed one trips none, and that every fault has a
twin.
"""

from __future__ import annotations

from check_twins import config, endpoint, ensembles, model_files, onnx, python_backend, scheduling, tensors
from check_twins.repositories import Files, Twin, write

__all__ = ["TWINS", "Files", "Twin", "code_of", "write"]

TWINS: dict[str, Twin] = {
    **config.TWINS,
    **tensors.TWINS,
    **scheduling.TWINS,
    **python_backend.TWINS,
    **model_files.TWINS,
    **onnx.TWINS,
    **ensembles.TWINS,
    **endpoint.TWINS,
}


def code_of(key: str) -> str:
    """Return the code of the check that the twin with this key trips."""
    return key.partition(":")[0]
