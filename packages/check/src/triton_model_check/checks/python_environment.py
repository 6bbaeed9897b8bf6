"""Packed Python environments, which ``EXECUTION_ENV_PATH`` names.

Of an environment only the names of its files are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from constructs_triton_core.findings import Severity
from triton_model_check.checks.files import pointer_path
from triton_model_check.checks.model_under_check import ENVIRONMENT_PARAMETER, ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.model_config.target import SAGEMAKER

if TYPE_CHECKING:
    from triton_model_check.model.packed_environment import PackedEnvironment

_MANAGER = "triton python_backend EnvironmentManager"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"
PARAMETER = ENVIRONMENT_PARAMETER
PLACE = ("parameters", PARAMETER)
OWN_STUB = "triton_python_backend_stub"
#: Registers a rule about the content of the environment of a model.
environment_rule = partial(rule, scope="environment", needs_files=True)
environment_warning = partial(environment_rule, severity=Severity.WARNING)


def _parts(model: ModelUnderCheck) -> list[str]:
    """The path in the model's folder, in parts; empty if it is elsewhere."""
    path = model.parameter(PARAMETER)
    if not path.startswith(_MODEL_DIRECTORY):
        return []
    return [part for part in path[len(_MODEL_DIRECTORY) :].split("/") if part not in ("", ".")]


def environment_of(model: ModelUnderCheck) -> PackedEnvironment | None:
    """The environment, or ``None`` if its content is not in the repository."""
    parts = _parts(model)
    if not parts or model.context.complete_bytes is not None:
        return None
    return model.folder.environment(*parts)


@environment_rule(
    "python-environment",
    source=_MANAGER,
    hint="add the archive to the model's folder, or fix the path",
)
def environment(model: ModelUnderCheck) -> Iterator[Problem]:
    """The archive of ``EXECUTION_ENV_PATH`` exists if its path is below
    ``$$TRITON_MODEL_DIRECTORY``.

    An archive of models contains only the folders of the models that its model needs. Packing
    leaves out files beside these folders, so a path with ``..`` can lead only into one of them.
    ``python-environment-elsewhere`` reports other paths.
    """
    path, parts = model.parameter(PARAMETER), _parts(model)
    message = f'{PARAMETER}: Failed to get the canonical path, no such file "{path}"'
    if parts and not model.folder.exists(*parts):
        yield Problem(message, PLACE)
    elif parts and parts[0] == ".." and _is_left_out(model, parts[1:]):
        hint = (
            f'move the archive into the folder "{model.name}", and write '
            f"{_MODEL_DIRECTORY}/{parts[-1]}; or, with python_environments, set "
            f'also_served=["{model.name}"] on the repository'
        )
        yield Problem(f"{message}: packing leaves it out of the archive", PLACE, hint)


def _is_left_out(model: ModelUnderCheck, parts: list[str]) -> bool:
    """Whether packing leaves out a path of the repository."""
    context = model.context
    if not context.target.is_sagemaker or context.is_archive or len(parts) == 0:
        return False
    if len(parts) == 1 or parts[0] not in context.folders:
        return True
    if context.target.mode == "single":
        return parts[0] not in context.loaded
    archives = [archive.folders for archive in context.archives if model.name in archive.folders]
    return any(parts[0] not in folders for folders in archives)


@environment_rule("python-environment-content", source=_MANAGER)
def environment_content(model: ModelUnderCheck) -> Iterator[Problem]:
    """The archive of an environment is a tar file, plain or compressed with gzip, with
    ``bin/activate``.

    The script must be at the root of the archive. It is not if the folder of the environment was
    packed in place of its content.
    """
    from triton_model_check.model.packed_environment import ACTIVATE

    found = environment_of(model)
    if found is None or not model.folder.exists(*_parts(model)):
        return
    if found.other_format:
        message = (
            f"the archive has the format {found.other_format}, which the backend does not unpack"
        )
        yield Problem(f"{PARAMETER}: {message}", PLACE, "pack it as .tar.gz")
    elif not found.is_archive:
        message = "archive_read_open_filename() failed: the file is not an archive, or is damaged"
        hint = "pack the environment again, or download the file again"
        yield Problem(
            f"{PARAMETER}: {message}", PLACE, hint, path=pointer_path(model, *_parts(model))
        )
    elif found.is_complete and found.activate != ACTIVATE:
        message = f'{PARAMETER}: "{ACTIVATE}" does not exist at the root of the environment'
        if found.activate is None:
            hint = "build it with `constructs-triton env build`, or conda-pack"
            yield Problem(message, PLACE, hint)
        else:
            folder = found.activate.removesuffix(f"/{ACTIVATE}")
            hint = f"pack the content of the folder, with `tar -czf env.tar.gz -C {folder} .`"
            yield Problem(f'{message}, got "{found.activate}"', PLACE, hint)


@rule("python-environment-relative", "environment", source=_MANAGER, platforms=SAGEMAKER)
def environment_relative(model: ModelUnderCheck) -> Iterator[Problem]:
    """``EXECUTION_ENV_PATH`` starts with ``$$TRITON_MODEL_DIRECTORY`` or is absolute.

    Triton looks for a relative path in the working directory of the server, and downloads nothing.
    The rule applies to endpoints with AWS's images, whose working directory contains no
    environments.
    """
    path = model.parameter(PARAMETER)
    if not path or path.startswith(("/", _MODEL_DIRECTORY)):
        return
    if model.target.is_prebuilt_image:
        name = path.rpartition("/")[2]
        hint = f"add the archive to the model's folder, and write {_MODEL_DIRECTORY}/{name}"
        yield Problem(
            f'{PARAMETER} must not be a relative path or a URL, got "{path}"', PLACE, hint
        )


@environment_warning("python-environment-working-directory", source=_MANAGER)
def environment_in_working_directory(model: ModelUnderCheck) -> Iterator[Problem]:
    """A relative ``EXECUTION_ENV_PATH`` does not name a file of the model's folder.

    Triton looks for a relative path in the working directory of the server. Where no file has this
    name there, the model does not load. The rule applies to servers and to images of your own;
    other relative paths are listed as not checked.
    """
    path = model.parameter(PARAMETER)
    if _is_relative_elsewhere(model) and _is_in_model(model, path):
        message = f'{PARAMETER}: Triton does not look for "{path}" in the model\'s folder'
        yield Problem(message, PLACE, f"write {_MODEL_DIRECTORY}/{path.removeprefix('./')}")


def environment_not_checked(model: ModelUnderCheck) -> tuple[str, ...]:
    """Return the line about an environment that only the server may have."""
    path = model.parameter(PARAMETER)
    if model.backend != "python":
        return ()
    if _is_absolute_elsewhere(model):
        reason = f'only the server may have "{path}", so its packages were not read either'
        return (f"{model.config_place}: {PARAMETER} not checked: {reason}",)
    if not _is_relative_elsewhere(model):
        return ()
    if model.target.local_files and _is_in_model(model, path):
        return ()
    reason = f'only the working directory of the server may have "{path}"'
    return (f"{model.config_place}: {PARAMETER} not checked: {reason}",)


def _is_absolute_elsewhere(model: ModelUnderCheck) -> bool:
    """Whether the path is absolute, and ``python-environment-elsewhere`` does not report it."""
    return model.parameter(PARAMETER).startswith("/") and not _is_aws_image(model)


def _is_relative_elsewhere(model: ModelUnderCheck) -> bool:
    """Whether the path is relative, and ``python-environment-relative`` does not report it."""
    path = model.parameter(PARAMETER)
    is_relative = bool(path) and not path.startswith(("/", _MODEL_DIRECTORY))
    return is_relative and not _is_aws_image(model)


def _is_aws_image(model: ModelUnderCheck) -> bool:
    return model.target.is_sagemaker and model.target.is_prebuilt_image


def _is_in_model(model: ModelUnderCheck, path: str) -> bool:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return bool(parts) and ".." not in parts and model.folder.exists(*parts)


@warning(
    "python-environment-elsewhere",
    "environment",
    source=_MANAGER,
    hint=f"add the archive to the model's folder, and write {_MODEL_DIRECTORY}/ before its name",
    platforms=SAGEMAKER,
)
def environment_elsewhere(model: ModelUnderCheck) -> Iterator[Problem]:
    """An absolute ``EXECUTION_ENV_PATH`` is only for images of your own, which contain the archive.

    AWS's images contain no environments. The rule applies to endpoints with these images.
    """
    path = model.parameter(PARAMETER)
    if path.startswith("/") and model.target.is_prebuilt_image:
        yield Problem(
            f'{PARAMETER} is outside the model, so it was not checked, got "{path}"', PLACE
        )


@environment_rule(
    "python-environment-version",
    source='triton python_backend README, "Creating Custom Execution Environments"',
    hint=(
        "build it for the image, with `constructs-triton env build --image-version`, and set the "
        "same image_version in python_environments"
    ),
    server_hint="build it with the Python of the image, and pack it with conda-pack or venv-pack",
)
def environment_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """A packed environment has the Python version of the image.

    The image's Python stub embeds its own Python, and cannot start with an environment of another
    minor version. The rule skips models with a stub of their own.
    """
    wanted, found = model.image_python, environment_of(model)
    if wanted is None or found is None or OWN_STUB in model.folder.entries:
        return
    if found.python is not None and found.python != wanted:
        yield Problem(
            f"the environment has Python {found.python}, the image has Python {wanted}", PLACE
        )


@environment_rule(
    "python-environment-numpy",
    rejects=False,
    source="observed with triton server 2.51; server build.py: numpy<2",
    hint=(
        'add "numpy<2" to its requirements, and build it '
        "for the image with `constructs-triton env build`"
    ),
    server_hint='add "numpy<2" to its requirements, and build it again',
    before="24.11",
)
def environment_numpy(model: ModelUnderCheck) -> Iterator[Problem]:
    """A packed environment for an image before 24.11 does not contain NumPy 2.

    The image's Python stub cannot read its arrays: the model loads, and every request fails with
    "output tensor shape does not match size of output". The rule skips models with a stub of their
    own.
    """
    version = model.target.image_version
    found = environment_of(model)
    if found is None:
        return
    is_new = found.numpy is not None and not found.numpy.startswith(("0.", "1."))
    if is_new and OWN_STUB not in model.folder.entries:
        yield Problem(
            f"the environment has NumPy {found.numpy}, which image {version} cannot use", PLACE
        )
