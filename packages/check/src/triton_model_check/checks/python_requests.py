"""What a Python model does with a request, without executing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.python_call_faults import (
    ONE_CALL_EACH,
    ONE_NAME,
    faults_of_calls,
    lookups_without_name,
    reads_without_name,
)
from triton_model_check.checks.rules import Problem, warning
from triton_model_check.model.python_functions import Function
from triton_model_check.model.python_source import PythonSource
from triton_model_check.model.syntax_nodes import nodes_of

_STUB = "triton python_backend src/pb_stub.cc"
_warning = partial(warning, scope="python")


@_warning("python-response", source=f"{_STUB}, PYBIND11_EMBEDDED_MODULE")
def response(model: ModelUnderCheck) -> Iterator[Problem]:
    """Tensors, responses and requests are created with the arguments that their classes take.

    Otherwise the call fails with ``TypeError`` in place of what the model wanted to answer: the
    error of a response is a ``TritonError``, a tensor has a name and a NumPy array, which have no
    keywords from 21.08 on. ``get_input_tensor_by_name`` takes a request and one name, and returns
    ``None`` for a list of names. Calls of other models have the argument ``decoupled`` from 23.03
    on. What certainly runs is an error of ``python-object`` or ``python-request-fails``.
    """
    for source in model.python_sources:
        each = source.model_class
        for fault in faults_of_calls(model, source):
            is_certain = each is not None and (
                each.runs(fault.node) or each.runs_at_each_request(fault.node)
            )
            if not is_certain:
                yield fault.problem(source)
        read = {id(lookup) for _, lookup in reads_without_name(source)}
        for lookup in lookups_without_name(source):
            if id(lookup) not in read:
                message = f"{ONE_NAME}; this call returns None"
                yield _at(source, lookup, message, ONE_CALL_EACH)


@_warning(
    "python-metric-family",
    source="observed with triton server 2.51; triton core src/metric_family.cc",
    hint="keep the family, for example in self, as long as its metrics are used",
    since="23.05",
)
def metric_family(model: ModelUnderCheck) -> Iterator[Problem]:
    """A ``MetricFamily`` is kept as long as its metrics.

    Python deletes a family that only a local variable has when the function returns. Each use of
    its metrics then fails with "the corresponding 'MetricFamily' has been deleted".
    """
    for source in model.python_sources:
        if source.index is None or b"MetricFamily" not in source.content:
            continue
        families = {id(call) for call in source.index.calls("MetricFamily")}
        for function in source.index.functions:
            yield from _lost_families(source, function, families)


def _lost_families(
    source: PythonSource, function: Function, families: set[int]
) -> Iterator[Problem]:
    """Yield each family that a function creates and loses, though it keeps a metric of it.

    ``families`` has the identities of the calls that create a family.
    """
    nodes = nodes_of(*function.body)
    parents = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
    for node in nodes:
        if id(node) in families:
            metric = _metric_of(node, parents)
            if metric is not None and _is_kept(metric, parents):
                yield _at(source, node, "nothing keeps this MetricFamily")

        name = _variable_of_family(node, families)
        if name is not None and _only_metrics_are_kept(name, nodes, parents):
            yield _at(source, node, "only a local variable has this MetricFamily")


def _variable_of_family(node: ast.AST, families: set[int]) -> str | None:
    """Return the name to which a statement assigns a new family, or ``None``."""
    if not isinstance(node, ast.Assign) or id(node.value) not in families:
        return None
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
        return None
    return node.targets[0].id


def _only_metrics_are_kept(
    name: str, nodes: Sequence[ast.AST], parents: dict[int, ast.AST]
) -> bool:
    """Whether a variable is used only to create metrics, and one of them outlives the function."""
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    reads = [use for use in uses if isinstance(use.ctx, ast.Load)]
    is_assigned_once = len(reads) == len(uses) - 1
    if not is_assigned_once or _is_shared(nodes):
        return False

    metrics = [_metric_of(read, parents) for read in reads]
    return all(metrics) and any(_is_kept(metric, parents) for metric in metrics)


def _is_shared(nodes: Sequence[ast.AST]) -> bool:
    """Whether another function may have the local variables, or the module has them."""
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Global, ast.Nonlocal)
    return any(isinstance(node, scopes) for node in nodes)


def _metric_of(family: ast.AST, parents: dict[int, ast.AST]) -> ast.AST | None:
    """Return the call of ``.Metric`` on an expression, or ``None``."""
    attribute = parents.get(id(family))
    if not isinstance(attribute, ast.Attribute) or attribute.attr != "Metric":
        return None
    call = parents.get(id(attribute))
    return call if isinstance(call, ast.Call) and call.func is attribute else None


def _is_kept(metric: ast.AST | None, parents: dict[int, ast.AST]) -> bool:
    """Whether a metric is returned or assigned to an attribute, so that it outlives its family."""
    parent = parents.get(id(metric))
    if isinstance(parent, ast.Assign):
        return any(isinstance(target, ast.Attribute) for target in parent.targets)
    return isinstance(parent, ast.Return)


@_warning(
    "python-response-sender",
    source=f"{_STUB}, get_response_sender",
    before="22.05",
    hint="use an image of 22.05 or later",
)
def response_sender(model: ModelUnderCheck) -> Iterator[Problem]:
    """Requests have ``get_response_sender`` from image 22.05 on.

    In an older image the call fails with ``AttributeError``.
    """
    for source in model.python_sources:
        if source.index is None:
            continue
        for node in source.index.of(ast.Attribute):
            if node.attr == "get_response_sender":
                yield _at(source, node, "requests have no get_response_sender in this image")


def _at(source: PythonSource, node: Any, message: str, hint: str | None = None) -> Problem:
    return Problem(message, path=source.path, line=node.lineno, hint=hint)
