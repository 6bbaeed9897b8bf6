"""Finds the expressions that certainly run when a Python model loads, without executing it.

Triton imports the file, creates a ``TritonPythonModel`` and calls ``auto_complete_config`` and
``initialize``. What stands in a branch, a loop, a ``try`` or after a possible ``return`` may not
run, so nothing of it is certain.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from triton_model_check.model.syntax_nodes import nodes_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LEAVES_QUIETLY = (ast.Return, ast.Break, ast.Continue)
_LEAVES = (*_LEAVES_QUIETLY, ast.Raise)
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.Match)


def nodes_at_import(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes that certainly run when the module is imported, before Python 3.14.

    These are those of the module, of its classes, and of the decorators, default values and
    annotations of its functions. Annotations do not run with ``from __future__ import
    annotations``, nor from Python 3.14 on.
    """
    are_lazy = any(
        isinstance(statement, ast.ImportFrom)
        and statement.module == "__future__"
        and any(alias.name == "annotations" for alias in statement.names)
        for statement in tree.body
    )
    yield from _nodes_of_body(tree.body, has_annotations=not are_lazy)


def nodes_of_call(
    function: ast.FunctionDef, functions: Mapping[str, ast.FunctionDef]
) -> Iterator[ast.AST]:
    """Yield the nodes that certainly run when a function is called.

    Those of the functions that it calls are among them: ``functions`` has methods by names such as
    ``self.load``, and the functions of the module by their own.
    """
    # The annotations of local variables never run.
    nodes = _nodes_of_body(function.body, has_annotations=False)
    yield from _following_calls(nodes, function, functions)


def nodes_of_request(
    execute: ast.FunctionDef, requests: str, functions: Mapping[str, ast.FunctionDef]
) -> Iterator[ast.AST]:
    """Yield the nodes that certainly run at each call of ``execute``.

    ``requests`` is the name of its argument, a list that is never empty: a loop over it runs.
    """
    yield from _following_calls(_nodes_with_loops(execute.body, requests), execute, functions)


def _following_calls(
    nodes: Iterator[ast.AST],
    function: ast.FunctionDef,
    functions: Mapping[str, ast.FunctionDef],
) -> Iterator[ast.AST]:
    """Yield the nodes of a function, and those of the functions that they certainly call."""
    waiting, seen = [nodes], {id(function)}
    for nodes_of_one in waiting:
        for node in nodes_of_one:
            yield node
            called = functions.get(_called_name(node))
            if called is not None and id(called) not in seen:
                seen.add(id(called))
                waiting.append(_nodes_of_body(called.body, has_annotations=False))


def _nodes_with_loops(body: Sequence[ast.stmt], requests: str) -> Iterator[ast.AST]:
    """Yield the nodes that certainly run, also in loops over the requests."""
    for statement in body:
        for node in _nodes_of_statement(statement, has_annotations=False):
            yield node
            if isinstance(node, ast.ListComp) and _is_over_requests(node, requests):
                yield from _expressions(node.elt)
        if isinstance(statement, ast.For) and _is_list_of_requests(statement.iter, requests):
            yield from _nodes_with_loops(statement.body, requests)
        # A request for which something is raised fails too, so that what follows may count.
        if isinstance(statement, ast.Raise) or _may_leave(statement, _LEAVES_QUIETLY):
            return


def _is_over_requests(node: ast.ListComp, requests: str) -> bool:
    generator = node.generators[0]
    is_plain = len(node.generators) == 1 and not generator.ifs
    return is_plain and _is_list_of_requests(generator.iter, requests)


def _is_list_of_requests(node: ast.expr, requests: str) -> bool:
    """Whether an expression is ``requests`` or ``enumerate(requests)``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        is_enumerated = node.func.id == "enumerate" and len(node.args) == 1
        return is_enumerated and _is_list_of_requests(node.args[0], requests)
    return isinstance(node, ast.Name) and node.id == requests


def functions_of(tree: ast.Module, model_class: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """Return what :func:`nodes_of_call` follows: the module's functions and the class's methods."""
    found: dict[str, ast.FunctionDef] = {}
    for prefix, body in (("self.", model_class.body), ("", tree.body)):
        for statement in body:
            if isinstance(statement, ast.FunctionDef) and _is_plain(statement):
                found[prefix + statement.name] = statement
    return found


def _is_plain(function: ast.FunctionDef) -> bool:
    """Whether calling this function runs its body, and nothing else."""
    if function.decorator_list:
        return False
    nodes = nodes_of(*function.body, without=_SCOPES)
    return not any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes)


def _called_name(node: ast.AST) -> str:
    """Return the name of a called function as :func:`functions_of` writes it, or ``""``."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return f"{function.value.id}.{function.attr}"
    return ""


def _nodes_of_body(body: Sequence[ast.stmt], *, has_annotations: bool) -> Iterator[ast.AST]:
    for statement in body:
        yield from _nodes_of_statement(statement, has_annotations=has_annotations)
        if _may_leave(statement):
            return


def _may_leave(statement: ast.stmt, leaves: tuple[type[ast.stmt], ...] = _LEAVES) -> bool:
    """Whether the statements after this one may not run, although no error occurs."""
    if not isinstance(statement, (*_BRANCHES, ast.With, ast.AsyncWith)):
        return isinstance(statement, leaves)
    return any(isinstance(node, leaves) for node in nodes_of(statement, without=_SCOPES))


def _nodes_of_statement(statement: ast.stmt, *, has_annotations: bool) -> Iterator[ast.AST]:
    """Yield the expressions that certainly run when a statement runs."""
    if isinstance(statement, _FUNCTIONS):
        yield from _nodes_of_definition(statement, has_annotations=has_annotations)
    elif isinstance(statement, ast.ClassDef):
        keywords = [keyword.value for keyword in statement.keywords]
        yield from _expressions(*statement.decorator_list, *statement.bases, *keywords)
        yield from _nodes_of_body(statement.body, has_annotations=has_annotations)
    elif isinstance(statement, ast.If | ast.While):
        yield from _expressions(statement.test)
    elif isinstance(statement, ast.For):
        yield from _expressions(statement.iter)
    elif isinstance(statement, ast.With):
        yield from _expressions(statement.items[0].context_expr)
    elif isinstance(statement, ast.AnnAssign):
        yield from _expressions(statement.value)
        if has_annotations:
            yield from _expressions(statement.annotation)
    elif not isinstance(statement, (*_BRANCHES, ast.AsyncWith)):
        yield from _expressions(statement)


def _nodes_of_definition(
    function: ast.FunctionDef | ast.AsyncFunctionDef, *, has_annotations: bool
) -> Iterator[ast.AST]:
    """Yield the expressions that run when a function is defined, not called."""
    arguments = function.args
    yield from _expressions(
        *function.decorator_list, *arguments.defaults, *filter(None, arguments.kw_defaults)
    )
    # The annotations of a function with type parameters run when they are read.
    if has_annotations and not getattr(function, "type_params", ()):
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        extra = filter(None, (arguments.vararg, arguments.kwarg))
        yield from _expressions(*(each.annotation for each in (*every, *extra)), function.returns)


def _expressions(*roots: ast.AST | None) -> Iterator[ast.AST]:
    """Yield the nodes below and including ``roots`` that run whenever the roots do."""
    waiting = [root for root in reversed(roots) if root is not None]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Lambda):
            continue
        yield node
        waiting += reversed([*_parts_that_run(node)])


def _parts_that_run(node: ast.AST) -> Iterable[ast.AST]:
    """Return the parts of an expression that certainly run."""
    if isinstance(node, ast.IfExp | ast.Assert):
        return (node.test,)
    if isinstance(node, ast.BoolOp):
        return (node.values[0],)
    if isinstance(node, ast.Compare):
        return (node.left, node.comparators[0])
    if isinstance(node, _COMPREHENSIONS):
        return (node.generators[0].iter,)
    # The value of a type alias, of Python 3.12, is computed when it is asked for.
    return () if type(node).__name__ == "TypeAlias" else ast.iter_child_nodes(node)
