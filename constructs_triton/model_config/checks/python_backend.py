"""Models of the Python backend, without executing them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from constructs_triton.findings import Severity
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton_client.spelling import closest

__all__: list[str] = []

_LAUNCHER = "triton python_backend StubLauncher::ModelInstanceStubProcess"
_OBSERVED = "observed with triton server 2.51"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"


@rule("python-model-file", "python", source=_LAUNCHER, needs_files=True)
def model_file(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every loaded version contains ``model.py``, or the file of ``default_model_filename``.

    Without it, images before 25.09 hang and log nothing.
    """
    file = model.completed.model_file
    for version in model.versions_to_load:
        if not version.isdigit():
            continue  # layout-version-name reports it
        is_special = f"{version}/{file}" in model.folder.special_files  # layout-special-file reports it
        if is_special or model.folder.size_of(version, *file.split("/")) is not None:
            continue
        existing = model.folder.list(version)
        similar = closest(file, existing)
        hint = f'rename "{similar}" to "{file}"' if similar else f"add {version}/{file}"
        if file in model.folder.entries:
            hint = f"move {file} into {version}/"
        message = f'Python model file not found in "{version}/{file}"'
        yield Problem(message, path=model.folder.relative(version), hint=hint)


@rule("python-syntax", "python", source="CPython compile()", hint="fix the syntax error", needs_files=True)
def syntax(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file is valid Python.

    It is parsed with the Python version that runs the check. If the image has another version,
    ``python-syntax-other-version`` reports the error as a warning.
    """
    if not _is_other_python(model):
        yield from _syntax_errors(model)


@rule(
    "python-syntax-other-version",
    "python",
    severity=Severity.WARNING,
    source="CPython compile()",
    hint="fix the syntax error, or acknowledge this if the image's Python accepts it",
    needs_files=True,
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
            yield Problem(f"syntax error: {source.fault.msg}", path=source.path, line=line, column=column)


@rule("python-class", "python", source="triton python_backend Stub::Initialize", needs_files=True)
def model_class(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file has a class ``TritonPythonModel``.

    It may also be imported or assigned. The rule skips files that import ``*``.
    """
    for source in model.python_sources:
        if source.tree is not None and not source.binds_model:
            similar = closest("TritonPythonModel", source.class_names)
            rename = f'rename class "{similar}" to "TritonPythonModel"'
            hint = rename if similar else "add a class TritonPythonModel"
            yield Problem("model file has no class TritonPythonModel", path=source.path, hint=hint)


@rule(
    "python-execute",
    "python",
    rejects=False,
    source="triton python_backend Stub::Execute",
    hint="add a method execute(self, requests) that returns one response for each request",
    needs_files=True,
)
def execute(model: ModelUnderCheck) -> Iterator[Problem]:
    """``TritonPythonModel`` has a method ``execute``.

    Without it the model loads and ``/ping`` succeeds, but every request fails. The rule skips classes with a
    base class.
    """
    for source in model.python_sources:
        if source.lacks_execute:
            yield Problem("TritonPythonModel has no method execute", path=source.path, line=source.class_line)


@rule(
    "python-execute-returns-none",
    "python",
    severity=Severity.WARNING,
    source="tritonserver 2.51 waits forever for a model whose execute returns None",
    hint="return a list with one response for each request, "
    "or set model_transaction_policy { decoupled: True }",
    needs_files=True,
)
def execute_returns_none(model: ModelUnderCheck) -> Iterator[Problem]:
    """``execute`` returns responses on every way, unless the model is decoupled.

    When it returns ``None``, the request gets no response at all, and SageMaker reports a timeout after 60
    seconds. The rule skips a method that only contains ``pass`` or ``...``.
    """
    config = model.folder.config
    if config is not None and config.model_transaction_policy.decoupled:
        return
    for source in model.python_sources:
        line = source.line_without_response
        if line is not None and not source.may_set_decoupled:
            yield Problem("execute can return None, so requests get no response", path=source.path, line=line)


@rule(
    "python-environment",
    "python",
    when=("parameters",),
    source="triton python_backend EnvironmentManager",
    hint="add the archive to the model's folder, or fix the path",
    needs_files=True,
)
def environment(model: ModelUnderCheck) -> Iterator[Problem]:
    """The archive of ``EXECUTION_ENV_PATH`` exists if its path is below ``$$TRITON_MODEL_DIRECTORY``.

    The rule skips other paths, which are in the image.
    """
    path = model.parameter("EXECUTION_ENV_PATH")
    if not path.startswith(_MODEL_DIRECTORY):
        return
    parts = [part for part in path[len(_MODEL_DIRECTORY) :].split("/") if part]
    if parts and not model.folder.exists(*parts):
        place = ("parameters", "EXECUTION_ENV_PATH")
        message = f'EXECUTION_ENV_PATH: Failed to get the canonical path, no such file "{path}"'
        yield Problem(message, place)


@rule(
    "python-environment-relative",
    "python",
    when=("parameters",),
    severity=Severity.WARNING,
    source="triton python_backend EnvironmentManager",
    hint=f"put {_MODEL_DIRECTORY}/ before the path",
)
def environment_relative(model: ModelUnderCheck) -> Iterator[Problem]:
    """``EXECUTION_ENV_PATH`` starts with ``$$TRITON_MODEL_DIRECTORY`` or is absolute.

    Triton looks for a relative path in the working directory of the server.
    """
    path = model.parameter("EXECUTION_ENV_PATH")
    if path and not path.startswith(("/", _MODEL_DIRECTORY)):
        message = f'EXECUTION_ENV_PATH must not be a relative path, got "{path}"'
        yield Problem(message, ("parameters", "EXECUTION_ENV_PATH"))


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
        yield Problem(f'Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS, got "{value}"', place)


@rule(
    "python-environment-version",
    "python",
    when=("parameters",),
    source='triton python_backend README, "Creating Custom Execution Environments"',
    hint="create the environment with the Python version of the image, and pack it again",
    needs_files=True,
)
def environment_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """A packed environment has the Python version of the image.

    The image's Python stub embeds its own Python, and cannot start with an environment of another minor
    version.
    """
    wanted = model.image_python
    path = model.parameter("EXECUTION_ENV_PATH")
    if wanted is None or not path.startswith(_MODEL_DIRECTORY):
        return
    parts = [part for part in path[len(_MODEL_DIRECTORY) :].split("/") if part]
    found = model.folder.packed_python(*parts)
    if found is not None and found != wanted:
        place = ("parameters", "EXECUTION_ENV_PATH")
        yield Problem(f"the environment has Python {found}, the image has Python {wanted}", place)


@rule(
    "python-no-tensors",
    "model",
    rejects=False,
    source=_OBSERVED,
    hint="add input and output to config.pbtxt, or add auto_complete_config to model.py",
    needs_files=True,
)
def no_tensors(model: ModelUnderCheck) -> Iterator[Problem]:
    """A Python model has inputs and outputs, in ``config.pbtxt`` or by ``auto_complete_config``.

    Without them the model loads and ``/ping`` succeeds, but every request fails. The cause is often an empty,
    missing or misnamed ``config.pbtxt``.
    """
    config = model.config
    if model.folder.config_fault is not None or model.backend != "python" or model.completes_tensors:
        return
    if config is None or not (config.input or config.output):
        message = "the model has no inputs and no outputs"
        yield Problem(message if config is not None else f"{message}: there is no config.pbtxt")
