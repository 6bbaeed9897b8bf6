"""What a Python model does with a request, without executing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from constructs_triton_core.facts.versions import is_at_least
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.model.python_contract import (
    Function,
    ModelClass,
    is_generator,
    is_outside_table,
    kind_of,
    names_of,
    signature_of,
    values_returned,
)
from triton_model_check.model.python_source import PythonSource
from triton_model_check.model.syntax_nodes import nodes_of

_STUB = "triton python_backend src/pb_stub.cc"
_README = 'triton python_backend README, "Business Logic Scripting"'
# Until 21.07 tensors are a class in Python, whose arguments have keywords.
_TENSOR_OF_C_SINCE = "21.08"
_DECOUPLED_CALLS_SINCE = "23.03"
_REQUIRED = ("inputs", "model_name", "requested_output_names")
_rule = partial(rule, scope="python")
_warning = partial(warning, scope="python")
# Expressions that are neither a list of responses nor None.
_NO_LIST = (
    *(ast.Dict, ast.DictComp, ast.GeneratorExp, ast.JoinedStr, ast.Set, ast.SetComp, ast.Tuple),
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
    method of which every ``return`` is wrong.
    """
    policy = getattr(model.config, "model_transaction_policy", None)
    is_decoupled = policy is not None and policy.decoupled
    for source, method in _executes(model):
        assert source.index is not None
        responses = {id(call) for call in source.index.calls("InferenceResponse")}
        tensors = {id(call) for call in source.index.calls("Tensor")}
        values = values_returned(method)
        # A decoupled model has sent its responses when Triton finds out that it got a generator.
        may_yield = b"yield" in source.content and not is_decoupled
        found = [_wrong_result(value, responses, tensors, is_decoupled) for value in values]
        if may_yield and is_generator(method):
            yield _at(source, method, "execute contains yield, so that it returns no list")
        elif found and all(found):
            hint = None
            if is_decoupled:
                hint = "send responses with get_response_sender(), and return None"
            yield _at(source, values[0], f"execute returns {found[0]}", hint)


def _wrong_result(
    value: ast.expr | None, responses: set[int], tensors: set[int], is_decoupled: bool
) -> str | None:
    """Return what a ``return`` returns, or ``None`` if Triton may accept it."""
    if isinstance(value, ast.List | ast.ListComp):
        if is_decoupled:
            return "a list, but the model is decoupled"
        elements = [value.elt] if isinstance(value, ast.ListComp) else value.elts
        is_tensor = any(id(each) in tensors for each in elements)
        return "a list of tensors in place of responses" if is_tensor else None
    if id(value) in responses:
        return "one InferenceResponse in place of a list"
    is_constant = isinstance(value, ast.Constant) and value.value is not None
    function = value.func if isinstance(value, ast.Call) else None
    is_other_type = isinstance(function, ast.Name) and function.id in _NO_LIST_TYPES
    return "no list" if is_constant or is_other_type or isinstance(value, _NO_LIST) else None


@_warning("python-response", source=f"{_STUB}, PYBIND11_EMBEDDED_MODULE")
def response(model: ModelUnderCheck) -> Iterator[Problem]:
    """Tensors, responses and requests are created with the arguments that their classes take.

    Otherwise the call fails with ``TypeError`` in place of what the model wanted to answer: the
    error of a response is a ``TritonError``, a tensor has a name and a NumPy array, which have no
    keywords from 21.08 on. Calls of other models exist from 21.08 on, and have the argument
    ``decoupled`` from 23.03 on. ``get_input_tensor_by_name`` returns ``None`` for a list of names.
    """
    for source in model.python_sources:
        if source.index is None:
            continue
        for call in source.index.calls("InferenceResponse"):
            yield from _wrong_response(model, source, call)
        for call in source.index.calls("Tensor"):
            yield from _wrong_tensor(model, source, call)
        for call in source.index.calls("get_input_tensor_by_name"):
            yield from _wrong_lookup(source, call)
        for call in source.index.calls("InferenceRequest"):
            yield from _wrong_request(model, source, call)
        for call in source.index.of(ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("exec", "async_exec"):
                yield from _wrong_call(model, source, call)


def _wrong_response(
    model: ModelUnderCheck, source: PythonSource, call: ast.Call
) -> Iterator[Problem]:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    error = given.get("error", call.args[1] if len(call.args) > 1 else None)
    version = model.target.image_version
    known = sorted(names_of("response_arguments", version))
    for name in () if is_outside_table(version) else given:
        if name is not None and name not in known:
            hint = did_you_mean(name, known, f"use one of {quoted(known)}")
            yield _at(source, call, f"InferenceResponse has no argument '{name}'", hint)
    if _is_text(error):
        message = "the error of an InferenceResponse is a string"
        yield _at(source, call, message, "write error=pb_utils.TritonError(...)")


def _wrong_tensor(
    model: ModelUnderCheck, source: PythonSource, call: ast.Call
) -> Iterator[Problem]:
    has_keywords = any(keyword.arg is not None for keyword in call.keywords)
    if has_keywords and not _is_before(model, _TENSOR_OF_C_SINCE):
        yield _at(source, call, "Tensor takes no keywords", 'write pb_utils.Tensor("NAME", array)')
    elif len(call.args) == 2 and isinstance(
        call.args[1], ast.List | ast.ListComp | ast.Tuple | ast.Constant | ast.JoinedStr
    ):
        message = "the second argument of Tensor is no NumPy array"
        yield _at(source, call, message, "write np.array(...) with the data type of config.pbtxt")


def _wrong_lookup(source: PythonSource, call: ast.Call) -> Iterator[Problem]:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    name = given.get("name", call.args[1] if len(call.args) > 1 else None)
    if isinstance(name, ast.List | ast.ListComp | ast.Tuple | ast.Set | ast.Dict):
        message = "get_input_tensor_by_name takes one name, and returns None for a list of them"
        yield _at(source, call, message, "call it once for each name")


def _is_before(model: ModelUnderCheck, release: str) -> bool:
    """Whether the image is known to be older than a release."""
    version = model.target.image_version
    return version is not None and not is_at_least(version, release)


def _wrong_call(model: ModelUnderCheck, source: PythonSource, call: ast.Call) -> Iterator[Problem]:
    given = [keyword.arg for keyword in call.keywords]
    if "decoupled" in given and _is_before(model, _DECOUPLED_CALLS_SINCE):
        version = model.target.image_version
        message = f"a call of another model has no argument 'decoupled' in Triton {version}"
        hint = f"use an image of {_DECOUPLED_CALLS_SINCE} or later"
        yield _at(source, call, message, hint)


def _wrong_request(
    model: ModelUnderCheck, source: PythonSource, call: ast.Call
) -> Iterator[Problem]:
    version = model.target.image_version
    known = names_of("request_arguments", version)
    given = [keyword.arg for keyword in call.keywords]
    if is_outside_table(version) or None in given:
        return
    for name in given:
        if name not in known:
            hint = did_you_mean(str(name), known, f"use one of {quoted(sorted(known))}")
            yield _at(source, call, f"InferenceRequest has no argument '{name}'", hint)
    absent = [name for name in _REQUIRED if name not in given]
    if absent and not call.args:
        message = f"InferenceRequest needs the argument '{absent[0]}'"
        yield _at(source, call, message, f"add the argument {absent[0]}")


def _is_text(value: ast.expr | None) -> bool:
    if isinstance(value, ast.JoinedStr):
        return True
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str)
    function = value.func if isinstance(value, ast.Call) else None
    return isinstance(function, ast.Name) and function.id in ("str", "repr")


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
    nodes = nodes_of(*function.body)
    parents = {id(child): node for node in nodes for child in ast.iter_child_nodes(node)}
    for node in nodes:
        names = node.targets if isinstance(node, ast.Assign) and id(node.value) in families else []
        if len(names) == 1 and isinstance(names[0], ast.Name):
            uses = [each for each in nodes if isinstance(each, ast.Name) and each.id == names[0].id]
            reads = [each for each in uses if isinstance(each.ctx, ast.Load)]
            metrics = [_metric_of(each, parents) for each in reads]
            is_local = len(reads) == len(uses) - 1 and all(metrics) and not _is_shared(nodes)
            if is_local and any(_is_kept(each, parents) for each in metrics):
                yield _at(source, node, "only a local variable has this MetricFamily")
        elif id(node) in families:
            metric = _metric_of(node, parents)
            if metric is not None and _is_kept(metric, parents):
                yield _at(source, node, "nothing keeps this MetricFamily")


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
        for node in source.index.of(ast.Attribute) if source.index else ():
            if node.attr == "get_response_sender":
                yield _at(source, node, "requests have no get_response_sender in this image")


@_warning("python-called-tensor", source=_README, needs_files=True)
def called_tensor(model: ModelUnderCheck) -> Iterator[Problem]:
    """A request to another model names inputs and outputs that this model has.

    Otherwise Triton answers "unexpected inference input" or "unexpected inference output". The rule
    looks at names that are strings, and skips called models whose backend may complete their
    tensors.
    """
    for source in model.python_sources:
        calls = source.index.calls("InferenceRequest") if source.index else ()
        tensors = {id(call) for call in source.index.calls("Tensor")} if source.index else set()
        for call in calls:
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            name = _string(given.get("model_name"))
            called = model.context.models.get(name or "")
            if called is None or called.config is None or called.completes_tensors:
                continue
            named = {
                "output": _strings(given.get("requested_output_names")),
                "input": _tensor_names(given.get("inputs"), tensors),
            }
            for side, names in named.items():
                known = [tensor.name for tensor in getattr(called.config, side)]
                for each in names if known else ():
                    if each not in known:
                        hint = did_you_mean(each, known, f"use one of {quoted(sorted(known))}")
                        yield _at(source, call, f'model "{name}" has no {side} "{each}"', hint)


def _tensor_names(inputs: ast.expr | None, tensors: set[int]) -> list[str]:
    elements = inputs.elts if isinstance(inputs, ast.List) else []
    calls = [each for each in elements if isinstance(each, ast.Call) and id(each) in tensors]
    names = (_string(call.args[0]) for call in calls if call.args)
    return [name for name in names if name is not None]


def _strings(value: ast.expr | None) -> list[str]:
    elements = value.elts if isinstance(value, ast.List) else []
    return [text for text in map(_string, elements) if text is not None]


def _string(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


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
