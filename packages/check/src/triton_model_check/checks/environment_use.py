"""How the image unpacks a Python environment and uses it."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton_core.facts.versions import is_at_least
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.python_environment import (
    PARAMETER,
    PLACE,
    environment_of,
    environment_rule,
    environment_warning,
)
from triton_model_check.checks.rules import Problem, warning
from triton_model_check.model.packed_environment import INTERPRETER, PackedEnvironment
from triton_model_check.model_config.target import SAGEMAKER

_MANAGER = "triton python_backend EnvironmentManager"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"
_PLACEHOLDER_SINCE, _FOLDER_SINCE = "21.09", "23.07"
_BUILD = "build it with `constructs-triton env build`"
_PLATFORM = "x86_64-linux-gnu"


@environment_rule(
    "python-environment-release",
    source=(
        f"{_MANAGER}, branches r21.08 to r23.07; "
        "github triton-inference-server/python_backend pull request 266"
    ),
)
def environment_release(model: ModelUnderCheck) -> Iterator[Problem]:
    """The release of the image knows the form of ``EXECUTION_ENV_PATH``.

    Triton replaces ``$$TRITON_MODEL_DIRECTORY`` from 21.09 on. From 23.07 on it also accepts a
    folder in place of an archive.
    """
    version = model.target.image_version
    path = model.parameter(PARAMETER)
    if version is None or not path:
        return
    if path.startswith(_MODEL_DIRECTORY) and not is_at_least(version, _PLACEHOLDER_SINCE):
        yield Problem(
            f"{PARAMETER}: Triton {version} does not replace {_MODEL_DIRECTORY}",
            PLACE,
            "use a newer image, or the absolute path of an archive in an image of your own",
        )
    found = environment_of(model)
    if found is not None and found.is_folder and not is_at_least(version, _FOLDER_SINCE):
        yield Problem(
            f"{PARAMETER}: Triton {version} needs an archive, got a folder", PLACE, _BUILD
        )


@environment_warning(
    "python-environment-folder",
    source=(
        "observed with triton server 2.51: without the execute bit the packages are not found; "
        "Amazon S3 stores no modes and no links"
    ),
    hint=f"{_BUILD}: one archive keeps its modes also in S3",
    platforms=SAGEMAKER,
)
def environment_folder(model: ModelUnderCheck) -> Iterator[Problem]:
    """An environment of models that are stored as files in S3 is an archive.

    S3 has no execute bits and no links. Without them Python does not find ``bin/python3`` of a
    folder, and therefore not its packages. The rule applies to ``CompressionType.NONE``.
    """
    found = environment_of(model)
    if found is not None and found.is_folder and model.target.is_uncompressed:
        yield Problem(
            f"{PARAMETER}: {INTERPRETER} of a folder loses its execute bit in S3, "
            "so its packages are not found",
            PLACE,
        )


@environment_warning(
    "python-environment-members",
    source=(
        f"{_MANAGER} from 26.06 on: github triton-inference-server/python_backend pull request "
        "437; observed with libarchive 3.6.2"
    ),
    hint=f"{_BUILD}, or pack the content of its folder with `tar -czf env.tar.gz -C FOLDER .`",
)
def environment_members(model: ModelUnderCheck) -> Iterator[Problem]:
    """No member of a packed environment is unpacked outside of its folder, or through a link.

    Images from 26.06 on refuse absolute paths, paths with ``..`` and paths through a link of the
    same archive, and do not load the model. Older images unpack them. The link itself may point
    anywhere.
    """
    found = environment_of(model)
    if found is not None and found.outside:
        yield Problem(
            f"{PARAMETER}: images from 26.06 on refuse the archive: {found.outside}", PLACE
        )


@environment_warning(
    "python-environment-compiled",
    source="CPython importlib.machinery.EXTENSION_SUFFIXES",
    hint=(
        "build it for the image with `constructs-triton env build --image-version`, on any machine"
    ),
    server_hint="build it on x86_64 Linux with the Python of the image",
)
def environment_compiled(model: ModelUnderCheck) -> Iterator[Problem]:
    """Packages and compiled modules of a packed environment are for the Python and platform of
    AWS's image.

    Python imports ``NAME.cpython-312-x86_64-linux-gnu.so``, ``NAME.abi3.so`` and ``NAME.so``, and
    does not see the files for other versions and platforms. They are there if packages were
    installed on macOS, on Windows, on an Arm processor, or with another Python. The rule reads the
    names of the files and the tags of the wheels.
    """
    found, python = environment_of(model), model.image_python
    if found is None or not model.target.is_prebuilt_image or python is None:
        return
    if found.python not in (None, python):
        return  # python-environment-version reports it
    kind = "package"
    unusable = _unusable_packages(found, python)
    if not unusable:
        kind = "compiled module"
        unusable = _unusable_modules(found, python)
    if not unusable:
        return
    count = len(unusable)
    verb = "s are" if count > 1 else " is"
    yield Problem(
        f"{count} {kind}{verb} not for Python {python} on x86_64 Linux, and cannot be "
        f'imported: "{unusable[0]}"',
        PLACE,
    )


def _unusable_packages(found: PackedEnvironment, python: str) -> list[str]:
    """Return the packages that the image cannot import, each with one of its tags."""
    wheels = sorted(found.wheels.items())
    return [
        f"{package} ({min(tags)})"
        for package, tags in wheels
        if tags and not any(_is_usable(tag, python) for tag in tags)
    ]


def _unusable_modules(found: PackedEnvironment, python: str) -> list[str]:
    """Return the compiled modules that the image cannot import, each with one of its suffixes."""
    usable = {"abi3", f"cpython-{python.replace('.', '')}-{_PLATFORM}"}
    return [
        f"{module.rpartition('/')[2]}.{min(suffixes)}"
        for module, suffixes in sorted(found.extensions.items())
        if usable.isdisjoint(suffixes)
    ]


def _is_usable(tag: str, python: str) -> bool:
    """Whether the image can import a package with a tag,
    such as ``cp312-abi3-manylinux_2_17_x86_64``.
    """
    _, abi, platform = ("--" + tag).rsplit("-", 2)
    is_linux = platform.startswith(("manylinux", "linux_")) and platform.endswith("_x86_64")
    return (is_linux or platform == "any") and abi in (
        "none",
        "abi3",
        f"cp{python.replace('.', '')}",
    )


@warning(
    "python-environment-pythonpath",
    "environment",
    source=(
        "CPython: PYTHONPATH comes before site-packages; "
        "triton python_backend: the stub inherits it"
    ),
    hint=(
        "remove PYTHONPATH from the environment of the container, or acknowledge this if its "
        "folders contain none of the packages"
    ),
)
def environment_pythonpath(model: ModelUnderCheck) -> Iterator[Problem]:
    """The container of a model with a packed environment has no variable ``PYTHONPATH``.

    Its folders come before the packages of the environment, so other versions may be imported.
    """
    if model.parameter(PARAMETER) and model.target.python_path:
        yield Problem(
            f"the folders of the container's PYTHONPATH come before the environment, got \""
            f'{model.target.python_path}"',
            PLACE,
        )
