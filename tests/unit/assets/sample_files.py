"""Imports sample models by path, because they are files of an archive and not of a package."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

ASSETS = Path(__file__).parents[3] / "assets"


def load(name: str) -> ModuleType:
    """Import one file of assets/ as Triton does, with its folder on sys.path during the import.

    It is not found by a later import: files of other models have the same name.
    """
    file, path_before, loaded = ASSETS / name, list(sys.path), set(sys.modules)
    sys.path.insert(0, str(file.parent))
    try:
        return importlib.import_module(file.stem)
    finally:
        sys.path[:] = path_before
        for each in sys.modules.keys() - loaded:
            if ASSETS in Path(getattr(sys.modules[each], "__file__", None) or "/").parents:
                del sys.modules[each]
