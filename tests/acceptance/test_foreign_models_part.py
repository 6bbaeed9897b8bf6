"""The checker on a part of the models of others, beside what the real programs said of them.

A seed chooses the part: ``FOREIGN_MODELS_SEED``, or a new one in each run. A failure prints it.
``make foreign-models`` compares everything.
"""

from __future__ import annotations

import os
import random
import sys

import pytest
from foreign_models.__main__ import compared
from foreign_models.packages import UnreachableError
from foreign_models.verdicts import Comparison

BUDGET_MINUTES = 1.5


SEED = int(os.environ.get("FOREIGN_MODELS_SEED") or random.randrange(10**6))


def _assert_explained(comparison: Comparison) -> None:
    message = "\n".join([f"FOREIGN_MODELS_SEED={SEED}", *comparison.report()])
    # `pytest -rP` shows it for a part without a disagreement too.
    sys.stdout.write(message)
    assert comparison.unexplained() == [], message


def test_models_in_python_get_the_verdict_of_the_server() -> None:
    """No model that the server serves is refused, and none that it does not serve is called good,
    unless the ledger has a reason.
    """
    comparison = compared(["contract"], onnx_runtime="never", seed=SEED)
    _assert_explained(comparison)


def test_files_of_packages_get_the_verdict_of_onnx_runtime() -> None:
    """No file that the ONNX Runtime of an image loads is refused for the image, and none that it
    refuses is called good, unless the ledger has a reason.
    """
    try:
        comparison = compared(["files"], onnx_runtime="never", seed=SEED)
    except UnreachableError as error:
        pytest.skip(f"a registry of packages cannot be reached: {error}")
    _assert_explained(comparison)
