"""The files beside an ONNX model that hold its weights (rule F8 of ``onnx_file``)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from constructs_triton_core.untrusted.regular_files import open_regular
from triton_model_check.facts.backend_releases import OnnxRuntime
from triton_model_check.model_files.model_file import FileFault
from triton_model_check.model_files.onnx_graph import OnnxGraph
from triton_model_check.model_files.onnx_tensors import ExternalData
from triton_model_check.model_files.wrong_content import (
    POINTER_BYTES,
    POINTER_HINT,
    POINTER_MESSAGE,
    is_pointer,
)
from triton_model_check.untrusted.elsewhere import note_path

_MODEL_FOLDER = "/opt/ml/model/"


def used_external_data(graph: OnnxGraph) -> Iterator[ExternalData]:
    """Yield the external data that the runtime reads: that of initializers which are used."""
    read = {name for node in graph.all_nodes() for name in node.reads()}
    read |= {each.name for each in graph.outputs}
    for each in graph.all_graphs():
        yield from (
            data for data in each.external_data if data.initializer in read or not data.initializer
        )


def external_bytes(path: Path, graph: OnnxGraph) -> int | None:
    """Return how many bytes of other files the runtime reads; ``None`` if that is not known.

    Initializers with the same place in a file count once.
    """
    sizes: dict[tuple[str, int | None], int] = {}
    for each in used_external_data(graph):
        size = each.size if each.size is not None else each.length
        is_here = not each.location.startswith("/")
        if (
            size is None
            or size < 0
            or not is_here
            or _file_size(f"{path.parent}/{each.location}") is None
        ):
            return None
        place = (each.location, each.offset)
        sizes[place] = max(size, sizes.get(place, 0))
    return sum(sizes.values())


def external_data_faults(
    path: Path, graph: OnnxGraph, runtime: OnnxRuntime | None
) -> Iterator[FileFault]:
    """Yield why the runtime cannot read the data of the model in other files."""
    for external in used_external_data(graph):
        yield from _faults(path, external, runtime)


def _faults(path: Path, external: ExternalData, runtime: OnnxRuntime | None) -> Iterator[FileFault]:
    """Yield what is wrong with where the data of a tensor is."""
    in_container = f"{_MODEL_FOLDER}{path.parent.parent.name}/{path.parent.name}/"
    location = external.location
    is_absolute = location.startswith("/")
    folder = os.path.abspath(path.parent)  # noqa: PTH100 - the runtime does not follow links here
    is_outside = is_absolute or not os.path.abspath(f"{folder}/{location}").startswith(f"{folder}/")  # noqa: PTH100
    if not location:
        yield _external_fault(external, "names no file", _SAVE_AGAIN)
    elif external.wrong_entry:
        reason = f'has the entry "{external.wrong_entry}", which is empty or unknown'
        yield _external_fault(external, reason, _SAVE_AGAIN)
    elif runtime is not None and not runtime.external_data_outside_folder and is_outside:
        yield _external_fault(
            external, f'is in "{location}", outside the folder of the model', _SAVE_AGAIN
        )
    elif not is_absolute or location.startswith(in_container):
        relative = location.removeprefix(in_container)
        yield from _size_faults(path.parent, external._replace(location=relative))


def _size_faults(folder: Path, external: ExternalData) -> Iterator[FileFault]:
    """Yield why the runtime cannot read a tensor from the file that has its data."""
    path = f"{folder}/{external.location}"
    note_path(path, external.location)
    size = _file_size(path)
    wanted = external.size
    length = external.length or wanted or 0
    end = (external.offset or 0) + length
    if size is None:
        reason = f'is in "{external.location}", which does not exist'
        yield _external_fault(external, reason, _COPY.format(external.location))
    elif external.length and wanted is not None and length != wanted:
        reason = f"has the length {length}, but its type and dims need {wanted} bytes"
        yield _external_fault(external, reason, _SAVE_AGAIN)
    elif external.offset is None or external.offset < 0:
        yield _external_fault(external, "has an offset that is not a number of bytes", _SAVE_AGAIN)
    elif size < end and _is_pointer(path):
        yield FileFault("onnx-external-data", POINTER_MESSAGE, POINTER_HINT, external.location)
    elif size < end:
        reason = f'ends at byte {end} of "{external.location}", which has only {size} bytes'
        yield _external_fault(external, reason, f'copy the whole file "{external.location}" again')


def _file_size(path: str) -> int | None:
    """Return the size of a file; a path that ends in a slash is none."""
    try:
        return os.path.getsize(path) if os.path.isfile(path) else None  # noqa: PTH113, PTH202 - the slash
    except (OSError, ValueError):
        return None


def _is_pointer(path: str) -> bool:
    try:
        with open_regular(path) as file:
            return is_pointer(file.read(POINTER_BYTES) or b"")
    except (OSError, ValueError):
        return False


_COPY = (
    'copy the model\'s data file to "{}" in the folder of the .onnx file; its name must not change'
)
_SAVE_AGAIN = (
    "load the model with onnx.load where its data is complete, and save it again with "
    "onnx.save(model, path, save_as_external_data=True)"
)


def _external_fault(external: ExternalData, reason: str, hint: str) -> FileFault:
    message = f'the external data of "{external.initializer}" {reason}'
    return FileFault("onnx-external-data", message, hint)
