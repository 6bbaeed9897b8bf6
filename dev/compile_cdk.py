"""Compile the modules of the CDK that this library imports, on all cores, for ``make demo``.

Python would compile them one after the other at the first synthesis, which takes three times as
long. To compile the whole CDK takes longer than the demo.
"""

from __future__ import annotations

import py_compile
import re
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
_SERVICE = re.compile(r"\baws_[a-z0-9]+\b")


def main() -> None:
    """Compile them, the largest first, so that no core waits for one at the end."""
    spec = find_spec("aws_cdk")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    names = {".", "cloud_assembly_schema", *imported_services()}
    modules = [package / name / "__init__.py" for name in names]
    present = [path for path in modules if path.exists()]
    present.sort(key=lambda path: -path.stat().st_size)
    with ProcessPoolExecutor() as pool:
        list(pool.map(py_compile.compile, map(str, present)))


def imported_services() -> set[str]:
    """Return the modules of services that the sources of the constructs and of the app name."""
    sources = [PROJECT / "app.py", *(PROJECT / "constructs_triton").rglob("*.py")]
    found: set[str] = set()
    for path in sources:
        found.update(_SERVICE.findall(path.read_text(encoding="utf-8")))
    return found


if __name__ == "__main__":
    main()
