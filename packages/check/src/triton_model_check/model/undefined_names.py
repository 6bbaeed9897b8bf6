"""Finds the names of a module that nothing defines.

A name counts as defined if anything anywhere in the file binds it, in whatever scope. A file that
may define names in another way has no undefined ones.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator

from triton_model_check.model.syntax_nodes import nodes_of

# Those of every Python from 3.8 to 3.14, of Windows, of `site`, and of modules and classes.
_KNOWN = frozenset(dir(builtins)) | frozenset(
    (
        *("aiter", "anext", "BaseExceptionGroup", "EncodingWarning", "ExceptionGroup"),
        *("PythonFinalizationError", "WindowsError", "_IncompleteInputError", "_"),
        *("copyright", "credits", "exit", "help", "license", "quit"),
        *("__annotations__", "__builtins__", "__cached__", "__class__", "__doc__", "__file__"),
        *("__loader__", "__module__", "__name__", "__package__", "__path__", "__qualname__"),
        *("__spec__", "__classdict__", "__annotate__", "__conditional_annotations__"),
        *("__type_params__", "__firstlineno__", "__static_attributes__"),
    )
)
_BRANCHES = (ast.If, ast.IfExp, ast.Try, ast.TryStar)


def known_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names that the nodes of a module bind, and those that every module has."""
    return _KNOWN | set(_bound_names(nodes))


def nodes_outside_branches(tree: ast.Module, nodes: Iterable[ast.AST]) -> list[ast.AST]:
    """Return the nodes of a module that no condition and no ``try`` protects, without annotations.

    A condition may ask for the version of Python, or whether an optional package is there.
    """
    hidden: set[int] = set()
    for node in nodes:
        annotation = getattr(node, "annotation", None) or getattr(node, "returns", None)
        if annotation is not None:
            hidden.update(id(each) for each in nodes_of(annotation))
    return [node for node in nodes_of(tree, without=_BRANCHES) if id(node) not in hidden]


def _bound_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield each name that nodes bind in any way."""
    for node in nodes:
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.Global | ast.Nonlocal):
            yield from node.names
        elif isinstance(node, ast.MatchMapping):
            yield node.rest or ""
        elif isinstance(getattr(node, "name", None), str):
            # Functions, classes, handlers of exceptions, captures and type parameters.
            yield node.name  # type: ignore[attr-defined]
