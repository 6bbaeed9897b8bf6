"""What a Python model does with the backend's objects, and what fails at each request.

Only what certainly runs is an error: at load, or at each request. What may run is a warning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.python_call_faults import faults_of_calls
from triton_model_check.checks.python_calls import faults_of_answers, faults_of_called_models
from triton_model_check.checks.python_faults import Fault
from triton_model_check.checks.python_names import (
    NO_ATTRIBUTE,
    absent_attributes,
    absent_names,
)
from triton_model_check.checks.python_sources import classes_with_real_utils, release_of_names
from triton_model_check.checks.python_unbound import faults_of_unbound_names
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.facts.published import load
from triton_model_check.fixes.steps import string_meant
from triton_model_check.model.module_index import undefined_names
from triton_model_check.model.python_class import ModelClass
from triton_model_check.model.python_contract import is_outside_table, members_of
from triton_model_check.model.python_objects import Member
from triton_model_check.model.python_source import PythonSource

_STUB = "triton python_backend src/pb_stub.cc, PYBIND11_EMBEDDED_MODULE"
#: What people write in place of a member, as other libraries call it.
_MEANT = {
    ("Tensor", "numpy"): "write as_numpy()",
    ("Tensor", "dims"): "write shape(), or as_numpy().shape",
    ("Tensor", "dtype"): "write as_numpy().dtype, or triton_dtype()",
    ("InferenceRequest", "get_input"): 'write pb_utils.get_input_tensor_by_name(request, "NAME")',
    ("InferenceRequest", "execute"): "write exec(), or await async_exec()",
    ("InferenceRequest", "model_name"): 'keep args["model_name"] of initialize in self',
    ("Logger", "debug"): "write log_verbose(...)",
    ("Logger", "info"): "write log_info(...)",
    ("Logger", "warning"): "write log_warn(...)",
    ("Logger", "warn"): "write log_warn(...)",
    ("Logger", "error"): "write log_error(...)",
    ("Metric", "inc"): "write increment(...)",
    ("TritonError", "INVALID_ARGUMENT"): "write INVALID_ARG",
}
_rule = partial(rule, scope="python")


@_rule("python-object", source=_STUB)
def object_at_load(model: ModelUnderCheck) -> Iterator[Problem]:
    """While the model loads, it uses the objects of the backend as they are.

    A member that an object does not have is an ``AttributeError``, an argument that a class does
    not take a ``TypeError``, and the model does not load. The rule follows variables to which a
    function assigns objects of one class only.
    """
    for source, model_class in classes_with_real_utils(model):
        faults = (*_faults_of_objects(model, source), *faults_of_calls(model, source))
        for fault in faults:
            if model_class.runs(fault.node):
                yield fault.problem(source)


@warning("python-object-in-method", scope="python", source=_STUB)
def object_in_method(model: ModelUnderCheck) -> Iterator[Problem]:
    """Functions use only members that the backend's objects have in the release of the image.

    Otherwise the call fails with ``AttributeError``. The rule skips what is inside ``if`` and
    ``try``.
    """
    for source, model_class in classes_with_real_utils(model):
        for fault in _faults_of_objects(model, source):
            if model_class.may_run_later(fault.node):
                yield fault.problem(source)


@_rule("python-request-fails", rejects=False, source=f"{_STUB}; run with triton server 2.51")
def request_fails(model: ModelUnderCheck) -> Iterator[Problem]:
    """What ``execute`` runs at each request succeeds.

    The model loads and ``/ping`` succeeds, but every request fails with ``NameError``,
    ``AttributeError`` or ``TypeError``. The rule looks at statements outside conditions and
    ``try``, in ``execute``, its loop over the requests, and the functions that it calls.
    """
    for source, model_class in model.python_classes:
        seen: set[int] = set()
        for fault in _faults(model, source, model_class):
            is_new = fault.node.lineno not in seen
            if is_new and model_class.runs_at_each_request(fault.node):
                seen.add(fault.node.lineno)
                yield fault.problem(source)


def _faults(model: ModelUnderCheck, source: PythonSource, each: ModelClass) -> Iterator[Fault]:
    """Yield everything in a file that fails when it runs."""
    for name in undefined_names(each.index, source.content):
        hint = "define the name, import it, or fix its spelling"
        yield Fault(name, f"name '{name.id}' is not defined", hint)
    for node in absent_attributes(source, each):
        hint = "assign the attribute in initialize, or fix its spelling"
        yield Fault(node, NO_ATTRIBUTE.format(node.attr), hint)
    yield from faults_of_calls(model, source)
    yield from faults_of_unbound_names(source, each)
    yield from faults_of_called_models(model, source)
    yield from faults_of_answers(source)
    for other, model_class in classes_with_real_utils(model):
        if other is source:
            for node, message, hint in absent_names(model, model_class):
                yield Fault(node, message, hint)
            yield from _faults_of_objects(model, source)
            yield from (fault for _, fault in _absent_tensors(model, source, model_class))


def _faults_of_objects(model: ModelUnderCheck, source: PythonSource) -> Iterator[Fault]:
    """Yield each member that an object of the backend lacks, or that is not called."""
    objects, version = source.objects, release_of_names(model)
    if objects is None or is_outside_table(version):
        return
    for member in objects.members:
        known = members_of(member.class_name, version)
        # python-response-sender reports images without senders, wherever the name stands.
        is_sender = member.node.attr == "get_response_sender"
        if known and member.node.attr not in known and not is_sender:
            yield _absent_member(member, known)
    for node, method in objects.uncalled_methods:
        message = f"'{method}' is a method, which is not called"
        yield Fault(node, message, f"write {method}()")


def _absent_member(member: Member, known: frozenset[str]) -> Fault:
    """Return the message of the server, with the member that is meant."""
    name, attribute = member.class_name, member.node.attr
    subject = f"'c_python_backend_utils.{name}' object"
    if member.is_of_class:
        subject = f"type object 'c_python_backend_utils.{name}'"
    since = load("python_backend")["members"][name].get(attribute)
    hint = did_you_mean(attribute, known, f"use one of {quoted(sorted(known))}")
    if since is not None:
        hint = f"use an image of {since} or later"
    elif (name, attribute) in _MEANT:
        hint = _MEANT[name, attribute]
    return Fault(member.node, f"{subject} has no attribute '{attribute}'", hint)


def _absent_tensors(
    model: ModelUnderCheck, source: PythonSource, model_class: ModelClass
) -> Iterator[tuple[str, Fault]]:
    """Yield each input that the model does not have, and what is read of ``None`` in its place."""
    known = _known_inputs(model)
    objects = source.objects
    if known is None or objects is None:
        return

    used: set[str] = set()
    for other, tensors in model.python_tensors:
        if other is source:
            used |= {tensor.name for tensor in tensors if tensor.is_input}
    calls = [
        call for call in model_class.index.calls("get_input_tensor_by_name") if len(call.args) == 2
    ]
    # Nearly every model is right, and names its tensors with strings.
    if used <= known and all(isinstance(call.args[1], ast.Constant) for call in calls):
        return

    lookups = {id(call): call for call in calls}
    for node in model_class.index.of(ast.Attribute):
        call = lookups.get(id(objects.value(node.value)))
        if call is None:
            continue
        written = objects.value(call.args[1])
        name = _string(written)
        if name is None or name in known:
            continue
        message = (
            f"'NoneType' object has no attribute '{node.attr}': config.pbtxt has no input "
            f'"{name}"'
        )
        otherwise = f"use one of {quoted(sorted(known))}, or add it to config.pbtxt"
        hint = did_you_mean(name, sorted(known), otherwise, used=used)
        fix = string_meant(name, hint, written.lineno, used=used)
        yield name, Fault(node, message, hint, fix)


def inputs_that_fail(model: ModelUnderCheck, source: PythonSource) -> set[str]:
    """Return the names of inputs of which ``python-request-fails`` reports that they are absent."""
    each = source.model_class
    if each is None:
        return set()
    return {
        name
        for name, fault in _absent_tensors(model, source, each)
        if each.runs_at_each_request(fault.node)
    }


def _known_inputs(model: ModelUnderCheck) -> frozenset[str] | None:
    """Return the names that the inputs of a request can have, or ``None`` if more are possible."""
    config = model.config
    if config is None or model.completes_tensors or not config.input:
        return None
    sequence = config.sequence_batching
    names = {tensor.name for tensor in (*config.input, *sequence.control_input)}
    names |= {name for batch_input in config.batch_input for name in batch_input.target_name}
    return frozenset(names | {state.input_name for state in sequence.state})


def _string(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
