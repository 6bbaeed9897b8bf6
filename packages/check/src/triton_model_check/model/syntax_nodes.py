"""Lists the nodes of a Python syntax tree."""

from __future__ import annotations

import ast
from functools import cache

# Beside strings and numbers, also the operators, and whether a name is read or written.
_FIELDS_WITHOUT_NODES = frozenset(
    (
        *("arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "kwd_attrs"),
        *("level", "module", "op", "ops", "rest", "simple", "tag", "type_comment"),
    )
)
# These have the values of literals, and names as strings, where other types have nodes.
_TYPES_WITHOUT_NODES = (ast.Constant, ast.MatchSingleton, ast.Global, ast.Nonlocal)


def nodes_of(*roots: ast.AST, without: tuple[type[ast.AST], ...] = ()) -> list[ast.AST]:
    """Return the nodes below and including ``roots``, level by level, without operators.

    This is several times as fast as ``ast.walk``, which calls two generators for each node. Nodes
    of the types ``without`` are left out, with all below them.
    """
    found = [node for node in roots if not isinstance(node, without)]
    for node in found:
        # mypy takes a type for its instances, which need not be hashable.
        for name in _fields_with_nodes(type(node)):  # type: ignore[arg-type]
            value = getattr(node, name, None)
            if not value:
                continue
            if type(value) is list:
                # The default values of keywords and the keys of `{**other}` may be None.
                parts = filter(None, value)
                found += [part for part in parts if not isinstance(part, without)]
            elif isinstance(value, ast.AST) and not isinstance(value, without):
                found.append(value)
    return found


@cache
def _fields_with_nodes(kind: type[ast.AST]) -> tuple[str, ...]:
    if issubclass(kind, _TYPES_WITHOUT_NODES):
        return ()
    return tuple(name for name in kind._fields if name not in _FIELDS_WITHOUT_NODES)
