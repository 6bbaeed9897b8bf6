"""The class ``TritonPythonModel`` of a file, and which of its nodes run when."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from triton_model_check.model.module_index import ModuleIndex
from triton_model_check.model.python_contract import MODEL
from triton_model_check.model.python_execution import functions_of, nodes_of_call, nodes_of_request
from triton_model_check.model.python_functions import Function, argument_name, is_generator, kind_of
from triton_model_check.model.syntax_nodes import nodes_of
from triton_model_check.model.unbound_names import unbound_reads

Place = Literal["import", "auto_complete_config", "initialize"]
PLACES: tuple[Place, ...] = ("import", "auto_complete_config", "initialize")


@dataclass(frozen=True)
class ModelClass:
    """The class ``TritonPythonModel`` of a file, if everything that it has is written in it."""

    index: ModuleIndex
    node: ast.ClassDef
    _running: dict[Place, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, index: ModuleIndex | None) -> ModelClass | None:
        """Return the class; ``None`` if it may inherit, or is decorated, changed or defined
        twice.
        """
        if index is None:
            return None
        found = _what_may_be_model(index)
        node = found[0] if len(found) == 1 else None
        if not isinstance(node, ast.ClassDef) or node not in index.tree.body:
            return None
        has_base = any(
            not (isinstance(each, ast.Name) and each.id == "object") for each in node.bases
        )
        is_plain = not (has_base or node.keywords or node.decorator_list)
        return cls(index, node) if is_plain else None

    @property
    def tree(self) -> ast.Module:
        """The file."""
        return self.index.tree

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name that the class or one of its methods binds."""
        return frozenset(filter(None, map(_bound_name, nodes_of(*self.node.body))))

    def method(self, name: str) -> Function | None:
        """Return a method that the class defines once and nothing in the file changes."""
        found = [each for each in self.node.body if getattr(each, "name", None) == name]
        is_changed = name in self.index.stored_names or name in self.index.stored_attributes
        function = found[0] if len(found) == 1 and not is_changed else None
        return function if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) else None

    def runs(self, node: ast.AST, *places: Place) -> bool:
        """Whether a node certainly runs when the model loads, in one of these places or in any."""
        return any(id(node) in self._identities(place) for place in places or PLACES)

    @cached_property
    def unbound_names(self) -> tuple[ast.Name, ...]:
        """The reads of local variables that certainly have no value."""

        def runs(node: ast.AST) -> bool:
            return self.runs(node) or self.runs_at_each_request(node)

        return tuple(
            name for function in self.index.functions for name in unbound_reads(function, runs)
        )

    def may_run_later(self, node: ast.AST) -> bool:
        """Whether a node may run after the model has loaded, outside conditions and ``try``.

        Nodes that certainly run are not among them: they are errors, not warnings.
        """
        if id(node) not in self.index.outside_branches or self.runs(node):
            return False
        return not self.runs_at_each_request(node)

    def runs_at_each_request(self, node: ast.AST) -> bool:
        """Whether a node certainly runs whenever Triton calls ``execute``."""
        return id(node) in self._at_each_request

    @cached_property
    def _at_each_request(self) -> frozenset[int]:
        """Return the identities of the nodes that run for each request."""
        execute = self.method("execute")
        if not isinstance(execute, ast.FunctionDef) or kind_of(execute) is None:
            return frozenset()
        requests = argument_name(execute)
        if requests is None or is_generator(execute):
            return frozenset()
        functions = functions_of(self.tree, self.node)
        return frozenset(id(node) for node in nodes_of_request(execute, requests, functions))

    def _identities(self, place: Place) -> frozenset[int]:
        """The identity of each node that certainly runs in a place."""
        if place not in self._running:
            self._running[place] = frozenset(id(node) for node in self._nodes_of(place))
        return self._running[place]

    def _nodes_of(self, place: Place) -> Iterator[ast.AST]:
        if place == "import":
            yield from self.index.at_import
            return
        method = self.method(place)
        if isinstance(method, ast.FunctionDef) and kind_of(method) is not None:
            yield from nodes_of_call(method, functions_of(self.tree, self.node))


def _what_may_be_model(index: ModuleIndex) -> list[ast.AST]:
    """Return the nodes that define or change the class."""
    found: list[ast.AST] = [node for node in index.of(ast.ClassDef) if node.name == MODEL]
    found += [node for node in index.of(ast.alias) if MODEL in (node.asname, node.name)]
    for name in index.of(ast.Name):
        if name.id == MODEL and not isinstance(name.ctx, ast.Load):
            found.append(name)
    for attribute in index.of(ast.Attribute):  # TritonPythonModel.execute = other
        if isinstance(attribute.ctx, ast.Load):
            continue
        if isinstance(attribute.value, ast.Name) and attribute.value.id == MODEL:
            found.append(attribute)
    return found


def _bound_name(node: ast.AST) -> str | None:
    """Return the name of what a node defines or assigns, of an attribute too."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.alias):
        return (node.asname or node.name).partition(".")[0]
    if isinstance(node, ast.Attribute | ast.Name) and not isinstance(node.ctx, ast.Load):
        return node.attr if isinstance(node, ast.Attribute) else node.id
    return None
