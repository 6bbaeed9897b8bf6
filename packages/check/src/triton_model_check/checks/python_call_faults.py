"""Calls of the backend's classes and functions that fail with ``TypeError``, or find nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from constructs_triton_core.facts.versions import is_at_least
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.python_faults import Fault
from triton_model_check.checks.python_sources import release_of_names
from triton_model_check.model.python_contract import is_outside_table, names_of
from triton_model_check.model.python_objects import ARRAY, METHOD, SCALAR, BackendObjects
from triton_model_check.model.python_source import PythonSource

# Until 21.07 tensors are a class in Python, whose arguments have keywords.
_TENSOR_OF_C_SINCE = "21.08"
_DECOUPLED_CALLS_SINCE = "23.03"
_REQUIRED = ("inputs", "model_name", "requested_output_names")
_OF_FAMILY = ("name", "description", "kind")
# Source: https://prometheus.io/docs/concepts/data_model, metric names.
_METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_TEXTS = ("model_name", "request_id")
_LISTS = ("inputs", "requested_output_names")
_NO_TEXTS = ("list", "tuple", "dict", ARRAY, "Tensor", "InferenceRequest")
#: What pybind11 does not take for a list: it has no sequence protocol, or it is a string.
_NO_LISTS = ("dict", "str", "Tensor", "InferenceRequest", "InferenceResponse", METHOD)
_NO_ARRAYS = ("list", "tuple", "dict", "str", "Tensor", SCALAR)
#: Expressions that are not a string, and equal no name of a tensor.
_NO_NAMES = (ast.List, ast.ListComp, ast.Tuple, ast.Set, ast.Dict)
ONE_NAME = "get_input_tensor_by_name takes one name, which is a string"
ONE_CALL_EACH = "call it once for each name"


def faults_of_calls(model: ModelUnderCheck, source: PythonSource) -> Iterator[Fault]:
    """Yield the calls of the backend's classes and functions that fail with ``TypeError``."""
    if source.index is None:
        return
    objects = source.objects
    for call in source.index.calls("InferenceResponse"):
        yield from _wrong_response(model, call)
        yield from _no_tensors(call, "output_tensors", objects)
    for call in source.index.calls("Tensor"):
        yield from _wrong_tensor(model, call, objects)
    yield from _wrong_lookups(source)
    for call in source.index.calls("InferenceRequest"):
        yield from _wrong_request(model, call)
        yield from _wrong_values_of_request(call, objects)
        yield from _no_tensors(call, "inputs", objects)
    for call in source.index.calls("triton_string_to_numpy"):
        yield from _wrong_type(call)
    for call in source.index.calls("MetricFamily"):
        yield from _wrong_family(call)
    for call in source.index.of(ast.Call):
        if isinstance(call.func, ast.Attribute):
            yield from _wrong_method_call(model, call, call.func, objects)


def _wrong_response(model: ModelUnderCheck, call: ast.Call) -> Iterator[Fault]:
    """Yield the wrong arguments of a new ``InferenceResponse``."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    error = _argument(call, "error", 1)
    version = release_of_names(model)
    known = sorted(names_of("response_arguments", version))
    for name in () if is_outside_table(version) else given:
        if name is not None and name not in known:
            hint = did_you_mean(name, known, f"use one of {quoted(known)}")
            yield Fault(call, f"InferenceResponse has no argument '{name}'", hint)
    if _is_text(error):
        message = "the error of an InferenceResponse is a string"
        yield Fault(call, message, "write error=pb_utils.TritonError(...)")


def _no_tensors(call: ast.Call, argument: str, objects: BackendObjects | None) -> Iterator[Fault]:
    """Yield the first element of a list of tensors that is certainly none."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == argument]
    if argument == "output_tensors":
        given = given or call.args[:1]
    if objects is None or not given:
        return
    if argument == "output_tensors":
        yield from _no_list(call, argument, given[0], objects)
    if not isinstance(given[0], ast.List):
        return
    for element in given[0].elts:
        kind = objects.kind(element)
        if kind not in (None, "Tensor"):
            message = f"{argument} has an element that is no Tensor, but {kind}"
            yield Fault(call, message, 'write pb_utils.Tensor("NAME", array) for each element')
            return


def _no_list(
    call: ast.Call, argument: str, value: ast.expr, objects: BackendObjects
) -> Iterator[Fault]:
    """Yield an argument that is certainly no list, although the backend takes one."""
    kind = "str" if _is_text(value) else objects.kind(value)
    if kind in _NO_LISTS:
        message = f"{argument} is a list, got {kind}"
        yield Fault(call, message, f"write {argument}=[...], also for one element")


def _wrong_tensor(
    model: ModelUnderCheck, call: ast.Call, objects: BackendObjects | None
) -> Iterator[Fault]:
    """Yield the wrong arguments of a new ``Tensor``."""
    has_keywords = any(keyword.arg is not None for keyword in call.keywords)
    if has_keywords and not _is_before(model, _TENSOR_OF_C_SINCE):
        yield Fault(call, "Tensor takes no keywords", 'write pb_utils.Tensor("NAME", array)')
        return
    content = call.args[1] if len(call.args) == 2 else None
    if content is None:
        return
    kind = None if objects is None else objects.kind(content)
    if isinstance(content, ast.Constant) or kind in _NO_ARRAYS:
        message = "the second argument of Tensor is no NumPy array"
        yield Fault(call, message, "write np.array(...) with the data type of config.pbtxt")


def _wrong_lookups(source: PythonSource) -> Iterator[Fault]:
    """Yield the lookups of a tensor whose arguments are certainly of another type.

    ``get_input_tensor_by_name`` compares names, so a list in place of a name is found in no
    request: the function returns ``None``, and what reads the tensor fails.
    """
    if source.index is None:
        return
    for call in source.index.calls("get_input_tensor_by_name"):
        if call.args and _string(call.args[0]) is not None:
            message = "the first argument of get_input_tensor_by_name is no request"
            yield Fault(call, message, "write the request first, then the name")
    for node, _ in reads_without_name(source):
        message = f"'NoneType' object has no attribute '{node.attr}'"
        yield Fault(node, f"{message}: {ONE_NAME}", ONE_CALL_EACH)


def reads_without_name(source: PythonSource) -> Iterator[tuple[ast.Attribute, ast.expr]]:
    """Yield what is read of the ``None`` that a lookup without a name returns."""
    objects = source.objects
    lookups = {id(lookup): lookup for lookup in lookups_without_name(source)}
    if objects is None or source.index is None or not lookups:
        return
    for node in source.index.of(ast.Attribute):
        lookup = lookups.get(id(objects.value(node.value)))
        if lookup is not None:
            yield node, lookup


def lookups_without_name(source: PythonSource) -> list[ast.expr]:
    """Return the calls that certainly return ``None``, because their name is no string."""
    index, objects = source.index, source.objects
    found: list[ast.expr] = []
    for call in index.calls("get_input_tensor_by_name") if index is not None else ():
        name = _argument(call, "name", 1)
        kind = None if objects is None or name is None else objects.kind(name)
        if isinstance(name, _NO_NAMES) or kind in ("list", "tuple", "dict", "Tensor"):
            found.append(call)
    return found


def _is_before(model: ModelUnderCheck, release: str) -> bool:
    """Whether the image is known to be older than a release."""
    version = model.target.image_version
    return version is not None and not is_at_least(version, release)


def _wrong_method_call(
    model: ModelUnderCheck,
    call: ast.Call,
    function: ast.Attribute,
    objects: BackendObjects | None,
) -> Iterator[Fault]:
    """Yield the wrong arguments of a call of a method of the backend's objects."""
    if function.attr in ("exec", "async_exec"):
        yield from _wrong_call(model, call)
    is_of_tensor = isinstance(function.value, ast.Attribute) and function.value.attr == "Tensor"
    has_one = len(call.args) == 1 and not call.keywords
    if function.attr == "from_dlpack" and is_of_tensor and has_one:
        message = "from_dlpack takes a name and a tensor"
        yield Fault(call, message, 'write pb_utils.Tensor.from_dlpack("NAME", tensor)')
    kind = None if objects is None else objects.kind(function.value)
    if objects is None or kind is None:
        return
    if kind == "InferenceResponseSender" and function.attr == "send":
        yield from _wrong_sending(call, objects)
    elif kind == "MetricFamily" and function.attr == "Metric":
        yield from _wrong_labels(call)
    elif kind == "Metric" and function.attr == "set":
        yield from _set_counter(call, function, objects)


def _wrong_call(model: ModelUnderCheck, call: ast.Call) -> Iterator[Fault]:
    given = [keyword.arg for keyword in call.keywords]
    if "decoupled" in given and _is_before(model, _DECOUPLED_CALLS_SINCE):
        version = model.target.image_version
        message = f"a call of another model has no argument 'decoupled' in Triton {version}"
        hint = f"use an image of {_DECOUPLED_CALLS_SINCE} or later"
        yield Fault(call, message, hint)


def _wrong_sending(call: ast.Call, objects: BackendObjects) -> Iterator[Fault]:
    """Yield the wrong arguments of a call of ``send``."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    sent = _argument(call, "response", 0)
    if not given and not call.args:
        message = "send() without a response needs the flag of the final response"
        hint = "write send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)"
        yield Fault(call, message, hint)
    elif sent is not None and objects.kind(sent) not in (None, "InferenceResponse"):
        message = f"send takes one InferenceResponse, got {objects.kind(sent)}"
        yield Fault(call, message, "send each response with a call of its own")


def _wrong_type(call: ast.Call) -> Iterator[Fault]:
    name = _string(call.args[0]) if call.args else None
    if name is not None and not name.startswith("TYPE_"):
        message = f"triton_string_to_numpy takes a name such as TYPE_FP32, got '{name}'"
        yield Fault(call, message, f'write "TYPE_{name}", or a type of NumPy')


# --- metrics --------------------------------------------------------------------------------------


def _wrong_family(call: ast.Call) -> Iterator[Fault]:
    """Yield the wrong arguments of a new ``MetricFamily``."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    absent = [name for name in _OF_FAMILY[len(call.args) :] if name not in given]
    if absent and None not in given:
        message = f"MetricFamily needs the argument '{absent[0]}'"
        yield Fault(call, message, f"add the argument {absent[0]}")
    name = _argument(call, "name", 0)
    # The beginning of the name, if it is longer.
    beginning = _string(name.left if isinstance(name, ast.BinOp) else name)
    if beginning is not None and not _METRIC_NAME.fullmatch(beginning):
        message = f"Invalid metric name, got '{beginning}'"
        yield Fault(call, message, "use letters, digits, _ and :, and no digit first")


def _wrong_labels(call: ast.Call) -> Iterator[Fault]:
    labels = _argument(call, "labels", 0)
    for value in labels.values if isinstance(labels, ast.Dict) else ():
        if isinstance(value, ast.Constant) and not isinstance(value.value, str):
            message = f"the value of a label is a string, got {value.value!r}"
            yield Fault(call, message, f'write "{value.value!r}"')
            return


def _set_counter(
    call: ast.Call, function: ast.Attribute, objects: BackendObjects
) -> Iterator[Fault]:
    """Yield the call of ``set`` on a metric whose family is certainly a counter."""
    metric = objects.value(function.value)
    maker = metric.func if isinstance(metric, ast.Call) else None
    family = objects.value(maker.value) if isinstance(maker, ast.Attribute) else None
    if not isinstance(family, ast.Call):
        return
    kind = _argument(family, "kind", 2)
    if isinstance(kind, ast.Attribute) and kind.attr == "COUNTER":
        message = "a metric of the kind COUNTER has no operation set"
        yield Fault(call, message, "write increment(...), or use the kind GAUGE")


def _wrong_request(model: ModelUnderCheck, call: ast.Call) -> Iterator[Fault]:
    """Yield the wrong arguments of a new ``InferenceRequest``."""
    version = release_of_names(model)
    known = names_of("request_arguments", version)
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if is_outside_table(version) or None in given:
        return
    for name in given:
        if name not in known:
            hint = did_you_mean(str(name), known, f"use one of {quoted(sorted(known))}")
            yield Fault(call, f"InferenceRequest has no argument '{name}'", hint)
    absent = [name for name in _REQUIRED if name not in given]
    if absent and not call.args:
        message = f"InferenceRequest needs the argument '{absent[0]}'"
        yield Fault(call, message, f"add the argument {absent[0]}")
    if _is_text(given.get("model_version")):
        message = "the model_version of an InferenceRequest is a string"
        yield Fault(call, message, "write the number of the version, or -1 for the default")


def _wrong_values_of_request(call: ast.Call, objects: BackendObjects | None) -> Iterator[Fault]:
    """Yield the arguments of a request whose type is certainly another one."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if objects is None:
        return
    for name in _TEXTS:
        value = given.get(name)
        if value is not None and _is_no_text(value, objects):
            message = f"the {name} of an InferenceRequest is not a string"
            yield Fault(call, message, f'write {name}="...", or str(...)')
    for name in _LISTS:
        if name in given:
            yield from _no_list(call, name, given[name], objects)


def _is_no_text(value: ast.expr, objects: BackendObjects) -> bool:
    """Whether pybind11 certainly refuses a value for a string; it takes bytes."""
    bound = objects.value(value)
    if isinstance(bound, ast.Constant):
        return not isinstance(bound.value, str | bytes)
    return objects.kind(value) in _NO_TEXTS


def _argument(call: ast.Call, name: str, place: int) -> ast.expr | None:
    """Return an argument that has a name and a place."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[place] if len(call.args) > place else None


def _is_text(value: ast.expr | None) -> bool:
    if isinstance(value, ast.JoinedStr):
        return True
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str)
    function = value.func if isinstance(value, ast.Call) else None
    return isinstance(function, ast.Name) and function.id in ("str", "repr")


def _string(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
