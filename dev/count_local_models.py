"""Counts how many public Triton configurations run on a developer's machine.

    # Every backend that has a proof counts:
    python dev/count_local_models.py
    # Run the proofs first; a backend counts if its proof passes:
    python dev/count_local_models.py --verify

``public_configurations.csv`` has one row for each distinct ``config.pbtxt`` of the public
repositories that searches for common names of models found, without the tests of Triton's own
repositories: the repository, the path, the backend, and for an ensemble the backends of all its
steps. A model without ``backend`` and ``platform`` has the backend that Triton infers from its
files.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[1]
CONFIGURATIONS = Path(__file__).with_name("public_configurations.csv")

_FRAMEWORKS = "tests/acceptance/test_stand_ins.py"
_ONNX = "tests/acceptance/test_local_stand_ins.py"
WITHOUT_FLAG = {
    "python": ("tests/e2e/test_local_endpoints.py",),
    "onnxruntime": (_ONNX,),
    "pytorch": (_FRAMEWORKS, "-k", "pytorch"),
    "openvino": (_FRAMEWORKS, "-k", "openvino"),
    "fil": (_FRAMEWORKS, "-k", "fil"),
    "dali": (_FRAMEWORKS, "-k", "dali"),
}
"""The backends that run without a flag, each with the arguments of pytest that prove it."""
WITH_FLAG = {
    "tensorrt": (_ONNX, "-k", "in_the_place_of_a_plan"),
    "tensorflow": (_ONNX, "-k", "in_the_place_of_a_plan"),
}
"""The backends whose models can be exported to ONNX and run with ``--stand-in``."""


class Configuration(NamedTuple):
    """A row of the list."""

    repository: str
    path: str
    backend: str
    backends_of_steps: str

    def needs(self) -> set[str]:
        """Return the backends that must run for this model to run."""
        return set(self.backends_of_steps.split()) or {self.backend}


def read_configurations() -> list[Configuration]:
    """Read the committed list."""
    with CONFIGURATIONS.open(encoding="utf-8", newline="") as file:
        return [Configuration(**row) for row in csv.DictReader(file)]


def share(configurations: Collection[Configuration], backends: Iterable[str]) -> float:
    """Return the part of the configurations that need no other backend, from 0 to 1."""
    available = set(backends)
    return sum(each.needs() <= available for each in configurations) / len(configurations)


def _passes(arguments: Iterable[str]) -> bool:
    """Run a proof. A skipped test proves nothing."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    return done.returncode == 0 and " skipped" not in done.stdout.splitlines()[-1]


def main() -> None:
    """Print the counts."""
    configurations = read_configurations()
    proofs = {**WITHOUT_FLAG, **WITH_FLAG}
    proven = {name for name in proofs if "--verify" not in sys.argv or _passes(proofs[name])}
    repositories = {each.repository for each in configurations}
    print(f"{len(configurations)} configurations of {len(repositories)} repositories")
    for backend, count in Counter(each.backend for each in configurations).most_common():
        print(
            f"  {backend}: {count}"
            f"{'' if backend in proven or backend == 'ensemble' else ' (does not run)'}"
        )
    for title, backends in (
        ("with the Python backend only", {"python"}),
        ("without a flag", set(WITHOUT_FLAG)),
        ("with --stand-in", set(proofs)),
    ):
        print(f"{title}: {share(configurations, backends & proven):.1%}")


if __name__ == "__main__":
    main()
