"""The layers of each package and of its larger folders."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from workspace import PACKAGES, imported_names, lazy_names

# In each folder, a module imports only from entries above its own entry.
LAYERS: dict[str, tuple[str, ...]] = {
    "constructs_triton_core": (
        "visible_text",
        "findings",
        "errors",
        "spelling",
        "keywords",
        "public_names",
        "tokens",
        "datatypes",
        "bounded_json",
        "concurrency",
        "model_index",
        "model_tensors",
        "aws_reader",
        "untrusted",
        "code_hosts",
        "processes",
        "facts",
        "limit_checks",
        "declared_values",
        "cloud_assembly",
        "program",
    ),
    "constructs_triton_core.cloud_assembly": (
        "shapes",
        "evaluation_budget",
        "unknown_values",
        "loops",
        "template",
        "address_blocks",
        "intrinsics",
        "placeholders",
        "synthesized_stack",
        "wildcards",
        "assembly",
        "endpoints",
        "scaling",
    ),
    "triton_model_check": (
        "untrusted",
        "facts",
        "onnx_runtimes",
        "model_files",
        "model_config",
        "model",
        "memory",
        "fixes",
        "checks",
        "choosing",
        "builder",
        "model_repository",
        "vision",
        "artifacts",
        "reporting",
        "cli",
        "repository_check",
        "editor",
        "__main__",
    ),
    "constructs_triton_functions": (
        "response",
        "retries",
        "scaling",
        "endpoint_state",
        "continuation",
        "verification",
        "model_sync",
        "update_check",
        "adoption",
        "scaling_guard",
    ),
    "constructs_triton_client": (
        "wire",
        "bounded_files",
        "errors",
        "transports",
        "input_checks",
        "observed_calls",
        "waking",
        "server_sent_events",
        "generated_events",
        "generation",
        "async_inference",
        "recorded_tensors",
        "recorded_requests",
        "triton_client",
    ),
    "cdk_rehearse": (
        "errors",
        "copies",
        "steps",
        "behaviour",
        "values",
        "moto_account",
        "template_parsing",
        "construct_libraries",
        "services",
        "existing",
        "function_process",
        "permissions",
        "custom_resources",
        "providers",
        "stacks",
        "endpoints",
        "account",
        "failures",
        "updates",
        "cli",
        "__main__",
    ),
    "constructs_triton_tools": (
        "declared_fields",
        "assembly",
        "aws",
        "building",
        "operations",
        "planning",
        "local",
        "measuring",
        "cli",
    ),
    "constructs_triton_tools.local": (
        "options",
        "model_statistics",
        "gateway_query",
        "sources",
        "running_container",
        "server_start",
        "http_session",
        "interruptible",
        "changed_files",
        "stand_ins",
        "server",
        "bundled_servers",
        "containers",
        "gateway",
        "page",
        "call_example",
        "run",
        "endpoint",
        "endpoint_of_tests",
        "checked_models",
        "server_check",
    ),
    "constructs_triton": (
        "cdk",
        "testing",
        "cli",
    ),
    "constructs_triton.cdk": (
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
}


#: One process reads the imports of all modules for these tests and those of the packages.
pytestmark = pytest.mark.xdist_group("imports")


def _folder(name: str) -> Path:
    package, *inner = name.split(".")
    return PACKAGES[package].root.joinpath(*inner)


def _modules(name: str) -> list[Path]:
    folder = _folder(name)
    found = (
        path for path in PACKAGES[name.partition(".")[0]].modules if path.is_relative_to(folder)
    )
    return [path for path in found if path != folder / "__init__.py"]


def _layer(path: Path, name: str) -> str:
    return path.relative_to(_folder(name)).parts[0].removesuffix(".py")


def _imported_layers(path: Path, name: str) -> set[str]:
    package = name.split(".")
    names = (each.split(".") for each in imported_names(path))
    return {
        parts[len(package)]
        for parts in names
        if parts[: len(package)] == package and len(parts) > len(package)
    }


@pytest.mark.parametrize("name", LAYERS)
def test_modules_import_only_from_layers_above(name: str) -> None:
    """No module imports from a layer further down its folder's list."""
    layers = LAYERS[name]
    upward = {
        str(path): [
            other
            for other in _imported_layers(path, name) & set(layers)
            if layers.index(other) > layers.index(_layer(path, name))
        ]
        for path in _modules(name)
    }
    assert not {module: found for module, found in upward.items() if found}


@pytest.mark.parametrize("name", LAYERS)
def test_each_module_is_in_a_layer(name: str) -> None:
    """Every module and sub-folder of a layered folder is in its list of layers,
    and nothing else is.
    """
    assert {_layer(path, name) for path in _modules(name)} == set(LAYERS[name])


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_have_no_private_names(package: str) -> None:
    """No module's file name begins with an underscore: the folder says what belongs together."""
    modules = PACKAGES[package].modules
    assert not [path for path in modules if re.match("_[^_]", path.name)]


def _import_graph() -> dict[str, set[str]]:
    """Return the imports of each module, with those inside functions and
    those for type checkers.
    """
    packages = PACKAGES.values()
    paths = {_dotted(path): path for each in packages for path in each.modules}
    lazy = dict(
        pair for each in packages for stub in each.stubs for pair in lazy_names(stub, _dotted(stub))
    )
    return {
        module: {lazy.get(name, name) for name in imported_names(path)} & paths.keys() - {module}
        for module, path in paths.items()
    }


def _dotted(path: Path) -> str:
    package = next(each for each in PACKAGES.values() if path.is_relative_to(each.root))
    parts = path.relative_to(package.root.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def test_no_modules_import_each_other() -> None:
    """No import leads back to its module, directly or through others.

    CycleError lists the modules.
    """
    TopologicalSorter(_import_graph()).prepare()
