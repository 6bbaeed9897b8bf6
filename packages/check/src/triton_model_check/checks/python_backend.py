"""Models of the Python backend, without executing them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

from constructs_triton_core.spelling import closest, did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
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
from triton_model_check.model.python_calls import created_tensors, find_tensors

_LAUNCHER = "triton python_backend StubLauncher::ModelInstanceStubProcess"
_README = 'triton python_backend README, "Business Logic Scripting"'
_DECOUPLED = "set model_transaction_policy { decoupled: true }"
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
        is_special = (
            f"{version}/{file}" in model.folder.special_files
        )  # layout-special-file reports it
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


@_rule("python-syntax", source="CPython compile()", hint="fix the syntax error")
def syntax(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file is valid Python.

    It is parsed with the Python version that runs the check. If the image has another version,
    ``python-syntax-other-version`` reports the error as a warning.
    """
    if not _is_other_python(model):
        yield from _syntax_errors(model)


@_warning(
    "python-syntax-other-version",
    source="CPython compile()",
    hint="fix the syntax error, or acknowledge this if the image's Python accepts it",
)
def syntax_other_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file is valid in the Python version that runs the check.

    This is a warning because the image has another Python version, which may accept other syntax.
    """
    if _is_other_python(model):
        yield from _syntax_errors(model)


def _is_other_python(model: ModelUnderCheck) -> bool:
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    return model.image_python not in (None, running)


def _syntax_errors(model: ModelUnderCheck) -> Iterator[Problem]:
    for source in model.python_sources:
        if source.fault is not None:
            line, column = source.fault.lineno, source.fault.offset
            yield Problem(
                f"syntax error: {source.fault.msg}", path=source.path, line=line, column=column
            )


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
    source="tritonserver 2.51 waits forever for a model whose execute returns None",
    hint=f"return a list with one response for each request, or {_DECOUPLED}",
)
def execute_returns_none(model: ModelUnderCheck) -> Iterator[Problem]:
    """``execute`` returns responses on every path, unless the model is decoupled.

    When it returns ``None``, the request gets no response at all, and SageMaker reports a timeout
    after 60 seconds. The rule skips a method that only contains ``pass`` or ``...``.
    """
    config = model.folder.config
    if config is not None and config.model_transaction_policy.decoupled:
        return
    for source in model.python_sources:
        line = source.line_without_response
        if line is not None and not source.may_set_decoupled:
            message = "execute can return None, so requests get no response"
            hint = _DECOUPLED if b"get_response_sender" in source.content else None
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
    output out of the response. The rule skips models with ``auto_complete_config``. Of models that
    call other models, it checks only the inputs.
    """
    config = model.config
    if config is None or model.completes_tensors or not (config.input and config.output):
        return
    sequence = config.sequence_batching
    inputs = {tensor.name for tensor in (*config.input, *sequence.control_input)}
    inputs |= {name for each in config.batch_input for name in each.target_name}
    inputs |= {each.input_name for each in sequence.state}
    outputs = {tensor.name for tensor in config.output} | {
        each.output_name for each in sequence.state
    }
    for source in model.python_sources:
        tensors = list(find_tensors(source.tree)) if source.tree else []
        for each in tensors:
            side, known = ("input", inputs) if each.is_input else ("output", outputs)
            if each.name not in known:
                used = {other.name for other in tensors if other.is_input == each.is_input}
                otherwise = f"use one of {quoted(sorted(known))}, or add it to config.pbtxt"
                hint = did_you_mean(each.name, sorted(known), otherwise, used=used)
                message = f'config.pbtxt has no {side} "{each.name}"{_EFFECT[side]}'
                fix = string_meant(each.name, hint, each.line, used=used)
                yield Problem(message, path=source.path, line=each.line, hint=hint, fix=fix)


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
    for source in model.python_sources:
        path = source.path.removeprefix(f"{model.folder.path}/")
        created = created_tensors(model.folder, path, source.tree) if source.tree else None
        if created is None or not created <= {*declared, *states}:
            continue  # python-tensor-name reports a name that is not declared
        for index, name in enumerate(declared):
            if name not in created:
                message = f'{path} creates no tensor "{name}", so no response contains this output'
                yield Problem(message, ("output", index))


# --- models that call other models ----------------------------------------------------------------


@rule("python-called-model", "calls", rejects=False, source=_README, needs_files=True)
def called_model(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every model that a Python model calls is in the repository.

    The model loads without it, but its requests fail. The rule reads the name of the model from
    ``InferenceRequest(model_name="...")``, and from ``calls`` of ``triton-models.toml`` or of the
    repository.
    """
    calls = model.context.calls[model.name]
    for name in calls.models:
        if name not in model.context.folders:
            others = [each for each in model.context.folders if each != model.name]
            site = calls.sites.get(name)
            where = "calls" if site is not None else "is declared in calls to call"
            otherwise = "add its folder beside the folder of this model"
            hint = did_you_mean(name, others, otherwise, used=others)
            message = f'{where} "{name}", which the repository does not contain'
            used = model.context.used_as_parts
            fix = string_meant(name, hint, site.line, used=used) if site else None
            yield Problem(
                message, path=site and site.path, line=site and site.line, hint=hint, fix=fix
            )


@warning("python-called-model-unknown", "calls", source=_README, needs_files=True)
def called_model_unknown(model: ModelUnderCheck) -> Iterator[Problem]:
    """The name of a called model can be read from the source, or is declared.

    Only known models are packed into the archive of the caller and loaded with it. The rule skips
    models for which ``calls`` of ``triton-models.toml`` or of the repository has an entry.
    """
    calls = model.context.calls[model.name]
    if calls.declared is not None:
        return
    hint = (
        f'write "{model.name}" = ["MODEL"] below [calls] in triton-models.toml in the folder of '
        "the models, or write the name as a string"
    )
    for site in calls.unknown:
        message = (
            "calls a model whose name is not a string, so that it is not packed with this model"
        )
        yield Problem(message, path=site.path, line=site.line, hint=hint)


@rule(
    "python-calls-on-multi-model-endpoint",
    "calls",
    rejects=False,
    source="observed with triton server 2.51; SageMakerMMELoadModel",
    hint=(
        "serve the model with TritonEndpoint, or replace it by an ensemble of the models that it "
        "calls: `constructs-triton model new --backend ensemble NAME --step MODEL --step MODEL`"
    ),
    needs_files=True,
    platforms=("sagemaker-multi-model",),
)
def calls_on_multi_model_endpoint(model: ModelUnderCheck) -> Iterator[Problem]:
    """No model of a multi-model endpoint calls another model.

    SageMaker's front end loads one folder of each archive, the last one in the order of the file
    system, so it may answer with the called model instead of the caller. A model that is loaded
    with ``pb_utils.load_model`` cannot be called any more as soon as a second archive contains a
    model of the same name, for example the next version of the same archive.
    """
    if model.name not in model.context.loaded:
        return
    calls = model.context.calls[model.name]
    site = next(iter((*calls.sites.values(), *calls.unknown)), None)
    called = f'"{calls.models[0]}"' if calls.models else "another model"
    yield Problem(
        f'"{model.name}" calls {called}, which multi-model endpoints do not support',
        path=model.folder.path if site is None else site.path,
        line=site and site.line,
    )
