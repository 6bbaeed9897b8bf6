"""How the functions of a Python model are called, and what they return."""

from __future__ import annotations

import ast
from typing import Literal, NamedTuple

from triton_model_check.model.syntax_nodes import nodes_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
"""What is inside a function and has variables of its own."""


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


def values_returned(function: Function) -> list[ast.expr | None]:
    """Return what each ``return`` of a function returns."""
    nodes = nodes_of(*function.body, without=SCOPES)
    return [node.value for node in nodes if isinstance(node, ast.Return)]


def is_generator(function: Function) -> bool:
    """Whether calling the function returns a generator."""
    nodes = nodes_of(*function.body, without=SCOPES)
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes)
