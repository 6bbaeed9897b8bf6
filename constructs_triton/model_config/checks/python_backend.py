"""Models of the Python backend: read, never executed."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from constructs_triton.findings import Severity
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.spelling import did_you_mean

__all__: list[str] = []

_LAUNCHER = "triton python_backend StubLauncher::ModelInstanceStubProcess"
_OBSERVED = "observed with triton server 2.51"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"


@rule("python-model-file", "python", source=_LAUNCHER, needs_files=True)
def model_file(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every version that is loaded holds ``model.py``, or what ``default_model_filename`` names.

    Images before 25.09 wait for ever without it, and say nothing.
    """
    file = model.completed.model_file
    for version in model.versions_to_load:
        if not version.isdigit():
            continue  # not found by its name: a finding of its own
        if model.folder.size_of(version, *file.split("/")) is not None:
            continue
        there = model.folder.list(version)
        hint = did_you_mean(file, there, f"add {version}/{file}")
        if file in model.folder.entries:
            hint = f"move {file} into {version}/"
        yield Problem(f"no {file} in version {version}", path=model.folder.relative(version), hint=hint)


@rule("python-syntax", "python", source="CPython compile()", hint="correct it", needs_files=True)
def syntax(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file parses.

    Read by the Python at hand; where the image has another one, this is only a warning.
    """
    if not _is_other_python(model):
        yield from _syntax_errors(model)


@rule(
    "python-syntax-other-version",
    "python",
    severity=Severity.WARNING,
    source="CPython compile()",
    hint="correct it, unless the image's Python understands it",
    needs_files=True,
)
def syntax_other_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file parses, for the Python at hand, which is not the image's.

    Newer Pythons know more syntax.
    """
    if _is_other_python(model):
        yield from _syntax_errors(model)


def _is_other_python(model: ModelUnderCheck) -> bool:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    return model.image_python not in (None, here)


def _syntax_errors(model: ModelUnderCheck) -> Iterator[Problem]:
    for source in model.python_sources:
        if source.fault is not None:
            line, column = source.fault.lineno, source.fault.offset
            yield Problem(f"syntax error: {source.fault.msg}", path=source.path, line=line, column=column)


@rule("python-class", "python", source="triton python_backend Stub::Initialize", needs_files=True)
def model_class(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model file has a class ``TritonPythonModel``.

    A name bound by an import or an assignment will do; files that import ``*`` are not judged.
    """
    for source in model.python_sources:
        if source.tree is not None and not source.binds_model:
            hint = did_you_mean("TritonPythonModel", source.class_names, "add class TritonPythonModel")
            yield Problem("no class TritonPythonModel", path=source.path, hint=hint)


@rule(
    "python-execute",
    "python",
    refuses=False,
    source="triton python_backend Stub::Execute",
    hint="add execute(self, requests), which returns a response for every request",
    needs_files=True,
)
def execute(model: ModelUnderCheck) -> Iterator[Problem]:
    """``TritonPythonModel`` has a method ``execute``.

    Without it the model loads, ``/ping`` is fine, and every request fails. Classes with a base are let be.
    """
    for source in model.python_sources:
        if source.lacks_execute:
            yield Problem("TritonPythonModel has no method execute", path=source.path, line=source.class_line)


@rule(
    "python-environment",
    "python",
    when=("parameters",),
    source="triton python_backend EnvironmentManager",
    hint="add the archive to the model's folder",
    needs_files=True,
)
def environment(model: ModelUnderCheck) -> Iterator[Problem]:
    """The archive that ``EXECUTION_ENV_PATH`` names below ``$$TRITON_MODEL_DIRECTORY`` is there.

    Paths elsewhere belong to the image and are not judged.
    """
    path = model.parameter("EXECUTION_ENV_PATH")
    if not path.startswith(_MODEL_DIRECTORY):
        return
    parts = [part for part in path[len(_MODEL_DIRECTORY) :].split("/") if part]
    if parts and not model.folder.exists(*parts):
        place = ("parameters", "EXECUTION_ENV_PATH")
        yield Problem(f'no such environment, got "{path}"', place)


@rule(
    "python-environment-relative",
    "python",
    when=("parameters",),
    severity=Severity.WARNING,
    source="triton python_backend EnvironmentManager",
    hint=f"start it with {_MODEL_DIRECTORY}/",
)
def environment_relative(model: ModelUnderCheck) -> Iterator[Problem]:
    """``EXECUTION_ENV_PATH`` starts with ``$$TRITON_MODEL_DIRECTORY`` or is absolute.

    A relative path is looked for in the server's working directory.
    """
    path = model.parameter("EXECUTION_ENV_PATH")
    if path and not path.startswith(("/", _MODEL_DIRECTORY)):
        yield Problem(f'a relative environment, got "{path}"', ("parameters", "EXECUTION_ENV_PATH"))


@rule(
    "python-cpu-only-inputs",
    "python",
    when=("parameters",),
    source="triton python_backend ModelState",
    hint='write "yes" or "no"',
)
def cpu_only_inputs(model: ModelUnderCheck) -> Iterator[Problem]:
    """``FORCE_CPU_ONLY_INPUT_TENSORS`` is ``yes`` or ``no``.

    Any other value, ``true`` among them, is refused.
    """
    if "FORCE_CPU_ONLY_INPUT_TENSORS" not in model.config_parameters:
        return
    value = model.parameter("FORCE_CPU_ONLY_INPUT_TENSORS")
    if value not in ("yes", "no"):
        place = ("parameters", "FORCE_CPU_ONLY_INPUT_TENSORS")
        yield Problem(f'FORCE_CPU_ONLY_INPUT_TENSORS is yes or no, got "{value}"', place)


@rule(
    "python-environment-version",
    "python",
    when=("parameters",),
    source='triton python_backend README, "Creating Custom Execution Environments"',
    hint="pack the environment with the image's Python",
    needs_files=True,
)
def environment_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """The Python of a packed environment is the image's.

    The stub of the image embeds its own Python; with an environment of another minor version it cannot start.
    """
    wanted = model.image_python
    path = model.parameter("EXECUTION_ENV_PATH")
    if wanted is None or not path.startswith(_MODEL_DIRECTORY):
        return
    parts = [part for part in path[len(_MODEL_DIRECTORY) :].split("/") if part]
    found = model.folder.packed_python(*parts)
    if found is not None and found != wanted:
        place = ("parameters", "EXECUTION_ENV_PATH")
        yield Problem(f"the environment holds Python {found}, the image has {wanted}", place)


@rule(
    "python-no-tensors",
    "model",
    refuses=False,
    source=_OBSERVED,
    hint="declare input and output, or add auto_complete_config to the model",
    needs_files=True,
)
def no_tensors(model: ModelUnderCheck) -> Iterator[Problem]:
    """A Python model has inputs and outputs: from ``config.pbtxt``, or from ``auto_complete_config``.

    With neither it loads, ``/ping`` is fine, and every request is refused. An empty, missing or misnamed
    ``config.pbtxt`` ends here.
    """
    config = model.config
    if model.folder.config_fault is not None or model.backend != "python" or model.completes_tensors:
        return
    if config is None or not (config.input or config.output):
        message = "the model has no input and no output"
        yield Problem(message if config is not None else f"{message}, and no config.pbtxt")
