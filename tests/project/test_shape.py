"""The size of functions, so that the code stays readable."""

from __future__ import annotations

import ast

from workspace import PACKAGES, PROJECT, all_test_files

MODULES = [path for each in PACKAGES.values() for path in each.root.rglob("*.py")]
LONGEST_FUNCTION = 60


def function_lengths() -> dict[str, int]:
    """Lines of each function without its docstring's."""
    lengths = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                first = body[0].lineno if body else node.lineno
                lengths[f"{path.relative_to(PROJECT)}:{node.lineno} {node.name}"] = (
                    (node.end_lineno or first) - first + 1
                )
    return lengths


def test_functions_are_small() -> None:
    """No function has more than 60 lines, without its docstring."""
    lengths = function_lengths()
    assert not {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION}


def file_lengths() -> dict[str, int]:
    """Lines of each module."""
    return {str(path.relative_to(PROJECT)): path.read_text().count("\n") for path in MODULES}


def test_every_test_states_its_contract() -> None:
    """Every test has a docstring of one sentence."""
    missing = [
        f"{path.name}:{node.lineno} {node.name}"
        for path in all_test_files()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert not missing


def test_a_function_has_one_docstring() -> None:
    """The second one would be a statement without effect, which no linter reports."""
    assert not [
        f"{path.relative_to(PROJECT)}:{node.lineno} {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node)
        and node.body[1:]
        and isinstance(node.body[1], ast.Expr)
        and isinstance(node.body[1].value, ast.Constant)
        and isinstance(node.body[1].value.value, str)
    ]
