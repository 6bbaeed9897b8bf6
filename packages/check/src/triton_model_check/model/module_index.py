"""The syntax nodes of a Python file, by what the checks ask about."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Set
from functools import cached_property
from typing import Any, TypeVar

from triton_model_check.model.python_contract import C_UTILS, UTILS
from triton_model_check.model.python_execution import nodes_at_import
from triton_model_check.model.python_functions import SCOPES, Function
from triton_model_check.model.syntax_nodes import nodes_of
from triton_model_check.model.undefined_names import known_names, nodes_outside_branches

Node = TypeVar("Node", bound=ast.AST)
# Ways to define names that no statement binds, or to go on without them.
_DYNAMIC = re.compile(
    rb"\b(?:exec|eval|globals|locals|vars|__builtins__|builtins|__builtin__|gettext|NameError"
    rb"|get_ipython|import_module|__getattr__)\b|sys\.modules|import\s*\(?\s*\*"
)


def undefined_names(index: ModuleIndex, content: bytes) -> list[ast.Name]:
    """Return the names of a file that nothing defines, each at its first use.

    A name counts as defined if anything anywhere in the file binds it, in whatever scope. A file
    that may define names in another way has no undefined ones.
    """
    found: dict[str, ast.Name] = {}
    for node in index.of(ast.Name):
        if node.id not in index.defined:
            found.setdefault(node.id, node)
    if found and may_define_otherwise(content):
        return []
    return list(found.values())


def may_define_otherwise(content: bytes) -> bool:
    """Whether a file may define names that no statement binds, or expects that one is absent."""
    return _DYNAMIC.search(content) is not None


_BINDING_FIELDS = frozenset(("arg", "asname", "id", "name", "names", "rest"))
"""The fields of syntax nodes in which a name can be bound; other nodes need no look."""


class ModuleIndex:
    """The nodes of a file, by what the checks ask about; each question is answered once."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.nodes = nodes_of(tree)
        self._of_type: dict[type[ast.AST], list[Any]] = {}
        for node in self.nodes:
            self._of_type.setdefault(type(node), []).append(node)
        self._aliases: dict[str, frozenset[str]] = {}
        self._calls: dict[str, list[ast.Call]] = {}
        self._nodes_in: dict[int, list[ast.AST]] = {}

    def of(self, wanted: type[Node]) -> list[Node]:
        """Return the nodes of exactly this type."""
        return self._of_type.get(wanted, [])

    def is_in_body(self, node: ast.expr) -> bool:
        """Whether a node is in the body of a function, and not among its annotations or defaults.

        Such a node never runs when the module is imported.
        """
        place = (node.lineno, node.col_offset)
        return any(start <= place < end for start, end in self._bodies)

    @cached_property
    def _bodies(self) -> list[tuple[tuple[int, int], tuple[int | None, int | None]]]:
        """Where the body of each function begins and ends."""
        found = []
        for function in self.functions:
            first = function.body[0]
            last = function.body[-1]
            start = (first.lineno, first.col_offset)
            end = (last.end_lineno, last.end_col_offset)
            found.append((start, end))
        return found

    @property
    def types(self) -> Set[type[ast.AST]]:
        """The types of the nodes."""
        return self._of_type.keys()

    def nodes_in(self, function: Function) -> list[ast.AST]:
        """Return the nodes of a function, without those of functions and classes inside it."""
        if id(function) not in self._nodes_in:
            self._nodes_in[id(function)] = nodes_of(*function.body, without=SCOPES)
        return self._nodes_in[id(function)]

    @cached_property
    def at_import(self) -> tuple[ast.AST, ...]:
        """The nodes that certainly run when the file is imported."""
        return tuple(nodes_at_import(self.tree))

    @cached_property
    def functions(self) -> list[Function]:
        """The functions and coroutines."""
        return [*self.of(ast.FunctionDef), *self.of(ast.AsyncFunctionDef)]

    @cached_property
    def _changed(self) -> frozenset[str]:
        """The names that something else than ``import X`` binds."""
        names = {*self.stored_names}
        names |= {node.arg for node in self.of(ast.arg)}
        names |= {node.name for node in (*self.functions, *self.of(ast.ClassDef))}
        for node in self.of(ast.ImportFrom):
            names |= {_bound_name(alias) for alias in node.names}
        return frozenset(names)

    def aliases(self, module: str) -> frozenset[str]:
        """Return the names that only ever stand for a module of the backend."""
        if module not in self._aliases:
            names: set[str] = set()
            others: set[str] = set()
            for node in self.of(ast.Import):
                for alias in node.names:
                    bound = names if alias.name == module else others
                    bound.add(_bound_name(alias))
            self._aliases[module] = frozenset(names - others - self._changed)
        return self._aliases[module]

    def calls(self, name: str) -> list[ast.Call]:
        """Return the calls of a class or function of the backend, such as ``InferenceResponse``.

        The name must be an attribute of the backend's modules, or imported from one of them.
        """
        if name not in self._calls:
            aliases = self.aliases(UTILS) | self.aliases(C_UTILS)
            imported = self._imported_as(name)
            # An alias is called by another name; then all calls are asked, in their order.
            has_alias = not imported <= {name}
            candidates = self.of(ast.Call) if has_alias else self._calls_by_name.get(name, [])
            self._calls[name] = [
                call for call in candidates if _is_called(call.func, name, aliases, imported)
            ]
        return self._calls[name]

    def _imported_as(self, name: str) -> set[str]:
        """The names by which the file imports a class or function of the backend."""
        found: set[str] = set()
        for node in self.of(ast.ImportFrom):
            if node.module in (UTILS, C_UTILS):
                found |= {_bound_name(alias) for alias in node.names if alias.name == name}
        return found

    @cached_property
    def _calls_by_name(self) -> dict[str, list[ast.Call]]:
        """The calls, by the name of the variable or of the attribute that is called."""
        found: dict[str, list[ast.Call]] = {}
        for call in self.of(ast.Call):
            function = call.func
            if isinstance(function, ast.Name):
                found.setdefault(function.id, []).append(call)
            elif isinstance(function, ast.Attribute):
                found.setdefault(function.attr, []).append(call)
        return found

    def binds(self, name: str) -> bool:
        """Whether the file may give a name another meaning than the one that every module has."""
        return name in self._changed or "*" in self._changed

    @cached_property
    def stored_names(self) -> frozenset[str]:
        """Each variable that the file assigns or deletes."""
        return frozenset(
            node.id for node in self.of(ast.Name) if not isinstance(node.ctx, ast.Load)
        )

    @cached_property
    def stored_attributes(self) -> frozenset[str]:
        """Each attribute that the file assigns or deletes, of any object."""
        attributes = self.of(ast.Attribute)
        return frozenset(node.attr for node in attributes if not isinstance(node.ctx, ast.Load))

    def is_bound_once(self, name: str) -> bool:
        """Whether the file binds a name in one place only."""
        return self._bindings_of_names.get(name, 0) == 1

    @cached_property
    def _bindings_of_names(self) -> Counter[str]:
        """How often the file binds each name, of variables, attributes and arguments."""
        counted = Counter(node.arg for node in self.of(ast.arg))
        counted.update(node.name for node in (*self.functions, *self.of(ast.ClassDef)))
        imports: list[ast.Import | ast.ImportFrom]
        imports = [*self.of(ast.Import), *self.of(ast.ImportFrom)]
        for node in imports:
            counted.update(_bound_name(alias) for alias in node.names)
        counted.update(self.stored_names)
        counted.update(self.stored_attributes)
        return counted

    @cached_property
    def defined(self) -> frozenset[str]:
        """The names that something binds, or that every module has."""
        return known_names(
            node
            for kind, nodes in self._of_type.items()
            if not _BINDING_FIELDS.isdisjoint(kind._fields)
            for node in nodes
        )

    @cached_property
    def outside_branches(self) -> frozenset[int]:
        """The identity of each node that no condition and no ``try`` protects, without
        annotations.
        """
        return frozenset(id(node) for node in nodes_outside_branches(self.tree, self.nodes))


def _bound_name(alias: ast.alias) -> str:
    """The name that an import binds."""
    return alias.asname or alias.name


def _is_called(function: ast.expr, name: str, aliases: frozenset[str], imported: set[str]) -> bool:
    if isinstance(function, ast.Name):
        return function.id in imported
    if not isinstance(function, ast.Attribute) or function.attr != name:
        return False
    return isinstance(function.value, ast.Name) and function.value.id in aliases
