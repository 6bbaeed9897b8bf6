"""Reads the source of a Python model without executing it."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple

from triton_model_check.model.compiler_faults import compiler_fault
from triton_model_check.model.module_index import ModuleIndex
from triton_model_check.model.python_class import ModelClass
from triton_model_check.model.python_objects import BackendObjects
from triton_model_check.model.syntax_nodes import nodes_of

_MAX_PIECES = 100_000
# Before Python 3.12, the parser looks for each expression of an f-string from the string's
# beginning.
_MAX_BRACES_TIMES_BYTES = 1_500_000_000
_PIECE = re.compile(rb"\w+|[^\s\w]|\n")
_MODEL = "TritonPythonModel"
_MOST_SHARED_BYTES = 100_000
"""Larger syntax trees are not kept for the next model, because they take much memory."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def is_over_budget(content: bytes) -> bool:
    """Whether parsing the source would take seconds, or hundreds of megabytes."""
    if len(content) <= _MAX_PIECES:
        return False
    if content.count(b"{") * len(content) > _MAX_BRACES_TIMES_BYTES:
        return True
    return sum(1 for _ in islice(_PIECE.finditer(content), _MAX_PIECES + 1)) > _MAX_PIECES


def version_of(text: str | None) -> tuple[int, int] | None:
    """Return the version of Python in a text such as ``"3.12"``."""
    if text is None:
        return None
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


class Import(NamedTuple):
    """An imported module, its line from 1, and whether loading the file imports it."""

    module: str
    line: int
    is_loaded: bool


@dataclass(frozen=True)
class _Parsed:
    """What a file contains, wherever it is: an index or the syntax error, and whether the compiler
    reports it.
    """

    index: ModuleIndex | None
    fault: SyntaxError | None = None
    is_fault_of_compiler: bool = False

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        body = self.index.tree.body if self.index else []
        return {node.name: node for node in body if isinstance(node, ast.ClassDef)}

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        return () if self.index is None else tuple(_imports(self.index.tree, is_loaded=True))

    @cached_property
    def line_without_response(self) -> int | None:
        node = self.classes.get(_MODEL)
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef)] if node else []
        found = [each for each in methods if each.name == "execute" and not each.decorator_list]
        return _line_that_returns_none(found[-1]) if found else None

    @cached_property
    def model_class(self) -> ModelClass | None:
        return ModelClass.of(self.index)

    @cached_property
    def objects(self) -> BackendObjects | None:
        return None if self.model_class is None else BackendObjects(self.model_class)


def _parse(content: bytes, feature_version: tuple[int, int] | None) -> _Parsed:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(content, feature_version=feature_version)
        except SyntaxError as error:
            return _Parsed(None, error)
        except (ValueError, RecursionError, MemoryError) as error:
            return _Parsed(None, SyntaxError(str(error) or type(error).__name__))
        index = ModuleIndex(tree)
        fault = compiler_fault(index, content)
        return _Parsed(index) if fault is None else _Parsed(None, fault, is_fault_of_compiler=True)


#: Hundreds of models often have the same ``model.py``.
_parse_once = lru_cache(maxsize=4)(_parse)


@dataclass(frozen=True)
class PythonSource:
    """One ``model.py``: its path in the repository and its content.

    ``python`` is the version of Python that loads it; ``None`` is the one that runs this.

    If it is uncertain whether a class or method exists, it counts as existing. For example, a
    module that imports ``*`` may define the class, and a class with a base class may inherit the
    method.
    """

    path: str
    content: bytes
    python: tuple[int, int] | None = None

    @cached_property
    def _parsed(self) -> _Parsed:
        parse = _parse_once if len(self.content) <= _MOST_SHARED_BYTES else _parse
        return parse(self.content, self._feature_version)

    @property
    def _feature_version(self) -> tuple[int, int] | None:
        """The version of the grammar, if it is older than that of this Python."""
        if self.python is None or self.python >= sys.version_info[:2]:
            return None
        return max(self.python, (3, 7))

    @property
    def tree(self) -> ast.Module | None:
        """The syntax tree, or ``None`` if the source does not parse."""
        return None if self.index is None else self.index.tree

    @property
    def fault(self) -> SyntaxError | None:
        """Why the source does not parse or compile."""
        return self._parsed.fault

    @property
    def is_fault_of_compiler(self) -> bool:
        """Whether the parser accepts the source and the compiler does not, in any Python."""
        return self._parsed.is_fault_of_compiler

    @property
    def _classes(self) -> dict[str, ast.ClassDef]:
        return self._parsed.classes

    @property
    def class_names(self) -> list[str]:
        """The classes at the module's top level."""
        return list(self._classes)

    @property
    def model_class(self) -> ModelClass | None:
        """The class ``TritonPythonModel``, if everything that it has is written in the file."""
        return self._parsed.model_class

    @property
    def objects(self) -> BackendObjects | None:
        """The backend's objects in the file of a model."""
        return self._parsed.objects

    @property
    def index(self) -> ModuleIndex | None:
        """The nodes of the file, or ``None`` if the source does not parse."""
        return self._parsed.index

    @cached_property
    def binds_model(self) -> bool:
        """Whether the module has, or may have, a ``TritonPythonModel``."""
        if self.index is None or _MODEL in self._classes:
            return True
        return any(map(_may_bind_model, self.index.nodes))

    @property
    def imports(self) -> tuple[Import, ...]:
        """The absolute imports outside ``if``, ``try`` and ``with``.

        Those inside may expect that the module is absent. A file that changes ``sys.path`` has
        none, because any folder may then contain the module.
        """
        if b"sys.path" in self.content or b"sys.modules" in self.content:
            return ()
        return self._parsed.imports

    @property
    def class_line(self) -> int | None:
        """The line of the class, from 1."""
        node = self._classes.get(_MODEL)
        return node.lineno if node else None

    @property
    def methods(self) -> list[str]:
        """The methods that the class defines."""
        node = self._classes.get(_MODEL)
        return (
            [each.name for each in node.body if isinstance(each, ast.FunctionDef)] if node else []
        )

    @property
    def lacks_execute(self) -> bool:
        """Whether the class certainly has no ``execute``."""
        return self._lacks("execute")

    @property
    def line_without_response(self) -> int | None:
        """The line on which ``execute`` returns ``None``, or ``None`` if it never does."""
        return self._parsed.line_without_response

    @property
    def may_set_decoupled(self) -> bool:
        """Whether ``auto_complete_config`` may make the model decoupled."""
        return self.may_complete and b"transaction_policy" in self.content

    @property
    def may_complete(self) -> bool:
        """Whether the class has, or may have, an ``auto_complete_config``."""
        return not self._lacks("auto_complete_config")

    def _lacks(self, method: str) -> bool:
        """Whether the class of the model certainly has no such method."""
        node = self._classes.get(_MODEL)
        if node is None or node.bases or node.decorator_list or node.keywords:
            return False
        if any(isinstance(child, ast.FunctionDef) and child.name == method for child in node.body):
            return False
        if method.encode() not in self.content:
            return True
        # Any binding of the name inside the class counts, for example by def or by assignment.
        return not any(_binds(child, method) for child in nodes_of(node))


def _imports(node: ast.AST, *, is_loaded: bool) -> Iterator[Import]:
    """Yield the imports below a node, and whether loading the file runs them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, is_loaded) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and not child.level and child.module:
            yield Import(child.module, child.lineno, is_loaded)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imports(child, is_loaded=False)
        elif isinstance(child, ast.ClassDef):
            yield from _imports(child, is_loaded=is_loaded)


def _may_bind_model(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom | ast.Import):
        return any((alias.asname or alias.name) in ("*", _MODEL) for alias in node.names)
    return _binds(node, _MODEL) or (isinstance(node, ast.Constant) and node.value == _MODEL)


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name == name
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _line_that_returns_none(function: ast.FunctionDef) -> int | None:
    """Return the line of a way that certainly returns ``None`` if it is taken, or ``None`` without
    one.

    It is the line of ``return`` or ``return None``, or of the function if its end can be reached. A
    generator has no such line, nor has a body that only contains ``pass`` or ``...``.
    """
    nodes = nodes_of(*function.body, without=_SCOPES)
    if all(_is_placeholder(each) for each in function.body) or any(
        isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes
    ):
        return None
    empty = [node.lineno for node in nodes if isinstance(node, ast.Return) and _is_none(node.value)]
    if empty:
        return min(empty)
    return function.lineno if _reaches_end(function.body) else None


def _is_placeholder(statement: ast.stmt) -> bool:
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_constant or isinstance(statement, ast.Pass)


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _reaches_end(body: Sequence[ast.stmt]) -> bool:
    return all(_continues(statement) for statement in body)


def _continues(statement: ast.stmt) -> bool:
    """Whether the statement after this one can be reached."""
    if isinstance(statement, ast.If):
        return _reaches_end(statement.body) or _reaches_end(statement.orelse)
    if isinstance(statement, ast.With):
        return _reaches_end(statement.body)
    if isinstance(statement, ast.While):
        return not _is_endless(statement)
    if isinstance(statement, ast.Try | ast.TryStar):
        ways = [[*statement.body, *statement.orelse], *(each.body for each in statement.handlers)]
        return _reaches_end(statement.finalbody) and any(_reaches_end(way) for way in ways)
    if isinstance(statement, ast.Match):
        return not _matches_all(statement) or any(
            _reaches_end(case.body) for case in statement.cases
        )
    return not isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue)


def _is_endless(loop: ast.While) -> bool:
    is_true = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return is_true and not any(
        isinstance(node, ast.Break) for node in nodes_of(*loop.body, without=_SCOPES)
    )


def _matches_all(statement: ast.Match) -> bool:
    last = statement.cases[-1]
    return (
        last.guard is None
        and isinstance(last.pattern, ast.MatchAs)
        and last.pattern.pattern is None
    )
