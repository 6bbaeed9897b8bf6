"""What certainly fails in a Python model is found, and its valid twins are accepted."""

from __future__ import annotations

import ast

import pytest

from triton_model_check.model.module_index import ModuleIndex
from triton_model_check.model.python_class import ModelClass
from triton_model_check.model.unbound_names import unbound_reads


def _class(body: str) -> ModelClass:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    source = f"class TritonPythonModel:\n    def execute(self, requests):\n{lines}"
    found = ModelClass.of(ModuleIndex(ast.parse(source)))
    assert found is not None
    return found


def _lost(body: str) -> list[str]:
    found = _class(body)
    return [
        name.id
        for function in found.index.functions
        for name in unbound_reads(function, found.runs_at_each_request)
    ]


@pytest.mark.parametrize(
    "body",
    [
        "for request in requests:\n    found.append(request)\nfound = []",
        "total = 1\ndel total\nreturn total",
        "try:\n    pass\nexcept ValueError as found:\n    pass\nreturn found",
    ],
)
def test_read_without_value_is_found(body: str) -> None:
    """A local variable has no value before its assignment, after del and after except."""
    assert len(_lost(body)) == 1


@pytest.mark.parametrize(
    "body",
    [
        "global found\nfor request in requests:\n    found.append(request)\nfound = []",
        "if requests:\n    total = 1\nreturn total",
        "total = 1\ndel total\ntotal = 2\nreturn total",
        "found = None\ntry:\n    pass\nexcept OSError as e:\n    found = e\nreturn found",
        "try:\n    total\nexcept NameError:\n    total = 1\nreturn total",
        "return [total for total in requests if total]",
        "import total\nreturn total",
        "for n in range(4):\n    if n:\n        total += n\n    else:\n        total = 1",
        "def add():\n    nonlocal total\n    total = 2\nadd()\nprint(total)\ntotal = 1",
    ],
)
def test_read_that_may_have_a_value_is_accepted(body: str) -> None:
    """A variable that may have a value when it is read is not reported."""
    assert _lost(body) == []


@pytest.mark.parametrize(
    ("body", "is_certain"),
    [
        ("for request in requests:\n    marked", True),
        ("return [marked for request in requests]", True),
        ("for request in requests:\n    if request:\n        marked", False),
        ("for request in requests[1:]:\n    marked", False),
        ("return [marked for request in requests if request]", False),
        ("for request in requests:\n    if request:\n        continue\n    marked", False),
        ("try:\n    marked\nexcept NameError:\n    pass", False),
        ("yield marked", False),
    ],
)
def test_body_of_loop_over_requests_runs(body: str, is_certain: bool) -> None:
    """What no condition protects runs for each request; everything else may not run."""
    found = _class(body)
    marked = next(node for node in found.index.of(ast.Name) if node.id == "marked")
    assert found.runs_at_each_request(marked) is is_certain
