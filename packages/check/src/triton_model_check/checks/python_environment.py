"""Packed Python environments, which ``EXECUTION_ENV_PATH`` names, and what models import.

Of an environment only the names of its files are read.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from constructs_triton_core.findings import Severity
from constructs_triton_core.spelling import closest
from triton_model_check.checks.files import pointer_path
from triton_model_check.checks.model_under_check import ENVIRONMENT_PARAMETER, ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.facts.images import image_packages
from triton_model_check.facts.published import load
from triton_model_check.fixes.steps import replace_word, unsafe
from triton_model_check.model_config.target import SAGEMAKER

if TYPE_CHECKING:
    from triton_model_check.model.packed_environment import PackedEnvironment
    from triton_model_check.model.python_source import Import, PythonSource

_MANAGER = "triton python_backend EnvironmentManager"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"
PARAMETER = ENVIRONMENT_PARAMETER
PLACE = ("parameters", PARAMETER)
_OWN_STUB = "triton_python_backend_stub"
_MOST_MODULES = 50  # of the model's folder that are read for what they import
_UTILS = "triton_python_backend_utils"
# Modules of the backend itself, in every image.
_OWN_MODULES = frozenset((_UTILS, "c_python_backend_utils"))
_STDLIB = sys.stdlib_module_names | {
    "asynchat",
    "asyncore",
    "distutils",
    "imp",
    "smtpd",
}  # until Python 3.11
# Packages on PyPI that have another name than their module.
_DISTRIBUTIONS = load("names")["distributions"]
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
    if wanted is None or found is None or _OWN_STUB in model.folder.entries:
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
    version, found = model.target.image_version, environment_of(model)
    if found is None:
        return
    is_new = found.numpy is not None and not found.numpy.startswith(("0.", "1."))
    if is_new and _OWN_STUB not in model.folder.entries:
        yield Problem(
            f"the environment has NumPy {found.numpy}, which image {version} cannot use", PLACE
        )


# --- imports --------------------------------------------------------------------------------------


@rule(
    "python-import",
    "python",
    source="triton python_backend Stub::Initialize",
    hint=f"write `import {_UTILS} as pb_utils`",
    needs_files=True,
)
def misspelled_import(model: ModelUnderCheck) -> Iterator[Problem]:
    """The name of the module ``triton_python_backend_utils`` is not misspelled.

    Only the Python backend contains this module; no package of that name or a similar one needs to
    be installed.
    """
    for path, each in _foreign_imports(model, model.python_sources):
        if each.is_loaded and _is_misspelled(each.module):
            fix = unsafe(replace_word(each.module, _UTILS))
            yield Problem(f"No module named '{each.module}'", path=path, line=each.line, fix=fix)


@warning(
    "python-import-missing",
    "python",
    source="triton server build.py: Python packages of the image",
    needs_files=True,
    platforms=SAGEMAKER,
)
def missing_import(model: ModelUnderCheck) -> Iterator[Problem]:
    """AWS's image or the packed environment contains each imported package.

    The rule applies to endpoints with AWS's images. It skips imports inside ``if``, ``try`` and
    ``with``, files that change ``sys.path``, and environments whose content is not known. It is a
    warning because AWS does not publish the packages of its images.
    """
    for package, (path, each) in _missing(model).items():
        where = "packed environment" if model.parameter(PARAMETER) else "image"
        hint = _import_hint(model, _DISTRIBUTIONS.get(package, package))
        yield Problem(
            f'the {where} has no package "{package}"', path=path, line=each.line, hint=hint
        )


def imports_not_checked(model: ModelUnderCheck) -> tuple[str, ...]:
    """Say which packages a server may not have: there,
    ``python-import-missing`` does not know its image.
    """
    if model.target.is_sagemaker or not model.target.local_files:
        return ()
    return tuple(
        f'{path}: import not checked: the image may have no package "{package}"'
        for package, (path, _) in _missing(model).items()
    )


def _missing(model: ModelUnderCheck) -> dict[str, tuple[str, Import]]:
    """The packages that are not known to be installed, each with its first import."""
    installed = _installed(model)
    found: dict[str, tuple[str, Import]] = {}
    sources = () if installed is None else _loaded_sources(model)
    for path, each in _foreign_imports(model, sources):
        package = each.module.partition(".")[0]
        if package not in (installed or ()) and not _is_misspelled(each.module):
            found.setdefault(package, (path, each))
    return found


def _import_hint(model: ModelUnderCheck, package: str) -> str:
    if model.parameter(PARAMETER):
        return f"add {package} to the requirements of the environment, and build it again"
    return (
        f"write {package} into requirements.txt in the folder of the models, run "
        f'`constructs-triton env build` on it, and write "{model.name}" = {{ requirements = '
        '"requirements.txt" } below [python_environments] in triton-models.toml there; '
        "or use an image of your own"
    )


def _is_misspelled(module: str) -> bool:
    name = module.partition(".")[0]
    words = name.lower()
    is_candidate = "backend" in words or ("triton" in words and "python" in words)
    is_module = name in _OWN_MODULES or name in image_packages(None)
    return is_candidate and not is_module and closest(_UTILS, [name]) is not None


def _loaded_sources(model: ModelUnderCheck) -> Iterator[PythonSource]:
    """Yield the model files, and the modules of the folder that loading them certainly imports."""
    from triton_model_check.model.python_calls import imported_files
    from triton_model_check.model.python_source import PythonSource, is_over_budget

    found = {source.path: source for source in model.python_sources}
    yield from found.values()
    file = model.completed.model_file
    waiting = [(version, f"{version}/{file}") for version in model.versions_to_load]
    while waiting and len(found) < _MOST_MODULES:
        version, path = waiting.pop(0)
        source = found.get(model.folder.relative(*path.split("/")))
        if source is None or source.tree is None or b"sys.path" in source.content:
            continue
        body: list[ast.stmt] = [
            each for each in source.tree.body if isinstance(each, ast.Import | ast.ImportFrom)
        ]
        tree = ast.Module(body, type_ignores=[])
        for imported in imported_files(model.folder, path, version, tree):
            full = model.folder.relative(*imported.split("/"))
            content = model.folder.read(*imported.split("/"))
            if full not in found and content is not None and not is_over_budget(content):
                found[full] = PythonSource(full, content, source.python)
                waiting.append((version, imported))
                yield found[full]


def _foreign_imports(
    model: ModelUnderCheck, sources: Iterable[PythonSource]
) -> Iterator[tuple[str, Import]]:
    """Yield the imports of modules that are neither in the standard library
    nor in the model's folder.
    """
    known = {
        *_OWN_MODULES,
        *model.folder.entries,
        *(name for each in model.versions_to_load for name in model.folder.list(each)),
    }
    local = {name.partition(".")[0] for name in known}
    for source in sources:
        for each in source.imports:
            package = each.module.partition(".")[0]
            if package not in _STDLIB and package not in local:
                yield source.path, each


def _installed(model: ModelUnderCheck) -> frozenset[str] | None:
    """The packages of the image and of the packed environment,
    or ``None`` if they are not known.
    """
    if not model.target.is_prebuilt_image or _OWN_STUB in model.folder.entries:
        return None
    packages = image_packages(model.target.image_version)
    if not model.parameter(PARAMETER):
        return packages
    found = environment_of(model)
    if (
        found is None
        or not found.is_complete
        or any(name.endswith((".pth", ".egg")) for name in found.packages)
    ):
        return None
    return packages | {name.partition(".")[0] for name in found.packages}
