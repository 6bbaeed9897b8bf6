"""Models of the Python backend, without executing them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

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
from triton_model_check.model_config.target import SAGEMAKER, SERVERS

_LAUNCHER = "triton python_backend StubLauncher::ModelInstanceStubProcess"
_README = 'triton python_backend README, "Business Logic Scripting"'
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
    config, version = model.folder.config, model.target.image_version
    if config is not None and config.model_transaction_policy.decoupled:
        return
    may_send = version is None or version >= _SENDERS_SINCE
    for source in model.python_sources:
        line, has_sender = source.line_without_response, b"get_response_sender" in source.content
        if line is not None and not source.may_set_decoupled and not (has_sender and may_send):
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
    sequence = config.sequence_batching
    inputs = {tensor.name for tensor in (*config.input, *sequence.control_input)}
    inputs |= {name for each in config.batch_input for name in each.target_name}
    inputs |= {each.input_name for each in sequence.state}
    outputs = {tensor.name for tensor in config.output} | {
        each.output_name for each in sequence.state
    }
    for source, tensors in model.python_tensors:
        certain = inputs_that_fail(model, source) if any(tensors) else set()
        for each in tensors:
            side, known = ("input", inputs) if each.is_input else ("output", outputs)
            if each.name not in known and not (each.is_input and each.name in certain):
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


# --- models that call other models ----------------------------------------------------------------


@rule("python-called-model", "calls", rejects=False, source=_README, needs_files=True)
def called_model(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every model to which a Python model sends requests is in the repository.

    The model loads without it, but its requests fail. The rule reads the name of the model from
    ``InferenceRequest(model_name="...")``, and from ``calls`` of ``triton-models.toml`` or of the
    repository. It skips requests that the source only creates, and on a server, which may have
    another repository with the model, all requests.
    """
    calls = model.context.calls[model.name]
    for name in _absent_models(model):
        may_succeed = name not in calls.sent or _may_be_elsewhere(model)
        if name in calls.sites and may_succeed:
            continue  # calls_not_checked lists it
        others = [each for each in model.context.folders if each != model.name]
        site = calls.sites.get(name)
        where = "calls" if site is not None else "is declared in calls to call"
        otherwise = "add its folder beside the folder of this model"
        hint = did_you_mean(name, others, otherwise, used=others)
        message = f'{where} "{name}", which the repository does not contain'
        used = model.context.used_as_parts
        fix = string_meant(name, hint, site.line, used=used) if site else None
        yield Problem(message, path=site and site.path, line=site and site.line, hint=hint, fix=fix)


@warning(
    "python-called-model-elsewhere", "calls", source=_README, needs_files=True, platforms=SERVERS
)
def called_model_elsewhere(model: ModelUnderCheck) -> Iterator[Problem]:
    """The name of a called model is not similar to that of a model in the folder.

    A server may have several model repositories, so a called model may be in another one. Such a
    model is listed as not checked. A similar name may be a spelling mistake.
    """
    calls = model.context.calls[model.name]
    for name in _absent_models(model):
        site = calls.sites.get(name)
        similar = closest(name, [each for each in model.context.folders if each != model.name])
        if site is not None and similar is not None:
            message = f'calls "{name}", which this folder does not contain'
            hint = (
                f'write "{similar}" if you mean that model; '
                "ignore this if another repository of the server has the model"
            )
            yield Problem(message, path=site.path, line=site.line, hint=hint)


def _absent_models(model: ModelUnderCheck) -> list[str]:
    calls = model.context.calls[model.name]
    return [name for name in calls.models if name not in model.context.folders]


def _may_be_elsewhere(model: ModelUnderCheck) -> bool:
    """Whether the server may have another repository; packed models have their own only."""
    return not model.target.is_sagemaker and not model.context.is_packed


def calls_not_checked(model: ModelUnderCheck) -> tuple[str, ...]:
    """Return which calls of other models are not known to succeed, each with the reason."""
    calls, is_server = model.context.calls[model.name], not model.target.is_sagemaker
    if not model.target.local_files:
        return ()
    lines: list[str] = []
    for name in _absent_models(model):
        site = calls.sites.get(name)
        place = model.folder.path if site is None else f"{site.path}:{site.line}"
        if _may_be_elsewhere(model) and site is not None:
            lines.append(
                f'{place}: call of "{name}" not checked: another model repository of the '
                "server may have this model"
            )
        elif site is not None and name not in calls.sent:
            lines.append(
                f'{place}: request to "{name}" not checked: the repository does not contain this '
                "model, and it is not known whether the request is sent"
            )
    if is_server and calls.declared is None:
        lines += (
            f"{site.path}:{site.line}: call of a model not checked: its name is not a string"
            for site in calls.unknown
        )
    return tuple(lines)


@warning(
    "python-called-model-unknown", "calls", source=_README, needs_files=True, platforms=SAGEMAKER
)
def called_model_unknown(model: ModelUnderCheck) -> Iterator[Problem]:
    """The name of a called model can be read from the source, or is declared.

    Only known models are packed into the archive of the caller and loaded with it. The rule skips
    models for which ``calls`` of ``triton-models.toml`` or of the repository has an entry. On a
    server, nothing is packed; such calls are listed as not checked.
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
