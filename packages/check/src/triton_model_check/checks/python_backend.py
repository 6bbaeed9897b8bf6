"""Models of the Python backend, without executing them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from constructs_triton_core.spelling import closest, did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.other_python import is_certain, syntax_problem
from triton_model_check.checks.python_objects import inputs_that_fail
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.fixes.steps import (
    put,
    replace_word,
    safe,
    string,
    string_meant,
    unsafe,
)
from triton_model_check.model.backends import fix_of_wrong_backend, is_python_model
from triton_model_check.model.misplaced_files import hint_of_misplaced
from triton_model_check.model.python_calls import created_tensors
from triton_model_check.model.shell_names import changed_by_shell

_LAUNCHER = "triton python_backend StubLauncher::ModelInstanceStubProcess"
_DECOUPLED = "set model_transaction_policy { decoupled: true }"
_RETURN = "return a list with one response for each request"
_SENDERS_SINCE = "24.06"
_OBSERVED = "observed with triton server 2.51"
_rule = partial(rule, scope="python")
_warning = partial(warning, scope="python")


@_rule("python-model-file", needs_files=True, source=_LAUNCHER)
def model_file(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every loaded version contains ``model.py``, or the file of ``default_model_filename``.

    Without it, images before 25.09 hang and log nothing.
    """
    file = model.completed.model_file
    for version in model.versions_to_load:
        if not version.isdigit():
            continue  # layout-version-name reports it
        # `layout-special-file` reports such a file.
        is_special = f"{version}/{file}" in model.folder.special_files
        if is_special or model.folder.size_of(version, *file.split("/")) is not None:
            continue
        hint = hint_of_misplaced(model.folder, model.completed, version)
        hint = hint or fix_of_wrong_backend(model.folder, version, model.backend)
        hint = hint or _other_python_file(model, version, file)
        message = f'Python model file not found in "{version}/{file}"'
        yield Problem(message, path=model.folder.relative(version), hint=hint)


def _other_python_file(model: ModelUnderCheck, version: str, file: str) -> str:
    """Return the hint that names the only other file with the class, or that the file is absent."""
    names = sorted(name for name in model.folder.list(version) if name.endswith(".py"))
    found = [name for name in names if is_python_model(model.folder.read(version, name))]
    if len(found) != 1:
        return f"add {version}/{file}"
    return f'rename "{found[0]}" to "{file}", or set default_model_filename: "{found[0]}"'


@_rule(
    "python-name-shell",
    source="triton python_backend StubLauncher::Launch; observed with triton server 2.51",
)
def name_for_shell(model: ModelUnderCheck) -> Iterator[Problem]:
    """The names of the folder and of the file have no characters that mean something to a shell.

    The backend starts ``model.py`` with ``bash -c`` and does not quote its path. A space splits the
    path, and the server waits for the model without a message. The same applies to the folder of
    the whole repository, whose name on the server is not known here.
    """
    is_reported = model.is_served and model.context.target.platform == "sagemaker"
    file = model.completed.model_file
    for part, name, more in (
        ("folder", model.name, ""),
        ("file", file, ", and set default_model_filename"),
    ):
        found = changed_by_shell(name)
        if not found or (is_reported and part == "folder" and found.isspace()):
            continue  # `sagemaker-name-blank` reports it
        better = re.sub(r"[^\w./-]+", "_", name).strip("_") or "model"
        yield Problem(
            f"the Python backend starts the model in a shell, where {found!r} in the {part} "
            f'name "{name}" splits or changes the path',
            path=model.folder.path,
            hint=f'rename the {part}, for example to "{better}"{more}',
        )


@_rule(
    "python-syntax",
    source="CPython compile() and, for another Python than that of the check, ruff",
    hint="fix the syntax error",
)
def syntax(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file is valid in the Python version of the image.

    What the Python that runs the check cannot decide, ruff decides, which is in
    ``triton-model-check[python]``. Without it such files are listed as not checked.
    """
    for source in model.python_sources:
        fault = source.fault
        # `other_python` asks another program about what this Python cannot decide.
        if fault is not None and is_certain(model, source):
            yield syntax_problem(source.path, fault.msg, fault.lineno, fault.offset)


@_rule("python-class", source="triton python_backend Stub::Initialize")
def model_class(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file has a class ``TritonPythonModel``.

    It may also be imported or assigned. The rule skips files that import ``*``.
    """
    for source in model.python_sources:
        if source.tree is not None and not source.binds_model:
            names = source.class_names
            is_only = len(names) == 1 and b"def execute(" in source.content
            similar = names[0] if is_only else closest("TritonPythonModel", names)
            rename = f'rename class "{similar}" to "TritonPythonModel"'
            hint = rename if similar else "add a class TritonPythonModel"
            fix = unsafe(replace_word(similar, "TritonPythonModel")) if similar else None
            yield Problem(
                "model file has no class TritonPythonModel", path=source.path, hint=hint, fix=fix
            )


@_rule(
    "python-execute",
    rejects=False,
    source="triton python_backend Stub::Execute",
    hint="add a method execute(self, requests) that returns one response for each request",
)
def execute(model: ModelUnderCheck) -> Iterator[Problem]:
    """``TritonPythonModel`` has a method ``execute``.

    Without it the model loads and ``/ping`` succeeds, but every request fails. The rule skips
    classes with a base class.
    """
    for source in model.python_sources:
        if source.lacks_execute:
            similar = closest("execute", source.methods)
            hint = f'rename method "{similar}" to "execute"' if similar else None
            message = "TritonPythonModel has no method execute"
            fix = unsafe(replace_word(similar, "execute")) if similar else None
            yield Problem(message, path=source.path, line=source.class_line, hint=hint, fix=fix)


@_warning(
    "python-execute-returns-none",
    source=(
        "tritonserver 2.51 waits forever for a model whose execute returns None; "
        "python_backend r24.05 and r24.06, get_response_sender"
    ),
    hint=_RETURN,
)
def execute_returns_none(model: ModelUnderCheck) -> Iterator[Problem]:
    """``execute`` returns responses on every path, unless the model is decoupled.

    When it returns ``None``, the request gets no response at all, and SageMaker reports a timeout
    after 60 seconds. From 24.06 on, any model may answer with ``get_response_sender`` and return
    ``None``; before, only a decoupled one. The rule skips a method that only contains ``pass`` or
    ``...``.
    """
    config = model.folder.config
    if config is not None and config.model_transaction_policy.decoupled:
        return
    version = model.target.image_version
    may_send = version is None or version >= _SENDERS_SINCE
    for source in model.python_sources:
        line = source.line_without_response
        has_sender = b"get_response_sender" in source.content
        if line is None or source.may_set_decoupled or (has_sender and may_send):
            continue
        message = "execute can return None, so requests get no response"
        hint = _DECOUPLED if has_sender else _RETURN
        yield Problem(message, path=source.path, line=line, hint=hint)


@rule(
    "python-cpu-only-inputs",
    "python",
    when=("parameters",),
    source="triton python_backend ModelState",
    hint='set string_value to "yes" or "no"',
)
def cpu_only_inputs(model: ModelUnderCheck) -> Iterator[Problem]:
    """``FORCE_CPU_ONLY_INPUT_TENSORS`` is ``yes`` or ``no``.

    Triton rejects any other value, for example ``true``.
    """
    if "FORCE_CPU_ONLY_INPUT_TENSORS" not in model.config_parameters:
        return
    value = model.parameter("FORCE_CPU_ONLY_INPUT_TENSORS")
    if value not in ("yes", "no"):
        place = ("parameters", "FORCE_CPU_ONLY_INPUT_TENSORS")
        word = {"true": "yes", "false": "no"}.get(value.lower(), value.lower())
        fix = safe(put(string(word), "value", "string_value")) if word in ("yes", "no") else None
        yield Problem(
            f'Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS, got "{value}"', place, fix=fix
        )


@rule(
    "python-no-tensors",
    "python",
    rejects=False,
    source=_OBSERVED,
    hint="add input and output to config.pbtxt, or add auto_complete_config to model.py",
    needs_files=True,
)
def no_tensors(model: ModelUnderCheck) -> Iterator[Problem]:
    """A Python model has inputs and outputs, in ``config.pbtxt`` or by ``auto_complete_config``.

    Without them the model loads and ``/ping`` succeeds, but a request with a tensor fails, and the
    response to one without has no outputs. The cause is often an empty, missing or misnamed
    ``config.pbtxt``.
    """
    config = model.config
    if model.completes_tensors:
        return
    if config is None or not (config.input or config.output):
        misplaced = [
            each for each in model.versions_to_load if "config.pbtxt" in model.folder.list(each)
        ]
        hint = f"move {misplaced[0]}/config.pbtxt to the model's folder" if misplaced else None
        missing = "" if config is not None else ": there is no config.pbtxt"
        yield Problem(f"the model has no inputs and no outputs{missing}", hint=hint)


_EFFECT = {
    "input": ", so it is None",
    "output": ", so the response does not contain it",
}


@_warning("python-tensor-name", source='triton python_backend README, "Using NumPy Arrays"')
def tensor_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """The tensors that ``model.py`` names are inputs and outputs of ``config.pbtxt``.

    ``get_input_tensor_by_name`` returns ``None`` for another input, and the server leaves another
    output out of the response. The rule skips models with ``auto_complete_config``, and inputs of
    which ``python-request-fails`` reports that reading them fails. Of models that call other
    models, it checks only the inputs.
    """
    config = model.config
    if config is None or model.completes_tensors or not (config.input and config.output):
        return

    inputs = _names_of_inputs(config)
    outputs = _names_of_outputs(config)
    for source, tensors in model.python_tensors:
        failing_inputs = inputs_that_fail(model, source) if tensors else set()
        for tensor in tensors:
            known = inputs if tensor.is_input else outputs
            is_reported = tensor.is_input and tensor.name in failing_inputs
            if tensor.name in known or is_reported:
                continue

            side = "input" if tensor.is_input else "output"
            used = {other.name for other in tensors if other.is_input == tensor.is_input}
            otherwise = f"use one of {quoted(sorted(known))}, or add it to config.pbtxt"
            hint = did_you_mean(tensor.name, sorted(known), otherwise, used=used)
            message = f'config.pbtxt has no {side} "{tensor.name}"{_EFFECT[side]}'
            fix = string_meant(tensor.name, hint, tensor.line, used=used)
            yield Problem(message, path=source.path, line=tensor.line, hint=hint, fix=fix)


def _names_of_inputs(config: Any) -> set[str]:
    """Return the names of all tensors that a request of the model can contain."""
    sequence = config.sequence_batching
    names = {tensor.name for tensor in (*config.input, *sequence.control_input)}
    for batch_input in config.batch_input:
        names.update(batch_input.target_name)
    for state in sequence.state:
        names.add(state.input_name)
    return names


def _names_of_outputs(config: Any) -> set[str]:
    """Return the names of all tensors that a response of the model can contain."""
    names = {tensor.name for tensor in config.output}
    for state in config.sequence_batching.state:
        names.add(state.output_name)
    return names


@_warning(
    "python-output-absent",
    source="triton server 24.10: a response has the outputs that execute returns",
    hint="return a pb_utils.Tensor of this name in each response, or remove the output",
)
def output_absent(model: ModelUnderCheck) -> Iterator[Problem]:
    """``model.py`` creates every output of ``config.pbtxt``.

    Triton loads the model and answers without the output, also to a request that asks for it, and
    reports no error. In an ensemble, no step gets the tensor. The rule applies if all names of
    tensors are in ``model.py``, and skips models that call other models.
    """
    config = model.config
    if config is None or model.completes_tensors or not (config.input and config.output):
        return
    declared = [tensor.name for tensor in config.output]
    states = {state.output_name for state in config.sequence_batching.state}
    for source, tensors in model.python_tensors:
        if {each.name for each in tensors if not each.is_input} >= {*declared}:
            continue  # the usual case, without a further look at the code
        path = source.path.removeprefix(f"{model.folder.path}/")
        created = created_tensors(model.folder, path, source.tree) if source.tree else None
        if created is None or not created <= {*declared, *states}:
            continue  # python-tensor-name reports a name that is not declared
        for index, name in enumerate(declared):
            if name not in created:
                message = f'{path} creates no tensor "{name}", so no response contains this output'
                yield Problem(message, ("output", index))
