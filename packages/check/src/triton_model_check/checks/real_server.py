"""What a real Triton server says of a model: ``check --server`` asks one.

A server answers for itself. Its answer decides wherever the image of the target would do the same,
and where it would not, the answer is one more thing that is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule
from triton_model_check.facts.images import image_packages
from triton_model_check.model.completion import is_complete
from triton_model_check.model_config.server_answer import ServerAnswer

_NEEDS_GPU = re.compile(r"libcuda\.so|CUDA-capable|CUDA driver|NVIDIA driver|NVML", re.IGNORECASE)
#: A call of a Python traceback, as the Python backend writes it.
_PYTHON_PLACE = re.compile(r"(?<!\S)(\S+\.py)\((\d+)\): ")
_MISSING_PACKAGE = re.compile(r"No module named '(?P<package>\w+)")


@rule(
    "server-refused",
    "model",
    source="the answer of Triton's POST v2/repository/models/NAME/load",
    hint=(
        "change what the message names until `constructs-triton check --server` reports nothing; "
        "ignore the code if only the server on this machine refuses the model"
    ),
)
def server_refused(model: ModelUnderCheck) -> Iterator[Problem]:
    """A Triton server that is asked to load the model does not refuse it.

    ``constructs-triton check --server`` starts the server of nvidia-pytriton on your machine and
    loads each model in it. Its answer decides before every other rule, because it executes what the
    rules only read. The message has the release of that server, which may be another than the
    image's. Three refusals are no verdict, and are listed as not checked: of a program that stands
    in for a backend, because it has another version than the image's; of an empty backend, if the
    real one would complete the configuration; and of what the image has and your machine does not,
    such as a GPU or a Python package.
    """
    answer = model.target.answer(model.name)
    if answer is not None and answer.outcome == "rejected" and not _why_open(model, answer):
        message = f"{_server(model, answer)} refuses the model: {answer.reason}"
        path, line = _place(model, answer)
        yield Problem(message, hint=answer.hint or None, path=path, line=line)


def _place(model: ModelUnderCheck, answer: ServerAnswer) -> tuple[str | None, int | None]:
    """Return the file and the line of the model that the message names first, if it names one."""
    prefix = f"{model.folder.path}/"
    for path, line in _PYTHON_PLACE.findall(answer.reason):
        if path.startswith(prefix) and model.folder.exists(*path[len(prefix) :].split("/")):
            return path, int(line)
    return None, None


def _server(model: ModelUnderCheck, answer: ServerAnswer) -> str:
    """The server in words, with the release of the target if that is another."""
    wanted = model.target.image_version
    if wanted is None or wanted == answer.release:
        return f"{answer.server} on this machine"
    return f"{answer.server} on this machine (the image has {wanted})"


def _why_open(model: ModelUnderCheck, answer: ServerAnswer) -> str:
    """Return why a refusal says nothing about the image, or ``""`` if it is the verdict."""
    if answer.loader == "stand-in":
        return "what runs in place of the backend refuses it"
    # The core refuses a configuration without tensors after the backend had the chance to add them.
    if answer.loader == "empty-backend" and (model.config is None or not is_complete(model.config)):
        return "without its backend, which would complete the configuration, Triton refuses it"

    missing = _MISSING_PACKAGE.search(answer.reason)
    in_image = image_packages(model.target.image_version)
    if _NEEDS_GPU.search(answer.reason):
        return "it needs a GPU that this machine does not have"
    if missing is not None and missing["package"] in in_image:
        return f"the Python of this machine has no package {missing['package']}, the image has it"
    return ""


def open_lines(model: ModelUnderCheck) -> tuple[str, ...]:
    """Return what a server was asked about a model and did not decide, as a line of the report."""
    answer = model.target.answer(model.name)
    if answer is None or answer.outcome == "loads":
        return ()
    why = "no answer" if answer.outcome == "unknown" else _why_open(model, answer)
    if not why:
        return ()
    server = _server(model, answer)
    return (f"{model.folder.path}: loading in {server} not decided: {why}: {answer.reason}",)


def is_looked_at(model: ModelUnderCheck) -> bool:
    """Return whether a server has loaded the files of a model as the image would.

    Only the real backend of the image's release reads them as the image does.
    """
    answer = model.target.answer(model.name)
    return (
        answer is not None
        and answer.outcome == "loads"
        and answer.loader == "backend"
        and answer.release is not None
        and answer.release == model.target.image_version
    )
