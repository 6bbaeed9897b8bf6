"""Whether Python can create a ``TritonPythonModel``, without executing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.python_sources import problem_at
from triton_model_check.checks.rules import Problem, rule
from triton_model_check.model.module_index import ModuleIndex
from triton_model_check.model.python_contract import MODEL
from triton_model_check.model.syntax_nodes import nodes_of

_rule = partial(rule, scope="python")


@_rule(
    "python-class-creation",
    source="triton python_backend src/pb_stub.cc, Stub::Initialize; run with triton server 2.51",
)
def class_creation(model: ModelUnderCheck) -> Iterator[Problem]:
    """Triton can create a ``TritonPythonModel`` without arguments.

    A class with an abstract method, or a dataclass with a field without a default value, is a
    ``TypeError``, and the model does not load. The rule skips classes with other decorators and
    other base classes than ``ABC``.
    """
    for source in model.python_sources:
        node = _only_class(source.index)
        if node is None or source.index is None:
            continue
        for statement, message, hint in (
            *_abstract_methods(source.index, node),
            *_required_fields(source.index, node),
        ):
            yield problem_at(source, statement, message, hint)


def _only_class(index: ModuleIndex | None) -> ast.ClassDef | None:
    """Return the class if the file defines it once, at its top level, and does not change it."""
    if index is None:
        return None
    found = [node for node in index.of(ast.ClassDef) if node.name == MODEL]
    if len(found) != 1 or found[0] not in index.tree.body or not index.is_bound_once(MODEL):
        return None
    uses = [node for node in index.of(ast.Name) if node.id == MODEL]
    return None if uses else found[0]


def _abstract_methods(
    index: ModuleIndex, node: ast.ClassDef
) -> Iterator[tuple[ast.stmt, str, str]]:
    """Yield each abstract method, with which Python cannot create the model."""
    is_abstract = _is_abc(index, node)
    if not is_abstract or node.decorator_list:
        return
    for statement in node.body:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        decorators = [_imported_from(index, "abc", each) for each in statement.decorator_list]
        if "abstractmethod" in decorators and _is_bound_once_in(node, statement.name):
            message = f"Can't instantiate abstract class {MODEL} with abstract method"
            hint = f"write the method {statement.name} in {MODEL}, or remove the decorator"
            yield statement, f"{message} {statement.name}", hint


def _is_abc(index: ModuleIndex, node: ast.ClassDef) -> bool:
    """Whether the class has the metaclass that counts abstract methods, and no other base class."""
    bases = [_imported_from(index, "abc", base) for base in node.bases]
    metaclasses = [_imported_from(index, "abc", each.value) for each in node.keywords]
    if bases == ["ABC"] and not metaclasses:
        return True
    is_only = len(node.keywords) == 1 and node.keywords[0].arg == "metaclass"
    return not bases and is_only and metaclasses == ["ABCMeta"]


def _required_fields(index: ModuleIndex, node: ast.ClassDef) -> Iterator[tuple[ast.stmt, str, str]]:
    """Yield each field of a dataclass that has no default value, with Python's message and a hint.

    Triton creates the class of a model without arguments, which then fails.
    """
    decorators = [_imported_from(index, "dataclasses", each) for each in node.decorator_list]
    methods = {getattr(statement, "name", "") for statement in node.body}
    if decorators != ["dataclass"] or node.bases or node.keywords or "__init__" in methods:
        return
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or statement.value is not None:
            continue
        target = statement.target
        words = ast.unparse(statement.annotation)
        # Class variables are no fields, and other places may give the name a default value.
        if not isinstance(target, ast.Name) or "ClassVar" in words:
            continue
        if _is_bound_once_in(node, target.id):
            message = f"__init__() missing 1 required positional argument: '{target.id}'"
            yield statement, message, f"give {target.id} a default value"


def _imported_from(index: ModuleIndex, module: str, node: ast.expr) -> str | None:
    """Return the name of a module that an expression certainly is, or ``None``."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id in index.aliases(module) else None
    if not isinstance(node, ast.Name) or not index.is_bound_once(node.id):
        return None
    for statement in index.tree.body:
        if isinstance(statement, ast.ImportFrom) and statement.module == module:
            for alias in statement.names:
                if (alias.asname or alias.name) == node.id and not statement.level:
                    return alias.name
    return None


def _is_bound_once_in(node: ast.ClassDef, name: str) -> bool:
    """Whether the class binds a name in one place only."""
    found = [
        child
        for child in nodes_of(*node.body)
        if getattr(child, "name", None) == name
        or (
            isinstance(child, ast.Name) and child.id == name and not isinstance(child.ctx, ast.Load)
        )
    ]
    return len(found) == 1
