"""Infers the backend of a model as Triton does: from the configuration, then from the files.

Source: triton core, AutoCompleteBackendFields and GetBackendTypeFromPlatform.
"""

from __future__ import annotations

from collections.abc import Container
from pathlib import PurePath
from typing import NamedTuple

from triton_model_check.facts.published import load
from triton_model_check.model.folder import ModelFolder

__all__ = ["infer_backend"]


class KnownBackend(NamedTuple):
    """A backend that Triton's core knows by name: its platforms,
    each with the default model file.
    """

    name: str
    default_files: dict[str, str]
    platform_required: bool


KNOWN_BACKENDS = {
    name: KnownBackend(name, **each) for name, each in load("names")["backends"].items()
}
"""Backends whose platform Triton checks. Other backends accept any platform."""

_BACKEND_OF_PLATFORM = {
    platform: backend.name
    for backend in KNOWN_BACKENDS.values()
    for platform in backend.default_files
}
_BACKEND_OF_PLATFORM["libtorch"] = "pytorch"

BACKEND_OF_OTHER_NAME = {**_BACKEND_OF_PLATFORM, "onnx": "onnxruntime", "onnxrt": "onnxruntime"}
"""The backends by names that are often written in their place.

No image of NVIDIA has such a backend.
"""

# In the order in which the core looks at the first version directory.
_BACKEND_OF_FILE: dict[str, str] = load("names")["backend_of_file"]
MODEL_FILES = tuple(_BACKEND_OF_FILE)
"""The names by which Triton infers the backend of a model."""

_DEFAULT_FILES = {"openvino": "model.xml", "python": "model.py"}
_DIRECTORIES_ONLY = frozenset({"model.savedmodel"})
_DIRECTORIES_TOO = frozenset({"model.onnx", "model.xml", "model.py"})


class Backend(NamedTuple):
    """Backend and platform after completion, and the file in a version directory;
    "" means unknown.
    """

    backend: str
    platform: str
    model_file: str


def infer_backend(model: ModelFolder) -> Backend:
    """Return the backend as Triton completes it, or ``Backend("", ...)`` if it is unknown."""
    config = model.config
    given = (
        Backend("", "", "")
        if config is None
        else Backend(config.backend, config.platform, config.default_model_filename)
    )
    if given.platform == "ensemble":
        return given
    backend = given.backend or _from_fields(given)
    if not backend and not given.platform and not given.model_file:
        backend = _from_files(model)
    return _completed(backend, given)


def backend_of_file(model_file: str, platform: str = "ensemble") -> str:
    """Return the backend that ``default_model_filename`` implies beside ``platform``, or ""."""
    backend = _BACKEND_OF_FILE.get(model_file, "")
    return "" if backend == "tensorflow" and platform else backend


def is_python_model(content: bytes | None) -> bool:
    """Whether a Python file is a model of Triton, and not a module that a model imports."""
    return content is not None and b"TritonPythonModel" in content


def fix_of_wrong_backend(model: ModelFolder, version: str, backend: str) -> str | None:
    """Return the hint for a version directory without a model of ``backend`` and
    with that of another one.
    """
    file_of_suffix = {
        PurePath(file).suffix: file for file in _BACKEND_OF_FILE if file != "model.py"
    }
    found = _other_model(model, version, file_of_suffix.keys())
    expected = file_of_suffix.get(PurePath(found).suffix, found)
    other = _BACKEND_OF_FILE.get(expected, backend)
    if other == backend or model.config is None:
        return None

    hint = f'"{found}" is a model of the backend {other}: write {_field_of(other, expected)}'
    replaced = []
    if model.config.backend:
        replaced.append(f'backend: "{model.config.backend}"')
    if model.config.platform:
        replaced.append(f'platform: "{model.config.platform}"')
    if replaced:
        hint = f"{hint} in place of {' and '.join(replaced)}"
    if found != expected:
        hint = f'{hint}, and rename "{found}" to "{expected}"'
    return hint


def _other_model(model: ModelFolder, version: str, suffixes: Container[str]) -> str:
    """Return the first file of a version directory that is a model; "" if there is none."""
    for name in sorted(model.list(version)):
        if name == "model.py":
            if is_python_model(model.read(version, name)):
                return name
        elif PurePath(name).suffix in suffixes:
            return name
    return ""


def _field_of(backend: str, file: str) -> str:
    """The field that lets Triton load this file:
    the platform where the backend alone is not enough.
    """
    known = KNOWN_BACKENDS.get(backend)
    if known is None or not known.platform_required:
        return f'backend: "{backend}"'
    return next(
        f'platform: "{name}"' for name, default in known.default_files.items() if default == file
    )


def _from_fields(given: Backend) -> str:
    """The first backend, in the order of the core, that the platform or the model file implies."""
    implied = (
        _BACKEND_OF_PLATFORM.get(given.platform),
        backend_of_file(given.model_file, given.platform),
    )
    return next((name for name in _BACKEND_OF_FILE.values() if name in implied), "")


def _from_files(model: ModelFolder) -> str:
    """Return the backend that the files of the first version imply."""
    directories = sorted(name for name, is_directory in model.entries.items() if is_directory)
    content = model.list(directories[0]) if directories else {}
    for file, backend in _BACKEND_OF_FILE.items():
        is_directory = content.get(file)
        if is_directory is None:
            continue
        if file in _DIRECTORIES_TOO or is_directory == (file in _DIRECTORIES_ONLY):
            return backend
    return model.name.partition(".")[2]


def _completed(backend: str, given: Backend) -> Backend:
    """Return a backend with the platform and the model file that Triton completes."""
    known = KNOWN_BACKENDS.get(backend)
    platform = given.platform
    if known and not platform and not known.platform_required:
        platform = next(iter(known.default_files))
    if known and not platform and given.model_file:
        platform = next(
            (name for name, file in known.default_files.items() if file == given.model_file), ""
        )
    default = known.default_files.get(platform, "") if known else _DEFAULT_FILES.get(backend, "")
    return Backend(backend, platform, given.model_file or default)
