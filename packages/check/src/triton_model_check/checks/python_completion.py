"""How ``auto_complete_config`` calls the methods of the configuration, without executing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any

from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.python_sources import problem_at, release_of_names
from triton_model_check.checks.rules import Problem, rule
from triton_model_check.model.python_class import ModelClass, Place
from triton_model_check.model.python_contract import is_outside_table
from triton_model_check.model.python_functions import argument_name
from triton_model_check.model.python_source import PythonSource
from triton_model_check.model_config.schema import enum_values

_METHOD: Place = "auto_complete_config"
_SOURCE = "triton python_backend src/resources/triton_python_backend_utils.py, ModelConfig"
_ARGUMENTS = {
    "add_input": 1,
    "add_output": 1,
    "as_dict": 0,
    "set_dynamic_batching": 0,
    "set_max_batch_size": 1,
    "set_model_transaction_policy": 1,
}
_rule = partial(rule, scope="python", since="22.06")


@_rule("python-completion-call", source=_SOURCE)
def completion_call(model: ModelUnderCheck) -> Iterator[Problem]:
    """``auto_complete_config`` calls methods with the arguments that they take.

    The transaction policy is a ``dict``, and a model with ``sequence_batching`` or
    ``ensemble_scheduling`` in ``config.pbtxt`` sets no dynamic batching. Otherwise the model does
    not load.
    """
    if is_outside_table(release_of_names(model)):
        return
    for source, model_class in model.python_classes:
        for call, name in _calls(model_class):
            for message, hint in _wrong_call(model, call, name):
                yield problem_at(source, call, message, hint)


def _calls(model_class: ModelClass) -> Iterator[tuple[ast.Call, str]]:
    """Yield each call of a method of the configuration that certainly runs, with its name."""
    method = model_class.method(_METHOD)
    argument = argument_name(method) if method is not None else None
    for call in model_class.index.of(ast.Call) if argument is not None else ():
        function = call.func
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            continue
        # Another function may have an argument of the same name.
        is_config = function.value.id == argument and model_class.index.is_bound_once(argument)
        if is_config and model_class.runs(call, _METHOD):
            yield call, function.attr


def _wrong_call(model: ModelUnderCheck, call: ast.Call, name: str) -> Iterator[tuple[str, str]]:
    """Yield message and hint for a call of the configuration's methods with wrong arguments."""
    count = _ARGUMENTS.get(name)
    if count is None or any(isinstance(value, ast.Starred) for value in call.args):
        return
    given = len(call.args) + len(call.keywords)
    if len(call.args) > count or (given != count and _has_names(call)):
        plural = "" if count == 1 else "s"
        message = f"{name} takes {count or 'no'} argument{plural}, got {given}"
        yield message, f"pass {count or 'no'} argument{plural}"
    elif name == "set_model_transaction_policy" and _is_no_dict(call):
        yield "the transaction policy must be a dict", 'write {"decoupled": True} or False'
    elif name == "set_dynamic_batching" and model.config is not None:
        for scheduler in ("sequence_batching", "ensemble_scheduling"):
            if model.config.HasField(scheduler):
                message = f"config.pbtxt has {scheduler}, but {_METHOD} sets dynamic_batching"
                yield message, f"remove the call, or {scheduler} from config.pbtxt"


def _has_names(call: ast.Call) -> bool:
    """Whether all keywords are written in the call, none passed with ``**``."""
    return all(keyword.arg is not None for keyword in call.keywords)


def _is_no_dict(call: ast.Call) -> bool:
    value = call.args[0] if call.args else None
    return isinstance(value, ast.Constant | ast.List | ast.Tuple | ast.Set)


@_rule("python-completion-type", rejects=False, source=f"{_SOURCE}; run with triton server 2.51")
def completion_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """The data types that ``auto_complete_config`` adds are names such as ``TYPE_FP32``.

    With another name Triton ignores the tensors: the model loads and ``/ping`` succeeds, but every
    request fails. The rule applies to models without tensors in ``config.pbtxt``, and looks at
    values that are written in the call or assigned once.
    """
    config = model.config
    if config is None or config.input or config.output:
        return
    known = sorted(enum_values("DataType").values())
    for source, model_class in model.python_classes:
        for call, name in _calls(model_class):
            if name not in ("add_input", "add_output") or len(call.args) != 1:
                continue
            value = _data_type(source, model_class, call.args[0])
            if value is not None and value not in known:
                fixed = f"TYPE_{value}" if f"TYPE_{value}" in known else None
                hint = did_you_mean(value, known, f"use one of {quoted(known)}")
                message = f'"{value}" is no data type of Triton'
                yield problem_at(source, call, message, f'write "{fixed}"' if fixed else hint)


def _data_type(source: PythonSource, model_class: ModelClass, value: ast.expr) -> Any:
    """Return the data type of a tensor that is a literal which nothing changes."""
    tensor = value if source.objects is None else source.objects.value(value)
    if isinstance(value, ast.Name):
        reads = [node for node in model_class.index.of(ast.Name) if node.id == value.id]
        # One assignment and this use: nothing else can change the object.
        if len(reads) != 2 or not model_class.index.is_bound_once(value.id):
            return None
    try:
        found = ast.literal_eval(tensor)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None
    data_type = found.get("data_type") if isinstance(found, dict) else None
    return data_type if isinstance(data_type, str) else None
