"""What Triton's Python backend needs of a model's class, read from its source.

Source: python_backend, src/pb_stub.cc and src/resources/triton_python_backend_utils.py, of each
release from 20.10 to 26.07; ``python_backend.json`` has the names of each.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple, TypeVar

from triton_model_check.facts.published import load
from triton_model_check.model.python_execution import (
    functions_of,
    nodes_at_import,
    nodes_of_call,
    nodes_of_request,
)
from triton_model_check.model.syntax_nodes import nodes_of
from triton_model_check.model.unbound_names import unbound_reads
from triton_model_check.model.undefined_names import known_names, nodes_outside_branches

MODEL = "TritonPythonModel"
UTILS, C_UTILS = "triton_python_backend_utils", "c_python_backend_utils"
Place = Literal["import", "auto_complete_config", "initialize"]
PLACES: tuple[Place, ...] = ("import", "auto_complete_config", "initialize")
Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = TypeVar("Node", bound=ast.AST)
# Ways to define names that no statement binds, or to go on without them.
_DYNAMIC = re.compile(
    rb"\b(?:exec|eval|globals|locals|vars|__builtins__|builtins|__builtin__|gettext|NameError"
    rb"|get_ipython|import_module|__getattr__)\b|sys\.modules|import\s*\(?\s*\*"
)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@cache
def names_of(group: str, version: str | None) -> frozenset[str]:
    """Return the names of a group of ``python_backend.json`` that a release has.

    ``None``, and a release that is newer than the table, have all names.
    """
    names: dict[str, str] = load("python_backend")[group]
    return frozenset(name for name, since in names.items() if version is None or since <= version)


def members_of(class_name: str, version: str | None) -> frozenset[str]:
    """Return what the objects of a class of the backend have in a release; ``None`` has all."""
    names: dict[str, str] = load("python_backend")["members"][class_name]
    return frozenset(name for name, since in names.items() if version is None or since <= version)


def is_outside_table(version: str | None) -> bool:
    """Whether a release may have names that ``python_backend.json`` does not have.

    Those of newer releases are not known yet. Releases before the oldest had names that were
    removed, and the table states no arguments of theirs.
    """
    if version is None:
        return False
    table = load("python_backend")
    return not table["oldest_release"] <= version <= table["newest_release"]


class Signature(NamedTuple):
    """How many positional arguments a method takes, beside those that Python adds.

    ``most`` is ``None`` if there is no limit. ``required`` are keyword-only arguments.
    """

    least: int
    most: int | None
    required: tuple[str, ...]

    def accepts(self, count: int) -> bool:
        """Whether a call with this many positional arguments and no others succeeds."""
        is_enough = self.least <= count and not self.required
        return is_enough and (self.most is None or count <= self.most)


def undefined_names(index: ModuleIndex, content: bytes) -> list[ast.Name]:
    """Return the names of a file that nothing defines, each at its first use.

    A name counts as defined if anything anywhere in the file binds it, in whatever scope. A file
    that may define names in another way has no undefined ones.
    """
    found: dict[str, ast.Name] = {}
    for node in index.of(ast.Name):
        if node.id not in index.defined:
            found.setdefault(node.id, node)
    return [] if found and may_define_otherwise(content) else list(found.values())


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
        bodies = [(function.body[0], function.body[-1]) for function in self.functions]
        return [
            ((first.lineno, first.col_offset), (last.end_lineno, last.end_col_offset))
            for first, last in bodies
        ]

    @property
    def types(self) -> Set[type[ast.AST]]:
        """The types of the nodes."""
        return self._of_type.keys()

    def nodes_in(self, function: Function) -> list[ast.AST]:
        """Return the nodes of a function, without those of functions and classes inside it."""
        if id(function) not in self._nodes_in:
            self._nodes_in[id(function)] = nodes_of(*function.body, without=_SCOPES)
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
        names = self.stored_names | {node.arg for node in self.of(ast.arg)}
        names |= {node.name for node in (*self.functions, *self.of(ast.ClassDef))}
        imports = self.of(ast.ImportFrom)
        return frozenset(
            names | {each.asname or each.name for node in imports for each in node.names}
        )

    def aliases(self, module: str) -> frozenset[str]:
        """Return the names that only ever stand for a module of the backend."""
        if module not in self._aliases:
            imported = [alias for node in self.of(ast.Import) for alias in node.names]
            names = {alias.asname or alias.name for alias in imported if alias.name == module}
            others = {alias.asname or alias.name for alias in imported if alias.name != module}
            self._aliases[module] = frozenset(names - others - self._changed)
        return self._aliases[module]

    def calls(self, name: str) -> list[ast.Call]:
        """Return the calls of a class or function of the backend, such as ``InferenceResponse``.

        The name must be an attribute of the backend's modules, or imported from one of them.
        """
        if name not in self._calls:
            aliases = self.aliases(UTILS) | self.aliases(C_UTILS)
            imported = {
                alias.asname or alias.name
                for node in self.of(ast.ImportFrom)
                if node.module in (UTILS, C_UTILS)
                for alias in node.names
                if alias.name == name
            }
            # An alias is called by another name; then all calls are asked, in their order.
            has_alias = not imported <= {name}
            candidates = self.of(ast.Call) if has_alias else self._calls_by_name.get(name, [])
            self._calls[name] = [
                call for call in candidates if _is_called(call.func, name, aliases, imported)
            ]
        return self._calls[name]

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
        arguments = [node.arg for node in self.of(ast.arg)]
        definitions = [node.name for node in (*self.functions, *self.of(ast.ClassDef))]
        aliases = [alias for node in self.of(ast.Import) for alias in node.names]
        aliases += [alias for node in self.of(ast.ImportFrom) for alias in node.names]
        imported = [alias.asname or alias.name for alias in aliases]
        stored = [*self.stored_names, *self.stored_attributes]
        return Counter([*arguments, *definitions, *imported, *stored])

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


def kind_of(function: Function) -> Literal["method", "static", "class"] | None:
    """Return how Python binds a method, or ``None`` if another decorator may change it."""
    if not function.decorator_list:
        return "method"
    decorator = function.decorator_list[0]
    if len(function.decorator_list) > 1 or not isinstance(decorator, ast.Name):
        return None
    return {"staticmethod": "static", "classmethod": "class"}.get(decorator.id)  # type: ignore[return-value]


def signature_of(function: Function, *, is_bound: bool) -> Signature:
    """Return what a method takes.

    ``is_bound``: whether Python passes the object or the class as the first argument.
    """
    arguments = function.args
    positional = len(arguments.posonlyargs) + len(arguments.args)
    bound = 1 if is_bound else 0
    required = tuple(
        argument.arg
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    )
    most = None if arguments.vararg else positional - bound
    least = max(positional - len(arguments.defaults) - bound, 0)
    return Signature(least, most, required)


def argument_name(function: Function) -> str | None:
    """Return the name of the argument that Triton passes, or ``None`` if it is assigned again."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    index = 0 if kind_of(function) == "static" else 1
    if len(arguments) <= index:
        return None
    name = arguments[index].arg
    is_changed = any(
        isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        for node in nodes_of(*function.body)
    )
    return None if is_changed else name


def _is_called(function: ast.expr, name: str, aliases: frozenset[str], imported: set[str]) -> bool:
    if isinstance(function, ast.Name):
        return function.id in imported
    if not isinstance(function, ast.Attribute) or function.attr != name:
        return False
    return isinstance(function.value, ast.Name) and function.value.id in aliases


def values_returned(function: Function) -> list[ast.expr | None]:
    """Return what each ``return`` of a function returns."""
    nodes = nodes_of(*function.body, without=_SCOPES)
    return [node.value for node in nodes if isinstance(node, ast.Return)]


def is_generator(function: Function) -> bool:
    """Whether calling the function returns a generator."""
    nodes = nodes_of(*function.body, without=_SCOPES)
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes)


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
