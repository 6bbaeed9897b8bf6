"""What Python models import, and which packages the image or the packed environment has."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from constructs_triton_core.spelling import closest
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.python_environment import OWN_STUB, PARAMETER, environment_of
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.facts.images import image_packages
from triton_model_check.facts.published import load
from triton_model_check.fixes.steps import replace_word, unsafe
from triton_model_check.model_config.target import SAGEMAKER

if TYPE_CHECKING:
    from triton_model_check.model.python_source import Import, PythonSource

_MOST_MODULES = 50  # of the model's folder that are read for what they import
_UTILS = "triton_python_backend_utils"
# Modules of the backend itself, in every image.
_OWN_MODULES = frozenset((_UTILS, "c_python_backend_utils"))
# The standard library had these modules until Python 3.11.
_STDLIB = sys.stdlib_module_names | {"asynchat", "asyncore", "distutils", "imp", "smtpd"}
# Packages on PyPI that have another name than their module.
_DISTRIBUTIONS = load("names")["distributions"]


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
    """Return how to give a model a package that it imports."""
    if package in model.context.directories and package not in model.context.folders:
        return (
            f'the folder "{package}" beside the models is not on their path: move it into '
            f"{model.name}/, or build it as a package of the environment, so that it is not taken "
            "from PyPI, which may have another package of this name"
        )
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
    if not model.target.is_prebuilt_image or OWN_STUB in model.folder.entries:
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
