"""Finds the local variables that have no value yet, or no value any more, when they are read.

Only reads that certainly run are looked at. A binding anywhere before the read counts, whether it
runs or not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from triton_model_check.model.syntax_nodes import nodes_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_Position = tuple[int, int]


class _Binding(NamedTuple):
    """Where a name gets a value, and where it loses it again if it certainly does."""

    begin: _Position
    end: _Position | None


def unbound_reads(function: Function, runs: Callable[[ast.AST], bool]) -> Iterator[ast.Name]:
    """Yield the reads of local variables that certainly raise ``UnboundLocalError``.

    ``runs`` is whether a node certainly runs when the function is called.
    """
    own = nodes_of(*function.body, without=(*_SCOPES, *_COMPREHENSIONS))
    names = [node for node in own if isinstance(node, ast.Name)]
    handled = {node.name for node in own if isinstance(node, ast.ExceptHandler) and node.name}
    local = _suspicious_variables(function, names, handled)
    if not local:
        return

    bindings = list(_bindings(function))
    deletions = [node for node in names if isinstance(node.ctx, ast.Del) and runs(node)]
    for read in names:
        if read.id not in local or not isinstance(read.ctx, ast.Load) or not runs(read):
            continue
        lost = [_position(node) for node in deletions if node.id == read.id]
        before = [binding for name, binding in bindings if name == read.id]
        if not any(_has_value(binding, _position(read), lost) for binding in before):
            yield read


def _suspicious_variables(function: Function, names: list[ast.Name], handled: set[str]) -> set[str]:
    """Return the local variables that may be read without a value; most functions have none.

    ``handled`` has the names of ``except ... as NAME``, which lose their value after the block.
    """
    deleted = {node.id for node in names if isinstance(node.ctx, ast.Del)}
    suspicious = _read_before_assignment(names) | handled | deleted
    if not suspicious:
        return set()
    stored = {node.id for node in names if isinstance(node.ctx, ast.Store)} | handled
    return (suspicious & stored) - _shared_or_passed(function)


def _read_before_assignment(names: list[ast.Name]) -> set[str]:
    """Return the names that a function reads above the first line that assigns them."""
    first: dict[str, _Position] = {}
    for node in names:
        if isinstance(node.ctx, ast.Store):
            position = _position(node)
            first[node.id] = min(first.get(node.id, position), position)
    return {
        node.id
        for node in names
        if node.id in first and isinstance(node.ctx, ast.Load) and _position(node) < first[node.id]
    }


def _has_value(binding: _Binding, read: _Position, lost: list[_Position]) -> bool:
    """Whether a name may have the value of a binding where it is read."""
    if binding.begin > read or (binding.end is not None and binding.end < read):
        return False
    return not any(binding.begin < deletion < read for deletion in lost)


def _shared_or_passed(function: Function) -> set[str]:
    """Return the arguments, and the names that other functions may bind."""
    found = {node.arg for node in nodes_of(function) if isinstance(node, ast.arg)}
    for node in nodes_of(function):
        if isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
    return found


def _bindings(function: Function) -> Iterator[tuple[str, _Binding]]:
    """Yield each name that a function binds, with where it has its value."""
    for node in nodes_of(*function.body):
        if isinstance(node, ast.ExceptHandler):
            # Python deletes the name when the block ends.
            end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
            yield node.name or "", _Binding(_position(node), end)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                yield node.id, _Binding(_position(node), None)
        elif isinstance(node, ast.alias):
            name = (node.asname or node.name).partition(".")[0]
            yield name, _Binding(_position(node), None)
        elif isinstance(node, ast.MatchMapping):
            yield node.rest or "", _Binding(_position(node), None)
        elif isinstance(getattr(node, "name", None), str):
            yield node.name, _Binding(_position(node), None)  # type: ignore[attr-defined]


def _position(node: Any) -> _Position:
    return node.lineno, node.col_offset
