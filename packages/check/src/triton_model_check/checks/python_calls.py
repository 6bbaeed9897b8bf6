"""How a Python model calls other models, without executing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.python_faults import Fault
from triton_model_check.checks.rules import Problem, warning
from triton_model_check.model.python_objects import BackendObjects
from triton_model_check.model.python_source import PythonSource

_README = 'triton python_backend README, "Business Logic Scripting"'


class _Call(NamedTuple):
    """A request to another model, with what is written in it."""

    node: ast.Call
    model_name: str
    version: int | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@warning("python-called-tensor", scope="python", source=_README, needs_files=True)
def called_tensor(model: ModelUnderCheck) -> Iterator[Problem]:
    """A request to another model names inputs, outputs and a version that this model has.

    Otherwise Triton answers "unexpected inference input", "unexpected inference output" or that the
    model is not ready. The rule looks at names that are strings, and skips called models whose
    backend may complete their tensors. What runs at each request is an error of
    ``python-request-fails``.
    """
    for source in model.python_sources:
        each = source.model_class
        for fault in faults_of_called_models(model, source):
            if each is None or not each.runs_at_each_request(fault.node):
                yield fault.problem(source)


def faults_of_called_models(model: ModelUnderCheck, source: PythonSource) -> Iterator[Fault]:
    """Yield the requests that the called model, which is in the repository, refuses."""
    for call in _calls(source):
        called = model.context.models.get(call.model_name)
        if called is None:
            continue
        versions = called.folder.version_directories
        if call.version is not None and call.version > 0 and str(call.version) not in versions:
            message = f'model "{call.model_name}" has no version {call.version}'
            yield Fault(call.node, message, f"use one of {quoted(sorted(versions))}, or -1")
        if called.config is None or called.completes_tensors:
            continue
        for side, names in (("input", call.inputs), ("output", call.outputs)):
            known = [tensor.name for tensor in getattr(called.config, side)]
            for name in names if known else ():
                if name not in known:
                    hint = did_you_mean(name, known, f"use one of {quoted(sorted(known))}")
                    message = f'model "{call.model_name}" has no {side} "{name}"'
                    yield Fault(call.node, message, hint)


def faults_of_answers(source: PythonSource) -> Iterator[Fault]:
    """Yield what is done with the answer of another model that certainly fails."""
    objects, index = source.objects, source.index
    if objects is None or index is None:
        return
    coroutines = {
        id(node) for function in index.of(ast.AsyncFunctionDef) for node in ast.walk(function)
    }
    for node in index.of(ast.Call):
        function = node.func
        if not isinstance(function, ast.Attribute) or function.attr != "async_exec":
            continue
        is_request = objects.kind(function.value) == "InferenceRequest"
        if is_request and id(node) not in coroutines:
            message = "async_exec needs an event loop, which `def execute` does not have"
            yield Fault(node, message, "write exec(), or `async def execute` and await")
    yield from _absent_outputs(source, objects)


def _absent_outputs(source: PythonSource, objects: BackendObjects) -> Iterator[Fault]:
    """Yield what is read of the ``None`` that stands for an output that was not requested."""
    assert source.index is not None
    calls = {id(call.node): call for call in _calls(source)}
    lookups = {id(call): call for call in source.index.calls("get_output_tensor_by_name")}
    for node in source.index.of(ast.Attribute):
        lookup = lookups.get(id(objects.value(node.value)))
        if lookup is None or len(lookup.args) != 2:
            continue
        answer = objects.value(lookup.args[0])
        name = _string(objects.value(lookup.args[1]))
        sending = answer.func if isinstance(answer, ast.Call) else None
        if not isinstance(sending, ast.Attribute) or sending.attr != "exec":
            continue
        call = calls.get(id(objects.value(sending.value)))
        if call is not None and name is not None and call.outputs and name not in call.outputs:
            message = f"'NoneType' object has no attribute '{node.attr}'"
            hint = did_you_mean(name, call.outputs, f"use one of {quoted(call.outputs)}")
            yield Fault(node, f'{message}: the call requests no output "{name}"', hint)


def _calls(source: PythonSource) -> Iterator[_Call]:
    """Yield each request for a model whose name is known."""
    index = source.index
    for node in index.calls("InferenceRequest") if index is not None else ():
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        name = _string(_value(source, given.get("model_name")))
        if name is None:
            continue
        outputs = _elements(source, given.get("requested_output_names"))
        strings = [_string(_value(source, element)) for element in outputs]
        is_known = None not in strings
        version = given.get("model_version")
        number = version.value if isinstance(version, ast.Constant) else None
        yield _Call(
            node,
            name,
            number if type(number) is int else None,
            tuple(_input_names(source, given.get("inputs"))),
            tuple(text for text in strings if text is not None) if is_known else (),
        )


def _input_names(source: PythonSource, inputs: ast.expr | None) -> Iterator[str]:
    """Yield the names of the tensors in a list, where a string names them."""
    assert source.index is not None
    places = {id(call): 0 for call in source.index.calls("Tensor")}
    places |= {id(call): 1 for call in source.index.calls("get_input_tensor_by_name")}
    for element in _elements(source, inputs):
        call = _value(source, element)
        place = places.get(id(call))
        if isinstance(call, ast.Call) and place is not None and len(call.args) > place:
            name = _string(_value(source, call.args[place]))
            if name is not None:
                yield name


def _elements(source: PythonSource, node: ast.expr | None) -> list[ast.expr]:
    """Return the elements of a list that nothing changes; none if they are not known."""
    if isinstance(node, ast.List):
        return node.elts
    if node is None or source.objects is None:
        return []
    return source.objects.elements(node) or []


def _value(source: PythonSource, node: ast.expr | None) -> ast.expr | None:
    return node if node is None or source.objects is None else source.objects.value(node)


def _string(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
