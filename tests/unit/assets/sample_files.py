"""Sample models are files of an archive, not of a package, so the tests load them by path."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

ASSETS = Path(__file__).parents[3] / "assets"


def load(name: str) -> ModuleType:
    """Import one file of assets/ as Triton would, with its own folder on sys.path for that while."""
    file, path_before = ASSETS / name, list(sys.path)
    sys.path.insert(0, str(file.parent))
    try:
        return importlib.import_module(file.stem)
    finally:
        sys.path[:] = path_before
