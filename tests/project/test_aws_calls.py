"""AWS is called in two places alone, so that each of its errors has one wording."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from workspace import PACKAGES, PROJECT

_TOOLS = PACKAGES["constructs_triton_tools"].root
ROOMS = (
    PACKAGES["constructs_triton_core"].root / "aws_reader.py",
    _TOOLS / "aws",
    PACKAGES["constructs_triton_functions"].root,  # has only boto3 during a deployment
    PACKAGES["constructs_triton_client"].root / "transports",  # has errors of its own
    PACKAGES["cdk_rehearse"].root,  # calls the simulated account
    _TOOLS / "measuring" / "load_test" / "locust_file.py",  # a program for the user's own machines
    _TOOLS / "cli" / "local_run" / "verification.py",  # makes a session for the local endpoint
)
MODULES = [
    path
    for package in PACKAGES.values()
    for path in package.modules
    if not any(path == room or path.is_relative_to(room) for room in ROOMS)
]
#: Parts of botocore that call nothing: service models, signatures and event streams.
HARMLESS = {
    "auth",
    "awsrequest",
    "compat",
    "eventstream",
    "loaders",
    "model",
    "session",
    "validate",
}
CLIENTS = {"client", "resource", "create_client"}
PROJECTS = ("boto3", "botocore", "aiobotocore", "s3transfer")
#: Code without any of the names is not parsed.
MENTION = re.compile("|".join([*PROJECTS, *(rf"\.\s*{name}\b" for name in CLIENTS)]))


def calls(code: str) -> list[str]:
    """The names in ``code`` by which AWS could be called, or an error of botocore be caught."""
    return sorted(set(_names(ast.parse(code if MENTION.search(code) else ""))))


def _names(node: ast.AST) -> Iterator[str]:
    if (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    ):
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if _is_of_aws(alias.name))
    elif isinstance(node, ast.ImportFrom) and _is_of_aws(node.module or ""):
        named = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (each for each in named if each != "botocore.exceptions.ParamValidationError")
    elif isinstance(node, ast.Attribute) and node.attr in CLIENTS:
        owner = ast.unparse(node.value)
        if node.attr == "create_client" or owner.rstrip("()").lower().endswith("session"):
            yield f"{owner}.{node.attr}"
    for child in ast.iter_child_nodes(node):
        yield from _names(child)


def _is_of_aws(module: str) -> bool:
    package, *rest = module.split(".")
    return package in PROJECTS and not HARMLESS & {*rest[:1]}


def test_no_module_calls_aws() -> None:
    """Only the rooms make clients and know the exceptions of boto3;
    all others use ``AwsReader``.
    """
    found = {str(path.relative_to(PROJECT)): calls(path.read_text()) for path in MODULES}
    assert not {path: names for path, names in found.items() if names}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import boto3 as b", "boto3"),
        ("def f():\n    from boto3 import client", "boto3.client"),
        ("from botocore.exceptions import ClientError", "botocore.exceptions.ClientError"),
        ("from botocore.config import Config", "botocore.config.Config"),
        ("def f(session):\n    session.client('s3')", "session.client"),
        ("self._session.resource('s3')", "self._session.resource"),
        ("make: Any = make_session().client", "make_session().client"),
        (
            "import botocore.session as b\nb.get_session().create_client(1)",
            "b.get_session().create_client",
        ),
    ],
)
def test_each_way_is_found(code: str, found: str) -> None:
    """The search finds the ways that boto3 and botocore have, also under another name."""
    assert found in calls(code)


def test_harmless_code_is_not_found() -> None:
    """Types, service models and the clients of a reader are allowed."""
    types = "if TYPE_CHECKING:\n    import boto3\n"
    models = "import botocore.session\nfrom botocore.validate import ParamValidator\n"
    assert calls(f"{types}{models}reader.client('s3')\n'boto3'") == []
