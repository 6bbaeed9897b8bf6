"""Lists the small changes ("mutations") that can be made to a Python source file."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

__all__ = ["Mutation", "Statement", "statements"]

_IDENTIFIER = re.compile(r"[\w./:*@-]*")
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_DROPPED = (ast.AugAssign, ast.Raise, ast.Delete, ast.Continue, ast.Break)


@dataclass(frozen=True)
class Mutation:
    """Replaces the source between two positions, given as (line from 1, byte from 0)."""

    start: tuple[int, int]
    end: tuple[int, int]
    replacement: str
    description: str

    def apply(self, source: bytes) -> bytes:
        """Return the source with this mutation."""
        lines = source.splitlines(keepends=True)
        before = b"".join(lines[: self.start[0] - 1]) + lines[self.start[0] - 1][: self.start[1]]
        after = lines[self.end[0] - 1][self.end[1] :] + b"".join(lines[self.end[0] :])
        return before + self.replacement.encode() + after


@dataclass(frozen=True)
class Statement:
    """A simple statement, or the header of a compound one, in the function or class that contains it."""

    node: ast.stmt
    scope: str
    """Qualified name of the function or class; empty at the top of the module."""
    in_function: bool

    @cached_property
    def lines(self) -> range:
        """The line numbers that the statement, without its nested statements, covers."""
        body = getattr(self.node, "body", None)
        end = body[0].lineno - 1 if body else self.node.end_lineno or self.node.lineno
        return range(self.node.lineno, max(end, self.node.lineno) + 1)

    @cached_property
    def text(self) -> str:
        """The statement in a form that does not depend on its place or layout."""
        node = copy.copy(self.node)
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            if isinstance(getattr(node, field, None), list):
                setattr(node, field, [])
        return ast.unparse(node)

    @cached_property
    def mutations(self) -> list[Mutation]:
        """Every mutation of this statement, in the order of the source."""
        return [
            *_of_statement(self.node),
            *(m for node in _expressions(self.node) for m in _of_expression(node)),
        ]


def statements(source: str) -> list[Statement]:
    """List the statements of a module that have at least one mutation."""
    module = ast.parse(source)
    skipped = {number for number, line in enumerate(source.splitlines(), 1) if "pragma: no cover" in line}
    found = _statements(module.body, "", False)
    return [s for s in found if s.mutations and not skipped.intersection(s.lines)]


def _statements(body: list[ast.stmt], scope: str, in_function: bool) -> Iterator[Statement]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_for_type_checkers(node):
            continue
        yield Statement(node, scope, in_function)
        inner, is_function = scope, in_function
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{scope}.{node.name}".lstrip(".")
            is_function = not isinstance(node, ast.ClassDef)
        for nested in _bodies(node):
            yield from _statements(nested, inner, is_function)


def _bodies(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        if nested := getattr(node, field, None):
            yield nested
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def _is_for_type_checkers(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith("TYPE_CHECKING")
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id in ("__all__", "__slots__") for target in targets)


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Walk a statement's expressions: not nested statements, annotations, docstring or decorators."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            # The positions of what is inside an f-string are wrong before Python 3.12.
            if not isinstance(child, ast.AST) or isinstance(
                child, ast.stmt | ast.JoinedStr | ast.ExceptHandler
            ):
                continue
            if isinstance(child, ast.match_case) or _is_docstring(node, child):
                continue
            if isinstance(child, ast.expr):
                yield child
            yield from _expressions(child)


def _is_docstring(parent: ast.AST, child: ast.AST) -> bool:
    return isinstance(parent, ast.Expr) and isinstance(child, ast.Constant)


def _of_statement(node: ast.stmt) -> Iterator[Mutation]:
    if isinstance(node, ast.Return) and node.value and not _is_constant(node.value, None):
        yield _replaced(node, "return None", "return None instead")
    if isinstance(node, ast.If | ast.While | ast.Assert):
        yield _replaced(node.test, f"(not ({ast.unparse(node.test)}))", "negate the condition")
    is_call = isinstance(node, ast.Expr) and isinstance(
        node.value, ast.Call | ast.Await | ast.Yield | ast.YieldFrom
    )
    is_write = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name | ast.Tuple)
    if is_call or is_write or isinstance(node, _DROPPED):
        yield _replaced(node, "pass", "drop the statement")


def _of_expression(node: ast.expr) -> Iterator[Mutation]:
    match node:
        case ast.Compare(ops=[operator]):
            for other in _COMPARISONS[type(operator)]:
                yield _changed(node, "flip the comparison", ops=[other()])
        case ast.BoolOp(op=operator):
            yield _changed(node, "swap and/or", op=ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _replaced(node, f"({ast.unparse(operand)})", "remove not")
        case ast.BinOp(op=operator) if type(operator) in _ARITHMETIC:
            yield _changed(node, "change the arithmetic", op=_ARITHMETIC[type(operator)]())
        case ast.IfExp(test=test):
            yield _replaced(test, f"(not ({ast.unparse(test)}))", "negate the condition")
        case ast.Constant(value=value):
            yield from _of_constant(node, value)
        case ast.Call():
            yield from _of_call(node)
        case ast.List(elts=elements) | ast.Set(elts=elements) | ast.Tuple(elts=elements, ctx=ast.Load()):
            yield from _of_elements(node, elements)
        case ast.Dict(keys=keys, values=values):
            for i, key in enumerate(keys):
                name = ast.unparse(key) if key else "**"
                rest = {"keys": keys[:i] + keys[i + 1 :], "values": values[:i] + values[i + 1 :]}
                yield _changed(node, f"drop the item {name}", **rest)


def _of_constant(node: ast.expr, value: Any) -> Iterator[Mutation]:
    match value:
        case bool():
            yield _replaced(node, str(not value), f"{value} to {not value}")
        case None:
            yield _replaced(node, "True", "None to True")
        case int():
            for other in (value + 1, value - 1):
                yield _replaced(node, f"({other})", f"{value} to {other}")
        case float():
            yield _replaced(node, repr(value * 2 + 1), f"{value} to {value * 2 + 1}")
        case str() if _IDENTIFIER.fullmatch(value):
            yield _replaced(node, repr(value + "mutant"), f"change the string {value!r}")


def _of_call(node: ast.Call) -> Iterator[Mutation]:
    if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        other = _FUNCTIONS[node.func.id]
        yield _replaced(node.func, other, f"{node.func.id} to {other}")
    for i, keyword in enumerate(node.keywords):
        rest = node.keywords[:i] + node.keywords[i + 1 :]
        yield _changed(node, f"drop the argument {keyword.arg or '**'}", keywords=rest)


def _of_elements(node: ast.expr, elements: list[ast.expr]) -> Iterator[Mutation]:
    if isinstance(node, ast.Set) and len(elements) == 1:
        return
    for i, element in enumerate(elements):
        rest = elements[:i] + elements[i + 1 :]
        yield _changed(node, f"drop the element {ast.unparse(element)[:40]}", elts=rest)


def _changed(node: ast.expr, description: str, **fields: Any) -> Mutation:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return _replaced(node, f"({ast.unparse(other)})", description)


def _replaced(node: ast.expr | ast.stmt, replacement: str, description: str) -> Mutation:
    end = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return Mutation((node.lineno, node.col_offset), end, replacement, description)


def _is_constant(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value
