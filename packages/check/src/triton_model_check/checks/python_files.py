"""The files beside a Python model that it opens or that hide a module, without executing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.model.module_index import ModuleIndex
from triton_model_check.model.python_class import ModelClass
from triton_model_check.model.python_contract import UTILS
from triton_model_check.model_config.target import SAGEMAKER

_UTILS_FILE = f"{UTILS}.py"
_NEEDED_BY_STUB = b"deserialize_bytes_tensor"
_LOADERS = {
    "numpy": ("load", "loadtxt", "genfromtxt", "fromfile"),
    "torch": ("load",),
    "joblib": ("load",),
    "pandas": ("read_csv", "read_json", "read_parquet", "read_pickle"),
    "io": ("open",),
}
"""Functions that read the file whose name is their first argument, by module."""
_WRITING = frozenset("wax")
_rule = partial(rule, scope="python", needs_files=True)
_warning = partial(warning, scope="python", needs_files=True)


# --- a file with the name of the backend's module -------------------------------------------------


@_rule(
    "python-backend-module",
    source="triton python_backend src/pb_stub.cc, Stub::Initialize; run with triton server 2.51",
    hint="remove the file; for an editor, put it into a folder outside the repository",
    since="21.06",
)
def backend_module(model: ModelUnderCheck) -> Iterator[Problem]:
    """No file beside ``model.py`` or in the model's folder has the name of the backend's module.

    Python looks into the version folder and into the model's folder before it looks into the folder
    of the backend, so the server imports that file as ``triton_python_backend_utils``. The model
    does not load if the file lacks what the server needs.
    """
    for path, content in _files_of_module(model):
        if _NEEDED_BY_STUB not in content and b"*" not in content:
            message = f"module '{UTILS}' has no attribute '{_NEEDED_BY_STUB.decode()}'"
            yield Problem(f"{message}: this file hides the module of the server", path=path)


@_warning(
    "python-backend-module-copy",
    source="triton python_backend src/pb_stub.cc, Stub::Initialize; run with triton server 2.51",
    hint="remove the file; for an editor, put it into a folder outside the repository",
)
def backend_module_copy(model: ModelUnderCheck) -> Iterator[Problem]:
    """No copy of the backend's module is beside ``model.py`` or in the model's folder.

    The server imports the copy in place of its own module. A copy of another release may lack what
    the server needs, or do something else.
    """
    for path, content in _files_of_module(model):
        if _NEEDED_BY_STUB in content or b"*" in content:
            yield Problem("the server imports this copy in place of its own module", path=path)


def _files_of_module(model: ModelUnderCheck) -> Iterator[tuple[str, bytes]]:
    for folder in ((), *((version,) for version in model.versions_to_load)):
        if model.folder.list(*folder).get(_UTILS_FILE) is False:
            content = model.folder.read(*folder, _UTILS_FILE)
            if content is not None:
                yield model.folder.relative(*folder, _UTILS_FILE), content


# --- files with relative names --------------------------------------------------------------------


@_rule(
    "python-relative-file",
    source="run with triton server 2.51; the working directory is that of the server",
    platforms=SAGEMAKER,
)
def relative_file(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model that reads one of its files while it loads does not use a relative name.

    Python looks for a relative name in the working directory of the server, and not beside
    ``model.py``: the model fails with ``FileNotFoundError``. The rule applies to endpoints with
    AWS's images, whose working directory contains no models. It looks at names that are strings,
    and skips files that change the working directory.
    """
    if model.target.is_prebuilt_image:
        yield from _problems_of_relative_files(model)


@_warning(
    "python-relative-file-on-server",
    source="run with triton server 2.51; the working directory is that of the server",
)
def relative_file_on_server(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model on a server that reads one of its files while it loads does not use a relative name.

    Python looks for a relative name in the working directory of the server. The model fails with
    ``FileNotFoundError``, unless the server was started in the folder of the file. The rule applies
    to images of your own, too, and skips files that change the working directory.
    """
    if not (model.target.is_sagemaker and model.target.is_prebuilt_image):
        yield from _problems_of_relative_files(model)


class _Read(NamedTuple):
    """A call that reads a file, and the name that it has in the source."""

    call: ast.Call
    name: str


def _problems_of_relative_files(model: ModelUnderCheck) -> Iterator[Problem]:
    """Yield each file that is read at load by a path relative to the server."""
    for source in model.python_sources:
        if source.model_class is None or b"chdir" in source.content:
            continue
        version = source.path.removeprefix(f"{model.folder.path}/").partition("/")[0]
        for call, name in _reads_at_load(source.model_class):
            hint = _hint_of_place(model, version, name)
            if hint is not None:
                message = f"No such file or directory: '{name}' in the server's working directory"
                yield Problem(message, path=source.path, line=call.lineno, hint=hint)


def _hint_of_place(model: ModelUnderCheck, version: str, name: str) -> str | None:
    """Return how to write the path of a file of the model, or ``None`` if it has none."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        return None
    if model.folder.size_of(version, *parts) is not None:
        return f'write os.path.join(os.path.dirname(__file__), "{name}")'
    if model.folder.size_of(*parts) is not None:
        return f'write os.path.join(args["model_repository"], "{name}") in initialize'
    return None


def _reads_at_load(model_class: ModelClass) -> Iterator[_Read]:
    """Yield the calls that certainly read a file with a relative name while the model loads."""
    index = model_class.index
    for call in index.of(ast.Call):
        name = _name_that_is_read(index, call)
        if name is None or name.startswith(("/", "~")) or ":" in name:
            continue
        if model_class.runs(call):
            yield _Read(call, name)


def _name_that_is_read(index: ModuleIndex, call: ast.Call) -> str | None:
    """Return the constant name of the file that a call reads; else ``None``."""
    first = call.args[0] if call.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return None
    function = call.func
    if isinstance(function, ast.Name):
        is_reading = function.id == "open" and not index.binds("open")
    else:
        is_reading = isinstance(function, ast.Attribute) and _is_loader(index, function)
    return first.value if is_reading and not _may_write(call) else None


def _is_loader(index: ModuleIndex, function: ast.Attribute) -> bool:
    name = function.value.id if isinstance(function.value, ast.Name) else None
    return any(
        name in index.aliases(module) and function.attr in functions
        for module, functions in _LOADERS.items()
    )


def _may_write(call: ast.Call) -> bool:
    """Whether the mode of ``open`` may create the file, or is not known."""
    modes = [keyword.value for keyword in call.keywords if keyword.arg in ("mode", None)]
    if isinstance(call.func, ast.Name) or getattr(call.func, "attr", "") == "open":
        modes += call.args[1:2]
    return any(
        not isinstance(mode, ast.Constant) or not _WRITING.isdisjoint(str(mode.value))
        for mode in modes
    )
