"""The layers of the package, as the design draws them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "constructs_triton"

# A module imports only from modules above it.
LAYERS = (
    "lazy_names",
    "findings",
    "errors",
    "datatypes",
    "facts",
    "model_config",
    "model_repository",
    "wire",
    "client",
    "planning",
    "model_sync",
    "scaling_guard",
    "cdk",
    "local",
    "cli",
)
SIBLINGS = {("local", "cdk")}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def _layer(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _imported_layers(path: Path) -> set[str]:
    names = (name.split(".") for name in _imports(path))
    return {parts[1] for parts in names if parts[0] == "constructs_triton" and len(parts) > 1}


def test_modules_import_only_from_layers_above() -> None:
    """No module imports from a layer further down the design's list, nor from a sibling."""
    upward = {
        str(path.relative_to(PACKAGE)): sorted(_imported_layers(path) & set(LAYERS) - _allowed(_layer(path)))
        for path in MODULES
    }
    assert not {module: layers for module, layers in upward.items() if layers}


def _allowed(layer: str) -> set[str]:
    above = LAYERS[: LAYERS.index(layer) + 1]
    return {other for other in above if (layer, other) not in SIBLINGS}


def test_only_cdk_imports_the_cdk() -> None:
    """``cdk/`` is the only folder that imports aws_cdk, constructs or jsii."""
    outside = (path for path in MODULES if _layer(path) != "cdk")
    roots = {str(path): {name.split(".")[0] for name in _imports(path)} for path in outside}
    assert not {path for path, names in roots.items() if names & {"aws_cdk", "constructs", "jsii"}}


def test_each_folder_has_its_place() -> None:
    """Every folder and module at the top of the package stands in the list of layers."""
    assert {_layer(path) for path in MODULES} <= set(LAYERS)
