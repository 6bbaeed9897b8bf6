"""The layers of the package and of its larger folders."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "constructs_triton"
CLIENT = PROJECT / "client" / "constructs_triton_client"
# The files of users' projects, which nothing imports.
TEMPLATES = tuple(PACKAGE / "cli" / "project" / name for name in ("template", "examples"))

# In each folder, a module imports only from entries above its own entry.
LAYERS: dict[str, tuple[str, ...]] = {
    "": (
        "findings",
        "errors",
        "tokens",
        "public_names",
        "untrusted",
        "processes",
        "facts",
        "model_files",
        "model_config",
        "model_repository",
        "custom_resource_handlers",
        "cloud_assembly",
        "artifacts",
        "planning",
        "operations",
        "rehearsal",
        "cdk",
        "local",
        "measuring",
        "testing",
        "cli",
    ),
    "cloud_assembly": (
        "shapes",
        "template",
        "evaluation_budget",
        "intrinsics",
        "placeholders",
        "synthesized_stack",
        "s3_permissions",
        "assembly",
        "endpoints",
        "scaling",
        "invokers",
        "service_graph",
    ),
    "rehearsal": (
        "errors",
        "steps",
        "behaviour",
        "opaque_values",
        "replacement",
        "template_parsing",
        "services",
        "existing",
        "function_process",
        "permissions",
        "custom_resources",
        "providers",
        "stacks",
        "endpoints",
        "moto_gaps",
        "account",
        "failures",
        "updates",
    ),
    "cdk": (
        "validation",
        "permissions",
        "custom_resources",
        "metrics",
        "scaling",
        "repository",
        "options",
        "monitoring",
        "endpoint",
        "inference_component",
        "model",
    ),
    "local": (
        "options",
        "model_statistics",
        "gateway_query",
        "sources",
        "running_container",
        "http_session",
        "readiness",
        "interruptible",
        "stand_ins",
        "server",
        "bundled_servers",
        "containers",
        "gateway",
        "page",
        "call_example",
        "watch",
        "run",
        "endpoint",
        "checked_models",
        "server_check",
    ),
}
# The first two read the same template, so neither imports the other. Tests alone import `testing`.
SIBLINGS = {("local", "cdk"), ("cli", "testing")}


def _modules(folder: str) -> list[Path]:
    root = PACKAGE / folder
    found = (path for path in root.rglob("*.py") if not any(map(path.is_relative_to, TEMPLATES)))
    return sorted(path for path in found if path != root / "__init__.py")


def _layer(path: Path, folder: str) -> str:
    return path.relative_to(PACKAGE / folder).parts[0].removesuffix(".py")


def imported_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _imported_layers(path: Path, folder: str) -> set[str]:
    package = ["constructs_triton", *filter(None, [folder])]
    names = (name.split(".") for name in imported_names(path))
    return {
        parts[len(package)]
        for parts in names
        if parts[: len(package)] == package and len(parts) > len(package)
    }


def _allowed(layer: str, folder: str) -> set[str]:
    layers = LAYERS[folder]
    above = layers[: layers.index(layer) + 1]
    return {other for other in above if (layer, other) not in SIBLINGS}


@pytest.mark.parametrize("folder", LAYERS)
def test_modules_import_only_from_layers_above(folder: str) -> None:
    """No module imports from a layer further down its folder's list, nor from a sibling."""
    upward = {
        str(path.relative_to(PACKAGE)): sorted(
            _imported_layers(path, folder) & set(LAYERS[folder]) - _allowed(_layer(path, folder), folder)
        )
        for path in _modules(folder)
    }
    assert not {module: layers for module, layers in upward.items() if layers}


@pytest.mark.parametrize("folder", LAYERS)
def test_each_module_is_in_a_layer(folder: str) -> None:
    """Every module and sub-folder of a layered folder is in its list of layers, and nothing else is."""
    assert {_layer(path, folder) for path in _modules(folder)} == set(LAYERS[folder])


def test_only_cdk_imports_the_cdk() -> None:
    """``cdk/`` and ``testing/`` are the only folders that import aws_cdk, constructs or jsii."""
    outside = (path for path in _modules("") if _layer(path, "") not in ("cdk", "testing"))
    roots = {str(path): {name.split(".")[0] for name in imported_names(path)} for path in outside}
    assert not {path for path, names in roots.items() if names & {"aws_cdk", "constructs", "jsii"}}


def test_modules_have_no_private_names() -> None:
    """No module's file name begins with an underscore: the folder says what belongs together."""
    private = [path for path in _modules("") if path.name.startswith("_") and not path.name.startswith("__")]
    assert not private


def _import_graph() -> dict[str, set[str]]:
    """Return the imports of each module, with those inside functions and those for type checkers."""
    packages = (PACKAGE, CLIENT)
    paths = {_dotted(path, each.parent): path for each in packages for path in each.rglob("*.py")}
    lazy = dict(pair for stub in PACKAGE.rglob("__init__.pyi") for pair in _lazy_names(stub))
    return {
        module: {lazy.get(name, name) for name in imported_names(path)} & paths.keys() - {module}
        for module, path in paths.items()
        if not any(map(path.is_relative_to, TEMPLATES))
    }


def _dotted(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _lazy_names(stub: Path) -> Iterator[tuple[str, str]]:
    """Yield the names that a package imports on first use, and the module of each."""
    package = _dotted(stub, PROJECT)
    for module, name in re.findall(r"^from (\.\S+) import (\w+) as", stub.read_text(), re.MULTILINE):
        yield f"{package}.{name}", f"{package}{module}"


def test_no_modules_import_each_other() -> None:
    """No import leads back to its module, directly or through others. CycleError lists the modules."""
    TopologicalSorter(_import_graph()).prepare()
