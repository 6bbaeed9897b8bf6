"""The layers of the package, as the design draws them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "constructs_triton"

# A module imports only from modules above it.
LAYERS = (
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


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_imports_only_from_layers_above(path: Path) -> None:
    """No module imports from a layer further down the design's list, nor from a sibling."""
    layer = _layer(path)
    allowed = {above for above in LAYERS[: LAYERS.index(layer) + 1] if (layer, above) not in SIBLINGS}
    assert _imported_layers(path) & set(LAYERS) <= allowed


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_cdk_imports_the_cdk(path: Path) -> None:
    """``cdk/`` is the only folder that imports aws_cdk, constructs or jsii."""
    roots = {name.split(".")[0] for name in _imports(path)}
    assert _layer(path) == "cdk" or not roots & {"aws_cdk", "constructs", "jsii"}


def test_each_folder_has_its_place() -> None:
    """Every folder and module at the top of the package stands in the list of layers."""
    assert {_layer(path) for path in MODULES} <= set(LAYERS)
