"""Finds what the compiler of Python refuses although the parser accepts it.

The compiler reads a syntax tree as slowly as the parser writes it, and most models have none of the
statements that it may refuse. Those need no compiler.

Source: CPython, Python/compile.c, Python/codegen.c, Python/symtable.c and Python/future.c, of 3.10
to 3.14.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from triton_model_check.model.module_index import ModuleIndex
from triton_model_check.model.syntax_nodes import nodes_of

# Of these, the compiler refuses none for itself. Another type, of a newer Python too, may be
# refused, for example `await`, `yield`, `global`, `break`, `*names`, `:=` and `match`.
_NEVER_REFUSED = frozenset(
    (
        *(ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete, ast.Pass),
        *(ast.Assert, ast.Raise, ast.If, ast.IfExp, ast.Import, ast.alias, ast.withitem),
        *(ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.keyword, ast.arg),
        *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.JoinedStr, ast.FormattedValue),
        *(ast.List, ast.Tuple, ast.Set, ast.Dict, ast.comprehension),
        *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    )
)
_LOOKED_AT = frozenset(
    (
        *(ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.arguments, ast.Call, ast.Return),
        *(ast.ImportFrom, ast.For, ast.While, ast.With, ast.Try, ast.ExceptHandler),
    )
)
_BLOCKS = (ast.For, ast.While, ast.With, ast.Try)
_FEWEST_BLOCKS = 10  # 20 nested blocks are too many, and a `try` with `finally` counts twice
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def compiler_fault(index: ModuleIndex, content: bytes) -> SyntaxError | None:
    """Return what the compiler refuses, for example ``await`` outside a coroutine."""
    if not _may_be_refused(index, content):
        return None
    try:
        compile(index.tree, "model.py", "exec", dont_inherit=True, optimize=0)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        pass  # The limits are those of this Python; the parser accepted the source.
    return None


def _may_be_refused(index: ModuleIndex, content: bytes) -> bool:
    """Whether the compiler of Python may refuse a file, and therefore has to read it."""
    if index.types - _NEVER_REFUSED - _LOOKED_AT:
        return True
    # Python normalizes other letters, so that `__debug__` has more than one form.
    if b"__debug__" in content or not content.isascii():
        return True
    if sum(len(index.of(block)) for block in _BLOCKS) >= _FEWEST_BLOCKS:
        return True
    return (
        any(node.is_async for node in index.of(ast.comprehension))
        or any(map(_has_special_import, index.of(ast.ImportFrom)))
        or any(map(_has_early_default, index.of(ast.Try)))
        or any(map(_repeats_a_name, _lists_of_names(index)))
        or _returns_outside_function(index)
    )


def _has_special_import(statement: ast.ImportFrom) -> bool:
    """Whether ``*`` may be inside a function, or a feature may be unknown or late."""
    return statement.module == "__future__" or statement.names[0].name == "*"


def _has_early_default(statement: ast.Try) -> bool:
    return any(handler.type is None for handler in statement.handlers[:-1])


def _lists_of_names(index: ModuleIndex) -> Iterator[list[str | None]]:
    """Yield the arguments of each function, and the keywords of each call and class."""
    for call in index.of(ast.Call):
        if call.keywords:
            yield [keyword.arg for keyword in call.keywords]
    for definition in index.of(ast.ClassDef):
        yield [keyword.arg for keyword in definition.keywords]
    for arguments in index.of(ast.arguments):
        named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        extra = filter(None, (arguments.vararg, arguments.kwarg))
        yield [argument.arg for argument in (*named, *extra)]


def _repeats_a_name(names: list[str | None]) -> bool:
    return len(set(names)) != len(names)


def _returns_outside_function(index: ModuleIndex) -> bool:
    if not index.of(ast.Return):
        return False
    # A class in a function is outside that function, too.
    outside = nodes_of(index.tree, *index.of(ast.ClassDef), without=(*_FUNCTIONS, ast.expr))
    return any(isinstance(node, ast.Return) for node in outside)
