"""Reads the source of a Python model without executing it."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from functools import cached_property

__all__ = ["PythonSource"]

_MODEL = "TritonPythonModel"


@dataclass(frozen=True)
class PythonSource:
    """One ``model.py``: its path in the repository and its content.

    If it is uncertain whether a class or method exists, it counts as existing. For example, a module that
    imports ``*`` may define the class, and a class with a base class may inherit the method.
    """

    path: str
    content: bytes

    @cached_property
    def _parsed(self) -> tuple[ast.Module | None, SyntaxError | None]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return ast.parse(self.content), None
            except SyntaxError as error:
                return None, error
            except (ValueError, RecursionError, MemoryError) as error:
                return None, SyntaxError(str(error) or type(error).__name__)

    @property
    def tree(self) -> ast.Module | None:
        """The syntax tree, or ``None`` if the source does not parse."""
        return self._parsed[0]

    @property
    def fault(self) -> SyntaxError | None:
        """Why the source does not parse."""
        return self._parsed[1]

    @cached_property
    def _classes(self) -> dict[str, ast.ClassDef]:
        body = self.tree.body if self.tree else []
        return {node.name: node for node in body if isinstance(node, ast.ClassDef)}

    @property
    def class_names(self) -> list[str]:
        """The classes at the module's top level."""
        return list(self._classes)

    @cached_property
    def binds_model(self) -> bool:
        """Whether the module has, or may have, a ``TritonPythonModel``."""
        if self.tree is None or _MODEL in self._classes:
            return True
        return any(_may_bind_model(node) for node in ast.walk(self.tree))

    @property
    def class_line(self) -> int | None:
        """The line of the class, from 1."""
        node = self._classes.get(_MODEL)
        return node.lineno if node else None

    @property
    def lacks_execute(self) -> bool:
        """Whether the class certainly has no ``execute``."""
        return self._lacks("execute")

    @property
    def may_complete(self) -> bool:
        """Whether the class has, or may have, an ``auto_complete_config``."""
        return not self._lacks("auto_complete_config")

    def _lacks(self, method: str) -> bool:
        node = self._classes.get(_MODEL)
        if node is None or node.bases or node.decorator_list or node.keywords:
            return False
        if any(isinstance(child, ast.FunctionDef) and child.name == method for child in node.body):
            return False
        if method.encode() not in self.content:
            return True
        # Any binding of the name inside the class counts, for example by def or by assignment.
        return not any(_binds(child, method) for child in ast.walk(node))


def _may_bind_model(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom | ast.Import):
        return any((alias.asname or alias.name) in ("*", _MODEL) for alias in node.names)
    return _binds(node, _MODEL) or (isinstance(node, ast.Constant) and node.value == _MODEL)


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name == name
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
