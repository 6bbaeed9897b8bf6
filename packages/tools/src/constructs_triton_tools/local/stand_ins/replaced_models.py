"""Runs another model in the place of one that cannot run on a CPU, with the same configuration.

A stand-in is an ONNX file, or a folder with the ``model.py`` of a Python model. It is copied into
the unpacked model.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from constructs_triton_core.errors import ArchiveError, InvalidValueError, LocalEndpointError
from constructs_triton_core.spelling import did_you_mean, quoted
from constructs_triton_core.untrusted.budget import OverBudgetError
from constructs_triton_tools.local.sources.specs import ContainerSpec, EndpointSpec, variants_of
from triton_model_check.model.folder import CONFIG_FILE, ModelFolder
from triton_model_check.model_config.schema import new_model_config
from triton_model_check.model_config.text import format_model_config
from triton_model_check.model_files.onnx_graph import OnnxGraph, read_model
from triton_model_check.model_files.protobuf_wire import MessageFile, WireError
from triton_model_check.model_repository.member_checks import normalize
from triton_model_check.untrusted.tar_reader import read_members

_ONNX_FILE = "stand_in.onnx"
_PYTHON_FILE = "model.py"
#: The folder into which an archive is unpacked. It is the name of a model with its config.pbtxt at
#: the root.
_ROOT_MODEL = "model"


def find_stand_ins(given: Mapping[str, str]) -> dict[str, Path]:
    """Return the absolute paths of stand-ins, by the name of the model."""
    return {name: _checked(name, Path(path)) for name, path in given.items()}


def _checked(name: str, path: Path) -> Path:
    if not (path / _PYTHON_FILE).is_file() and not (path.is_file() and path.suffix == ".onnx"):
        raise InvalidValueError(
            f"--stand-in {name}: must be an existing .onnx file, or a folder with a "
            f"{_PYTHON_FILE}, got {str(path)!r}; export the model to ONNX, "
            "or write it for the Python backend"
        )
    return path.resolve()


def put_in_place(models: Iterable[ModelFolder], stand_ins: Mapping[str, Path]) -> dict[str, Path]:
    """Replace the models that have a stand-in; return those stand-ins by the name of the model."""
    used = {}
    for model in models:
        if model.name in stand_ins:
            used[model.name] = stand_ins[model.name]
            try:
                _replace(model, used[model.name])
            except (OSError, WireError, OverBudgetError) as error:
                raise LocalEndpointError(
                    f"--stand-in {model.name}: {used[model.name]} "
                    f"cannot be read ({error}); export it again"
                ) from error
    return used


def _replace(model: ModelFolder, stand_in: Path) -> None:
    is_onnx = stand_in.is_file()
    for version in model.version_directories or {"1": 1}:
        folder = model.directory / version
        folder.mkdir(exist_ok=True)
        if is_onnx:
            _copy_onnx(stand_in, folder)
        else:
            shutil.copytree(stand_in, folder, dirs_exist_ok=True)
    config = new_model_config()
    if model.config is not None:
        config.CopyFrom(model.config)
    config.backend = "onnxruntime" if is_onnx else "python"
    config.default_model_filename = _ONNX_FILE if is_onnx else _PYTHON_FILE
    config.ClearField("platform")
    config.ClearField("cc_model_filenames")
    (model.directory / CONFIG_FILE).write_text(format_model_config(config), encoding="utf-8")


def _copy_onnx(stand_in: Path, folder: Path) -> None:
    """Copy the file, and the files beside it that contain its weights."""
    shutil.copy(stand_in, folder / _ONNX_FILE)
    with stand_in.open("rb") as file:
        graph = read_model(MessageFile(file).root()).graph or OnnxGraph()
    locations: set[str] = set()
    for part in graph.all_graphs():
        locations.update(tensor.location for tensor in part.external_data)
    for location in locations:
        target = folder / location
        if not target.resolve().is_relative_to(folder.resolve()):
            raise LocalEndpointError(
                f"{stand_in}: the file of its weights must be below its folder, got {location!r}; "
                "save the model with its weights beside it"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(stand_in.parent / location, target)


def check_replaced_names(given: Iterable[str], specs: Sequence[EndpointSpec]) -> None:
    """Check that each name is that of a model, or of an archive and a model in it.

    Nothing is checked if a multi-model endpoint gets its archives later. Archives are read only
    until all names are found.
    """
    missing = set(given)
    known = set[str]()
    containers = [variant.container for _, variant in variants_of(specs)]
    if not missing or any(_gets_archives_later(container) for container in containers):
        return
    for name in chain.from_iterable(_names(container, missing) for container in containers):
        known.add(name)
        missing.discard(name)
        if not missing:
            return
    raise _unknown(min(missing), known)


def _gets_archives_later(container: ContainerSpec) -> bool:
    """Whether a container may load archives that are not known when it starts."""
    if not container.is_multi_model:
        return False
    return container.fetch_archive is not None or not container.archives


def _names(container: ContainerSpec, wanted: Iterable[str]) -> Iterator[str]:
    if container.files is not None:
        yield from _models_of(container.files)
    if container.archive is not None:
        yield from _models_in(container.archive)
    for target_model in sorted(
        container.archives, key=lambda key: not any(name.startswith(f"{key}/") for name in wanted)
    ):
        for model in _models_in(container.archives[target_model]):
            yield model
            yield f"{target_model}/{model}"


def _models_in(archive: Path) -> Iterator[str]:
    with suppress(ArchiveError):  # reported when the archive is unpacked
        for member in read_members(archive):
            yield from _models_of(
                [f"{normalize(member.name)}/" if member.is_directory else member.name]
            )


def _models_of(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        folder, slash, _ = normalize(path).partition("/")
        if slash or path.endswith("/"):
            yield folder
        elif folder == CONFIG_FILE:
            yield _ROOT_MODEL


def _unknown(name: str, known: Iterable[str]) -> InvalidValueError:
    names = sorted(filter(None, known))
    alike = [other for other in names if ("/" in other) == ("/" in name)] or names
    hint = " ".join(filter(None, [did_you_mean(name, names), f"the models are {quoted(alike)}"]))
    return InvalidValueError(
        f'--stand-in: no model of this run has this name, got "{name}"; {hint}'
    )
