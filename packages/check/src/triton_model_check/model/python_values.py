"""What a variable or an attribute of ``self`` is, if a Python model assigns it once."""

from __future__ import annotations

import ast

from triton_model_check.model.python_contract import ModelClass, ModuleIndex


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


def is_call_of(index: ModuleIndex, value: ast.expr, name: str) -> bool:
    """Whether an expression certainly is a call of a class or function of the backend."""
    value = only_value(index, value)
    return any(call is value for call in index.calls(name))


def keeps_self(model_class: ModelClass) -> bool:
    """Whether the class passes ``self`` to nothing, which could then add attributes to it."""
    owners = {id(node.value) for node in model_class.index.of(ast.Attribute)}
    uses = [node for node in model_class.index.of(ast.Name) if node.id == "self"]
    return all(id(node) in owners and isinstance(node.ctx, ast.Load) for node in uses)
