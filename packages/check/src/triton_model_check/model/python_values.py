"""What a variable or an attribute of ``self`` is, if a Python model assigns it once."""

from __future__ import annotations

import ast

from triton_model_check.model.python_contract import ModuleIndex


def only_value(index: ModuleIndex, value: ast.expr) -> ast.expr:
    """Return what a variable or attribute is assigned if that is one thing only; else itself."""
    name = _name_of(value)
    if name is None:
        return value
    nodes = (*index.of(ast.Name), *index.of(ast.Attribute))
    stores = [
        node
        for node in nodes
        if _name_of(node) == name and not isinstance(node.ctx, ast.Load)  # type: ignore[attr-defined]
    ]
    arguments = [node for node in index.of(ast.arg) if node.arg == name]
    values = [node.value for node in index.of(ast.Assign) if node.targets == stores]
    return values[0] if len(stores) == len(values) == 1 and not arguments else value


def _name_of(node: ast.AST) -> str | None:
    """Return the name of a variable or of an attribute of ``self``."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None
