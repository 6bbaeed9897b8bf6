"""The code of the Lambda functions, as their assets contain it."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import aws_cdk as cdk
import pytest
from cdk_apps import make_app

from constructs_triton.cdk.custom_resources import function as functions
from constructs_triton.cdk.custom_resources.function import DeployFunction, FunctionDefinition
from constructs_triton.cdk.endpoint.adopted_endpoint import ADOPTION_FUNCTION
from constructs_triton.cdk.endpoint.deployment_verification import UPDATE_FUNCTION
from constructs_triton.cdk.repository.model_sync import MODEL_SYNC_FUNCTION
from constructs_triton.cdk.scaling.scaling_guard import SCALING_GUARD_FUNCTION
from constructs_triton_functions import CODE_DIRECTORY, CODE_FOLDER

FUNCTIONS = [ADOPTION_FUNCTION, MODEL_SYNC_FUNCTION, SCALING_GUARD_FUNCTION, UPDATE_FUNCTION]


def _asset(function: FunctionDefinition, directory: Path) -> tuple[Path, str]:
    """Return the folder of a function's code, and its handler."""
    app = make_app(directory / "cdk.out")
    stack = cdk.Stack(app, "Test")
    definition = DeployFunction(stack, "Function", function).function.node.default_child
    assert isinstance(definition, cdk.aws_lambda.CfnFunction)
    assert definition.handler is not None
    app.synth()
    (asset,) = (directory / "cdk.out").glob("asset.*")
    return asset, definition.handler


@pytest.mark.parametrize("function", FUNCTIONS)
def test_handler_can_be_imported_from_the_asset(
    function: FunctionDefinition, tmp_path: Path
) -> None:
    """Python imports the handler with only the asset and boto3 on its path."""
    asset, handler = _asset(function, tmp_path)
    module, name = handler.rsplit(".", 1)
    # As in AWS, the package itself cannot be imported.
    script = (
        "import importlib, sys; sys.modules['constructs_triton'] = None; sys.path.insert(0, "
        f"sys.argv[1]);module = importlib.import_module({module!r}); assert "
        f"callable(module.{name});assert module.__file__.startswith(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-I", "-c", script, str(asset)], check=True)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_code_needs_only_boto3_and_the_standard_library(
    function: FunctionDefinition, tmp_path: Path
) -> None:
    """The modules import only each other, boto3, botocore and the standard library."""
    asset, _ = _asset(function, tmp_path)
    for path in asset.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names.append(node.module or "")
            roots = {name.split(".")[0] for name in names}
            assert roots <= {*sys.stdlib_module_names, "boto3", "botocore"}, path.name


@pytest.mark.parametrize("function", FUNCTIONS)
def test_code_does_not_depend_on_where_it_is_installed(
    function: FunctionDefinition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy in another folder, with other times and no bytecode, has the same asset hash."""
    installed, _ = _asset(function, tmp_path / "a")
    copy = tmp_path / "installed" / CODE_FOLDER
    shutil.copytree(
        CODE_DIRECTORY / CODE_FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__")
    )
    for path in copy.rglob("*.py"):
        os.utime(path, (0, 0))
    monkeypatch.setattr(functions, "CODE_DIRECTORY", copy.parent)
    copied, _ = _asset(function, tmp_path / "b")
    assert copied.name == installed.name


def test_constructs_can_be_imported_without_boto3() -> None:
    """Only the extras install boto3, and synthesis does not need them."""
    script = (
        "import sys; sys.modules.update(boto3=None, botocore=None);"
        "from constructs_triton import TritonEndpoint, TritonModelRepository"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
