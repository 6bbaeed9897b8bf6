"""Finds the models and tensors that a Python model names, without executing it.

Source: python_backend README. Business logic scripting (BLS) calls models with
``pb_utils.InferenceRequest(model_name=...)``. Tensors are named in ``pb_utils.Tensor(name, array)``
and ``pb_utils.get_input_tensor_by_name(request, name)``.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from triton_model_check.model.backends import infer_backend
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model.python_source import is_over_budget
from triton_model_check.model.syntax_nodes import nodes_of

__all__ = ["CallSite", "ModelCalls", "find_calls"]

_REQUEST = "InferenceRequest"
_INPUT, _TENSOR = "get_input_tensor_by_name", "Tensor"
_FROM_DLPACK = "from_dlpack"  # also creates a tensor
_MODEL_NAME_POSITION = (
    4  # python_backend pb_stub.cc: request_id, correlation_id, inputs, outputs, model_name
)
_SENDING = frozenset(("exec", "async_exec"))
_MOST_FILES = 100


class CallSite(NamedTuple):
    """A request in a source file: the path in the repository, and the line from 1."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """The models that a model calls.

    ``sites`` are the models that its source names, each with the first call. ``unknown`` are calls
    whose model is not known. ``declared`` are models that the user has declared, or ``None``.
    ``sent`` are those of ``sites`` to which the source sends a request that it creates.
    """

    sites: Mapping[str, CallSite]
    unknown: tuple[CallSite, ...] = ()
    declared: tuple[str, ...] | None = None
    sent: frozenset[str] = frozenset()

    @property
    def models(self) -> tuple[str, ...]:
        """All models that are called, without duplicates."""
        return tuple(dict.fromkeys((*self.sites, *(self.declared or ()))))


def find_calls(folder: ModelFolder, declared: Sequence[str] | None = None) -> ModelCalls:
    """Return the calls in ``model.py`` and in the modules of the folder that it imports, of all
    versions.

    A name is known if it is a string, or a variable or attribute that is only ever assigned
    strings. ``declared`` are the models that the user has declared.
    """
    sites: dict[str, CallSite] = {}
    unknown: list[CallSite] = []
    sent: set[str] = set()
    for path, tree in _sources(folder):
        module = _Module(tree)
        for call in module.calls(_REQUEST):
            site = CallSite(path, call.lineno)
            names = module.names(_argument(call, _MODEL_NAME_POSITION, "model_name"))
            if names is None:
                unknown.append(site)
            for name in names or ():
                sites.setdefault(name, site)
            if module.sends(call):
                sent.update(names or ())
    known = None if declared is None else tuple(declared)
    return ModelCalls(sites, tuple(unknown), known, frozenset(sent))


class NamedTensor(NamedTuple):
    """A tensor that a source file names: whether it is an input, its name, and the line from 1."""

    is_input: bool
    name: str
    line: int


def find_tensors(tree: ast.Module, nodes: list[ast.AST]) -> Iterator[NamedTensor]:
    """Yield the tensors that a model reads, and those that it creates unless it calls other models.

    ``nodes`` are those of ``tree``. The tensors of a called model are created in the same way.
    Names are known as in :func:`find_calls`.
    """
    module = _Module(tree, nodes)
    for call in module.calls(_INPUT):
        for name in module.names(_argument(call, 1, "name")) or ():
            yield NamedTensor(True, name, call.lineno)
    for call in () if module.calls(_REQUEST) else module.calls(_TENSOR):
        for name in module.names(_argument(call, 0, "name")) or ():
            yield NamedTensor(False, name, call.lineno)


def created_tensors(folder: ModelFolder, path: str, tree: ast.Module) -> frozenset[str] | None:
    """Return the names of the tensors that a ``model.py`` creates; ``None`` if some are not known.

    They are not known if a name is computed, or if the code is also in other files: in a module of
    the folder, in a base class, or in a model that is called.

    Args:
        folder: The folder of the model.
        path: Path of the file in the folder, such as ``1/model.py``.
        tree: Its syntax tree.
    """
    version = path.partition("/")[0]
    module = _Module(tree)
    has_bases = any(isinstance(node, ast.ClassDef) and node.bases for node in tree.body)
    if has_bases or module.calls(_REQUEST) or any(imported_files(folder, path, version, tree)):
        return None
    calls = module.calls(_TENSOR)
    if not calls or module.mentions(_TENSOR) != len(calls) or module.mentions(_FROM_DLPACK):
        return None
    found: set[str] = set()
    for call in calls:
        names = module.names(_argument(call, 0, "name"))
        if names is None:
            return None
        found.update(names)
    return frozenset(found)


# Source files.


def _sources(folder: ModelFolder) -> Iterator[tuple[str, ast.Module]]:
    """Yield the files that contain a request, each with its path in the repository."""
    backend = infer_backend(folder)
    if backend.backend != "python" or not backend.model_file.endswith(".py"):
        return
    for version in folder.version_directories:
        yield from _sources_of(folder, version, backend.model_file)


def _sources_of(folder: ModelFolder, version: str, file: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the model file and the modules of the folder that call other models, parsed."""
    waiting = [f"{version}/{file}"]
    seen: set[str] = set()
    while waiting and len(seen) < _MOST_FILES:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        content = folder.read(*path.split("/")) or b""
        has_calls = _REQUEST.encode() in content
        if not content or not (has_calls or _has_modules(folder, version)):
            continue
        tree = _parse(content)
        if tree is None:
            continue
        if has_calls:
            yield folder.relative(*path.split("/")), tree
        waiting += imported_files(folder, path, version, tree)


def _has_modules(folder: ModelFolder, version: str) -> bool:
    """Whether a model has other files beside its model file that it may import."""
    if len(folder.list(version)) > 1:
        return True
    return any(name.endswith(".py") for name in folder.entries)


def _parse(content: bytes) -> ast.Module | None:
    """Return the syntax tree of a file; ``None`` if Python cannot parse it."""
    if is_over_budget(content):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(content)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def imported_files(folder: ModelFolder, path: str, version: str, tree: ast.Module) -> Iterator[str]:
    """Yield the files of the folder that a module imports.

    The Python backend adds the folder of the model and the folder of the version to the search
    path.
    """
    package = path.split("/")[:-1]
    for level, name in _module_names(tree):
        roots = [package[: len(package) - level + 1]] if level else [[version], []]
        for root in roots:
            modules = [*filter(None, name.split("."))]
            if modules and not _may_contain(folder, root, modules[0]):
                continue
            parts = [*root, *modules]
            candidates = ("/".join(parts) + ".py", "/".join([*parts, "__init__.py"]))
            yield from (each for each in candidates if folder.size_of(*each.split("/")) is not None)


def _may_contain(folder: ModelFolder, root: list[str], module: str) -> bool:
    """Whether a listed folder has the file or the folder of a module.

    The listing is at hand, and most imports are not of the model's own files.
    """
    names = folder.list(*root)
    return module in names or f"{module}.py" in names


def _module_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the level and name of each imported module, and of each name that may be a module."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield node.level, module
            yield from ((node.level, f"{module}.{alias.name}") for alias in node.names)


# Requests.


class _Module:
    """The calls in a module, and the strings that its names can have."""

    def __init__(self, tree: ast.Module, nodes: list[ast.AST] | None = None) -> None:
        self._roots = tree.body
        self._nodes = nodes_of(tree) if nodes is None else nodes

    def calls(self, name: str) -> list[ast.Call]:
        """Return the calls of a function or method of this name."""
        return self._calls.get(name, [])

    @cached_property
    def _calls(self) -> dict[str, list[ast.Call]]:
        """All calls, by the name of the function or method."""
        found: dict[str, list[ast.Call]] = {}
        for node in self._nodes:
            if isinstance(node, ast.Call):
                found.setdefault(_target(node.func).removeprefix("."), []).append(node)
        return found

    def mentions(self, name: str) -> int:
        """Return how often a variable or an attribute of this name is written, called or not."""
        return sum(_target(node).removeprefix(".") == name for node in self._nodes)

    def sends(self, request: ast.Call) -> bool:
        """Whether the source certainly sends a request, if it runs: with ``exec`` on the request,
        or on the variable to which it is assigned.
        """
        return id(request) in self._sent or self._targets.get(id(request)) in self._sending

    @cached_property
    def _sent(self) -> frozenset[int]:
        """The identity of each expression of which ``exec`` is called, outside ``lambda``."""
        return frozenset(
            id(node.func.value)
            for node in nodes_of(*self._roots, without=(ast.Lambda,))
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _SENDING
        )

    @cached_property
    def _sending(self) -> frozenset[str]:
        """The variables and attributes of which ``exec`` is called."""
        nodes = (node for node in self._nodes if id(node) in self._sent)
        return frozenset(_target(node) for node in nodes if isinstance(node, ast.expr)) - {""}

    @cached_property
    def _targets(self) -> dict[int, str]:
        """The variable to which each call is assigned, by the identity of the call."""
        return {id(value): target for target, value in _bindings(self._nodes)}

    def names(self, value: ast.expr | None) -> Iterable[str] | None:
        """Return the values that an expression can have, or ``None`` if they are not known."""
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return [value.value]
        if isinstance(value, ast.IfExp):
            sides = [self.names(side) for side in (value.body, value.orelse)]
            known = [side for side in sides if side is not None]
            return [name for side in known for name in side] if len(known) == len(sides) else None
        assigned = self._strings.get(_target(value))
        return sorted(assigned) if assigned else None

    @cached_property
    def _strings(self) -> dict[str, set[str] | None]:
        """The strings that are assigned to each variable and attribute;
        ``None`` for other values.
        """
        found: dict[str, set[str] | None] = {}
        for target, value in _bindings(self._nodes):
            known = found.setdefault(target, set())
            if (
                isinstance(value, ast.Constant)
                and isinstance(value.value, str)
                and known is not None
            ):
                known.add(value.value)
            else:
                found[target] = None
        return found


def _argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """Return the argument, or ``None`` if the call passes it with ``*`` or ``**``."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[position] if len(call.args) > position else None


def _bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield each name that nodes bind, with its value if it is known."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _assigned(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            yield _target(node.target), None if isinstance(node, ast.AugAssign) else node.value
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            yield from _assigned(node.target, None)
        elif isinstance(node, ast.arg):
            yield node.arg, None
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield from _assigned(node.optional_vars, None)


def _assigned(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _assigned(element, None)
    else:
        yield _target(target), value


def _target(node: ast.AST | None) -> str:
    """Return a name for a variable (``scale``) or an attribute (``.scale``);
    "" for anything else.
    """
    if isinstance(node, ast.Name):
        return node.id
    return f".{node.attr}" if isinstance(node, ast.Attribute) else ""
