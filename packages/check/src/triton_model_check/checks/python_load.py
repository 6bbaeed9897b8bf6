"""How Triton calls a Python model when it loads it, and what the model calls then.

Only what certainly runs is reported: statements outside conditions, loops and ``try``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any

from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.model_under_check import ENVIRONMENT_PARAMETER, ModelUnderCheck
from triton_model_check.checks.python_sources import release_of_names
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.facts.published import load
from triton_model_check.model.python_class import ModelClass, Place
from triton_model_check.model.python_contract import is_outside_table, names_of
from triton_model_check.model.python_functions import (
    Function,
    argument_name,
    is_generator,
    kind_of,
    signature_of,
    values_returned,
)
from triton_model_check.model.python_source import PythonSource
from triton_model_check.model.syntax_nodes import nodes_of
from triton_model_check.model_config.target import SERVERS

_STUB = "triton python_backend src/pb_stub.cc"
_UTILS_FILE = "triton python_backend src/resources/triton_python_backend_utils.py"
_AUTO_COMPLETE: Place = "auto_complete_config"
_TENSOR_KEYS = ("name", "data_type", "dims")
_METHODS: tuple[Place, ...] = (_AUTO_COMPLETE, "initialize")
_SENDING = ("exec", "async_exec")
_DICT = frozenset(dir(dict))
_rule = partial(rule, scope="python")
_warning = partial(warning, scope="python")


# --- calls of the model's methods -----------------------------------------------------------------


@_rule("python-initialize", source=f"{_STUB}, Stub::Initialize")
def initialize(model: ModelUnderCheck) -> Iterator[Problem]:
    """Triton can create a ``TritonPythonModel`` and call its ``initialize``.

    Triton passes no argument to the class, and ``args`` to ``initialize``. Any other signature is a
    ``TypeError``, and the model does not load.
    """
    wanted = {"__init__": (0, "__init__(self)"), "initialize": (1, "initialize(self, args)")}
    for source, model_class in model.python_classes:
        for name, (count, form) in wanted.items():
            method = model_class.method(name)
            if method is None or kind_of(method) is None:
                continue
            signature = signature_of(method, is_bound=kind_of(method) != "static")
            if not signature.accepts(count):
                message = f"Triton calls {name} with {count or 'no'} argument"
                message += "" if count == 1 else "s"
                yield _at(source, method, f"{message}, which it does not take", f"write {form}")


@_rule("python-auto-complete", source=f"{_STUB}, Stub::AutoCompleteModelConfig", since="22.06")
def auto_complete(model: ModelUnderCheck) -> Iterator[Problem]:
    """``auto_complete_config`` is static and returns the configuration that it gets.

    Otherwise the model does not load.
    """
    hint = "write `@staticmethod` above `def auto_complete_config(auto_complete_model_config)`"
    for source, model_class in model.python_classes:
        method = model_class.method(_AUTO_COMPLETE)
        if method is None or kind_of(method) is None:
            continue
        signature = signature_of(method, is_bound=kind_of(method) == "class")
        if not signature.accepts(1):
            yield _at(source, method, f"Triton calls {_AUTO_COMPLETE} with 1 argument", hint)
        elif isinstance(method, ast.AsyncFunctionDef) or is_generator(method):
            hint = "write it with `def` and `return`"
            yield _at(source, method, f"{_AUTO_COMPLETE} must return the configuration", hint)
        elif _returns_no_config(method):
            name = argument_name(method) or "auto_complete_model_config"
            message = f"{_AUTO_COMPLETE} must return the configuration that it gets"
            yield _at(source, method, message, f"end it with `return {name}`")


def _returns_no_config(method: Function) -> bool:
    """Whether ``auto_complete_config`` certainly returns no configuration."""
    values = values_returned(method)
    if any(isinstance(node, ast.Raise) for node in nodes_of(*method.body)):
        return False
    if any(isinstance(node, ast.While) for node in method.body):
        return False
    wrong = (ast.Constant, ast.Dict, ast.List, ast.Tuple)
    return all(
        value is None or isinstance(value, wrong) or _is_method(value, "as_dict")
        for value in values
    )


@_rule("python-auto-complete-value", source=_UTILS_FILE, since="22.06")
def auto_complete_value(model: ModelUnderCheck) -> Iterator[Problem]:
    """``auto_complete_config`` adds complete tensors, and does not contradict ``config.pbtxt``.

    The methods of the configuration raise ``ValueError`` otherwise, and the model does not load.
    The rule looks at values that are written in the call or assigned once.
    """
    for source, model_class in model.python_classes:
        method = model_class.method(_AUTO_COMPLETE)
        name = argument_name(method) if method is not None else None
        for call in model_class.index.of(ast.Call) if name else ():
            function = call.func
            if not isinstance(function, ast.Attribute) or not _is_name(function.value, name):
                continue
            if model_class.runs(call, _AUTO_COMPLETE):
                for message, hint in _wrong_completion(model, method, call, function.attr):
                    yield _at(source, call, message, hint)


def _wrong_completion(
    model: ModelUnderCheck, method: Any, call: Any, name: str
) -> Iterator[tuple[str, str]]:
    """Yield message and hint for a wrong call in ``auto_complete_config``."""
    version = release_of_names(model)
    known = names_of("model_config", version)
    if name not in known and not is_outside_table(version) and not name.startswith("_"):
        hint = did_you_mean(name, known, f"use one of {quoted(sorted(known))}")
        yield f"'ModelConfig' object has no attribute '{name}'", hint
    value = _literal(method, call.args[0]) if len(call.args) == 1 else None
    if name in ("add_input", "add_output") and isinstance(value, dict):
        yield from _wrong_tensor(model, name.removeprefix("add_"), value)
    elif name == "set_max_batch_size" and type(value) is int and model.config is not None:
        if model.config.max_batch_size > value:
            message = f"configuration specified max_batch_size {model.config.max_batch_size}"
            yield f"{message}, but {_AUTO_COMPLETE} sets {value}", "write the same in both places"
    elif name == "set_model_transaction_policy" and set(value or ()) - {"decoupled"}:
        yield "the transaction policy has only the property 'decoupled'", 'write "decoupled"'


def _wrong_tensor(
    model: ModelUnderCheck, side: str, tensor: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield message and hint for what is wrong with a tensor that ``auto_complete_config`` adds.

    ``side`` is ``"input"`` or ``"output"``.
    """
    allowed = (*_TENSOR_KEYS, "optional") if side == "input" else _TENSOR_KEYS
    extra = sorted(set(tensor) - set(allowed))
    absent = [key for key in _TENSOR_KEYS if key not in tensor]
    if extra:
        hint = did_you_mean(extra[0], allowed, f"use only {quoted(allowed)}")
        yield f"{side} has the property '{extra[0]}', which {_AUTO_COMPLETE} does not take", hint
        return
    if absent:
        yield f"{side} is missing '{absent[0]}' property", f'add "{absent[0]}"'
        return

    declared = getattr(model.config, side, ()) if model.config is not None else ()
    for other in declared:
        if other.name == tensor["name"]:
            yield from _contradictions(side, other, tensor)


def _contradictions(side: str, declared: Any, tensor: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield message and hint if ``config.pbtxt`` declares another type or other dims."""
    hint = f"write the same in config.pbtxt and in {_AUTO_COMPLETE}"
    data_types = type(declared).DESCRIPTOR.fields_by_name["data_type"].enum_type
    data_type = data_types.values_by_number[declared.data_type].name
    if data_type != "TYPE_INVALID" and data_type != tensor["data_type"]:
        message = (
            f"config.pbtxt has {data_type} for {side} '{declared.name}', "
            f"{_AUTO_COMPLETE} adds {tensor['data_type']}"
        )
        yield message, hint
        return

    dims = list(declared.dims)
    if dims and isinstance(tensor["dims"], list) and dims != tensor["dims"]:
        message = (
            f"config.pbtxt has dims {dims} for {side} '{declared.name}', "
            f"{_AUTO_COMPLETE} adds {tensor['dims']}"
        )
        yield message, hint


def _literal(function: ast.AST, value: ast.expr) -> Any:
    """Return the value of a literal, or of a local variable that is only ever that literal."""
    literal: ast.expr | None = value
    if isinstance(value, ast.Name):
        literal = _only_value(function, value.id)
    if literal is None:
        return None
    try:
        return ast.literal_eval(literal)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


def _only_value(function: ast.AST, name: str) -> ast.expr | None:
    """Return what a variable is assigned, if the function assigns and uses it once; else ``None``.

    Nothing else can then change the object.
    """
    uses = 0
    assigned = []
    for node in nodes_of(function):
        if isinstance(node, ast.Name) and node.id == name:
            uses += 1
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id == name:
            assigned.append(node.value)

    is_only_value = len(assigned) == 1 and uses == 2
    return assigned[0] if is_only_value else None


# --- what initialize reads ------------------------------------------------------------------------


@_rule("python-initialize-argument", source="triton python_backend src/stub_launcher.cc")
def initialize_argument(model: ModelUnderCheck) -> Iterator[Problem]:
    """``initialize`` reads only keys that its argument has.

    The argument is a ``dict`` of seven strings, the same in every release. Another key is a
    ``KeyError``, and the model does not load.
    """
    known = load("python_backend")["initialize_arguments"]
    for source, model_class in model.python_classes:
        name = _initialize_argument(model_class)
        found = [
            *_wrong_attributes(model_class, name, known),
            *_wrong_keys(model_class, name, known),
        ]
        for node, message, hint in found if name is not None else ():
            if model_class.runs(node, "initialize"):
                yield _at(source, node, message, hint)


def _wrong_attributes(
    model_class: ModelClass, name: str | None, known: list[str]
) -> Iterator[tuple[ast.AST, str, str]]:
    for node in model_class.index.of(ast.Attribute):
        if _is_name(node.value, name) and node.attr not in _DICT:
            hint = f"use one of the keys {quoted(known)}"
            if node.attr in known:
                hint = f'write {name}["{node.attr}"]'
            yield node, f"'dict' object has no attribute '{node.attr}'", hint


def _wrong_keys(
    model_class: ModelClass, name: str | None, known: list[str]
) -> Iterator[tuple[ast.AST, str, str]]:
    """Yield each read of a key that the argument of ``initialize`` does not have."""
    for node in model_class.index.of(ast.Subscript):
        key = _string(node.slice)
        if key is None or not isinstance(node.ctx, ast.Load):
            continue
        if _is_name(node.value, name) and key not in known:
            hint = did_you_mean(key, known, f"use one of {quoted(known)}")
            yield node, f"KeyError: '{key}'", hint
        elif isinstance(node.value, ast.Subscript) and _is_name(node.value.value, name):
            message = f'{name}["{_string(node.value.slice)}"] is a string, which has no key "{key}"'
            yield node, message, f'read it with json.loads({name}["model_config"])'


@_rule("python-config-value", source="triton python_backend src/stub_launcher.cc, ModelConfig")
def config_value(model: ModelUnderCheck) -> Iterator[Problem]:
    """``initialize`` reads only parameters and tensors that ``config.pbtxt`` has.

    A parameter that is absent is a ``KeyError``, and of a tensor that is absent
    ``get_output_config_by_name`` returns ``None``; the model does not load. The rule skips tensors
    of models with ``auto_complete_config``.
    """
    if model.config is None or model.folder.config_fault is not None:
        return
    for source, model_class in model.python_classes:
        if b"parameters" not in source.content and b"_config_by_name" not in source.content:
            continue
        for node in model_class.index.of(ast.Subscript):
            is_read = _string(node.slice) is not None and isinstance(node.ctx, ast.Load)
            if is_read and model_class.runs(node, "initialize"):
                yield from _absent_parameter(model, source, model_class, node)
                yield from _absent_tensor(model, source, model_class, node.value)


def _absent_parameter(
    model: ModelUnderCheck, source: PythonSource, model_class: ModelClass, node: ast.Subscript
) -> Iterator[Problem]:
    """Yield a read of a parameter that ``config.pbtxt`` does not have."""
    value = node.value
    key = _string(node.slice)
    known = sorted(model.config_parameters)
    if not isinstance(value, ast.Subscript) or _string(value.slice) != "parameters":
        return
    # Packing adds the environment of a model to its parameters.
    if key in (None, ENVIRONMENT_PARAMETER, *known) or not _is_config(
        source, model_class, value.value
    ):
        return
    message = f'config.pbtxt has no parameter "{key}"'
    add = f'add `parameters {{ key: "{key}" value {{ string_value: "..." }} }}` to config.pbtxt'
    yield _at(source, node, message, did_you_mean(str(key), known, add))


def _absent_tensor(
    model: ModelUnderCheck, source: PythonSource, model_class: ModelClass, value: ast.expr
) -> Iterator[Problem]:
    """Yield a read of a tensor that ``config.pbtxt`` does not have."""
    call = _value(source, value)
    if model.completes_tensors or not isinstance(call, ast.Call) or len(call.args) != 2:
        return
    name = _string(call.args[1])
    for side in ("input", "output"):
        known = [tensor.name for tensor in getattr(model.config, side)]
        if name is None or not _is_method(call, f"get_{side}_config_by_name") or name in known:
            continue
        if known and _is_config(source, model_class, call.args[0]):
            hint = did_you_mean(name, known, f"use one of {quoted(known)}")
            message = f'config.pbtxt has no {side} "{name}", of which initialize reads a property'
            yield _at(source, call, message, hint)


def _is_config(source: PythonSource, model_class: ModelClass, value: ast.expr) -> bool:
    """Whether an expression is certainly the configuration that Triton passes."""
    call = _value(source, value)
    if not isinstance(call, ast.Call) or len(call.args) != 1 or not _is_method(call, "loads"):
        return False
    text = _value(source, call.args[0])
    argument = _initialize_argument(model_class)
    return (
        isinstance(text, ast.Subscript)
        and _string(text.slice) == "model_config"
        and _is_name(text.value, argument)
    )


# --- what works only later ------------------------------------------------------------------------


@_rule(
    "python-call-at-load",
    source="triton python_backend src/infer_request.cc, InferRequest::Exec",
    hint="call the model in execute, where other models are ready; cache the answer if you need it",
    since="23.04",
)
def call_at_load(model: ModelUnderCheck) -> Iterator[Problem]:
    """``initialize`` and ``auto_complete_config`` send no request to another model.

    Triton answers "BLS is only supported during the 'execute' function", and the model does not
    load.
    """
    for source, model_class in model.python_classes:
        requests = {id(call) for call in model_class.index.calls("InferenceRequest")}
        for call in model_class.index.of(ast.Call) if requests else ():
            function = call.func
            if not isinstance(function, ast.Attribute) or function.attr not in _SENDING:
                continue
            is_request = id(_value(source, function.value)) in requests
            if is_request and model_class.runs(call, *_METHODS):
                yield _at(source, call, "the model calls another model while it loads")


@_rule(
    "python-server-at-load",
    source="observed with triton server 2.51; triton core, Server not ready",
    hint="call it in execute, and remember there that it was called",
    platforms=("sagemaker",),
)
def server_at_load(model: ModelUnderCheck) -> Iterator[Problem]:
    """``initialize`` asks the server nothing about other models.

    The endpoint loads its models while the server starts. ``is_model_ready``, ``load_model`` and
    ``unload_model`` then fail with "Server not ready", and so does the model.
    """
    yield from _questions_at_load(model)


@_warning(
    "python-server-at-start",
    source="observed with triton server 2.51; triton core, Server not ready",
    hint="call it in execute, or load this model by request after the server has started",
    platforms=SERVERS,
)
def server_at_start(model: ModelUnderCheck) -> Iterator[Problem]:
    """``initialize`` asks the server nothing about other models, if it runs at the server's start.

    ``is_model_ready``, ``load_model`` and ``unload_model`` then fail with "Server not ready", and
    so does the model. It is a warning because a model that is loaded by request can call them.
    """
    yield from _questions_at_load(model)


def _questions_at_load(model: ModelUnderCheck) -> Iterator[Problem]:
    for source, model_class in model.python_classes:
        for name in ("is_model_ready", "load_model", "unload_model"):
            for call in model_class.index.calls(name):
                if model_class.runs(call, *_METHODS):
                    message = f"the model calls {name} while it loads, and maybe the server starts"
                    yield _at(source, call, message)


# --- shared ---------------------------------------------------------------------------------------


def _value(source: PythonSource, node: ast.expr) -> ast.expr:
    """Return what a variable or an attribute is if the file assigns it once; else itself."""
    return node if source.objects is None else source.objects.value(node)


def _initialize_argument(model_class: ModelClass) -> str | None:
    method = model_class.method("initialize")
    return argument_name(method) if method is not None else None


def _is_name(node: ast.AST, name: str | None) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_method(node: ast.AST, name: str) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr == name


def _string(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _at(source: PythonSource, node: Any, message: str, hint: str | None = None) -> Problem:
    return Problem(message, path=source.path, line=node.lineno, hint=hint or None)
