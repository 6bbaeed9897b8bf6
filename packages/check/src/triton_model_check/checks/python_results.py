"""What ``execute`` of a Python model returns, without executing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any

from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule
from triton_model_check.model.python_class import ModelClass
from triton_model_check.model.python_functions import (
    Function,
    is_generator,
    kind_of,
    signature_of,
    values_returned,
)
from triton_model_check.model.python_objects import ARRAY, NONE, BackendObjects
from triton_model_check.model.python_source import PythonSource

_STUB = "triton python_backend src/pb_stub.cc"
_WRONG_ELEMENTS = {"Tensor": "tensors", ARRAY: "arrays", "list": "lists", "dict": "dictionaries"}
_rule = partial(rule, scope="python")
# Expressions that are neither a list of responses nor None.
_NO_LIST = (
    ast.Dict,
    ast.DictComp,
    ast.GeneratorExp,
    ast.JoinedStr,
    ast.Set,
    ast.SetComp,
    ast.Tuple,
)
_NO_LIST_TYPES = ("tuple", "dict", "set", "str", "zip", "map")


@_rule(
    "python-execute-signature",
    rejects=False,
    source=f"{_STUB}, Stub::ProcessRequests",
    hint="write execute(self, requests)",
)
def execute_signature(model: ModelUnderCheck) -> Iterator[Problem]:
    """Triton can call ``execute`` with the list of requests.

    Without ``self``, or with more required arguments, the model loads and ``/ping`` succeeds, but
    every request fails with ``TypeError``.
    """
    for source, method in _executes(model):
        signature = signature_of(method, is_bound=kind_of(method) != "static")
        if not signature.accepts(1):
            message = "Triton calls execute with 1 argument, which it does not take"
            yield _at(source, method, message)


@_rule(
    "python-execute-result",
    rejects=False,
    source=f"{_STUB}, Stub::ProcessReturnedResponses",
    hint="return a list with one pb_utils.InferenceResponse for each request",
)
def execute_result(model: ModelUnderCheck) -> Iterator[Problem]:
    """``execute`` returns a list of responses, or ``None`` if the model is decoupled.

    Otherwise the model loads and ``/ping`` succeeds, but every request fails. The rule reports a
    method of which every ``return`` is wrong, and skips one that only contains ``return []``.
    """
    policy = getattr(model.config, "model_transaction_policy", None)
    is_decoupled = policy is not None and policy.decoupled
    for source, method in _executes(model):
        # A decoupled model has sent its responses when Triton finds out that it got a generator.
        may_yield = b"yield" in source.content and not is_decoupled
        if may_yield and is_generator(method):
            yield _at(source, method, "execute contains yield, so that it returns no list")
            continue

        objects = source.objects
        assert objects is not None
        values = values_returned(method)
        may_send = b"get_response_sender" in source.content
        found = [_wrong_result(value, objects, method, is_decoupled, may_send) for value in values]
        if not found or not all(found):
            continue

        hint = None
        if is_decoupled:
            hint = "send responses with get_response_sender(), and return None"
        yield _at(source, values[0], f"execute returns {found[0]}", hint)


def _wrong_result(
    value: ast.expr | None,
    objects: BackendObjects,
    method: Function,
    is_decoupled: bool,
    may_send: bool,
) -> str | None:
    """Return what a ``return`` returns, or ``None`` if Triton may accept it."""
    if value is None:
        return None
    if isinstance(value, ast.List | ast.ListComp) and is_decoupled:
        return "a list, but the model is decoupled"
    if objects.kind(value) == "InferenceResponse":
        return "one InferenceResponse in place of a list"
    elements = _elements_of(value, objects, method)
    if elements is not None:
        return _wrong_elements(value, elements, objects, method, may_send)
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        return _wrong_element(value, objects, method)
    return "no list" if _is_no_list(value) else None


def _is_no_list(value: ast.expr) -> bool:
    """Whether an expression is certainly neither a list nor ``None``."""
    if isinstance(value, ast.Constant):
        return value.value is not None
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in _NO_LIST_TYPES
    return isinstance(value, _NO_LIST)


def _elements_of(
    value: ast.expr, objects: BackendObjects, method: Function
) -> list[ast.expr] | None:
    """Return the expressions in a list, or ``None`` if they are not known."""
    if isinstance(value, ast.ListComp):
        return [value.elt]
    if isinstance(value, ast.List):
        return value.elts
    return objects.appended(method, value.id) if isinstance(value, ast.Name) else None


def _wrong_elements(
    value: ast.expr,
    elements: list[ast.expr],
    objects: BackendObjects,
    method: Function,
    may_send: bool,
) -> str | None:
    """Return what is wrong with the elements of the list that ``execute`` returns."""
    if not elements:
        is_literal = isinstance(value, ast.List) and len(method.body) > 1
        return "an empty list, which has no response" if is_literal else None
    kinds = dict.fromkeys(objects.kind(element) for element in elements)

    # What is appended may stand in a branch that does not run; a literal has all its elements.
    if not isinstance(value, ast.List) and len(kinds) > 1:
        return None
    for kind in kinds:
        if kind in _WRONG_ELEMENTS:
            return f"a list of {_WRONG_ELEMENTS[kind]} in place of responses"
        # A model that answers with senders may put None in the place of a response.
        if kind == NONE and not may_send:
            return "a list of None in place of responses"
    return None


def _wrong_element(value: ast.Subscript, objects: BackendObjects, method: Function) -> str | None:
    """Return what one element of a list of responses is."""
    name = value.value.id if isinstance(value.value, ast.Name) else None
    appended = objects.appended(method, name, more_reads=1) if name is not None else None
    kinds = {objects.kind(element) for element in appended or ()}
    return "one InferenceResponse in place of a list" if kinds == {"InferenceResponse"} else None


# --- shared ---------------------------------------------------------------------------------------


def _executes(model: ModelUnderCheck) -> Iterator[tuple[PythonSource, Function]]:
    """Yield the ``execute`` of each class that is written in its file."""
    for source in model.python_sources:
        each: ModelClass | None = source.model_class
        method = each.method("execute") if each is not None else None
        if method is not None and kind_of(method) is not None:
            yield source, method


def _at(source: PythonSource, node: Any, message: str, hint: str | None = None) -> Problem:
    return Problem(message, path=source.path, line=node.lineno, hint=hint)
