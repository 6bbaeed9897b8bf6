"""Describes a TensorRT plan by its header, the version of TensorRT that built it, and by its
manifest.

Source: NVIDIA TensorRT, samples/common/sampleEngines.cpp, printPlanVersion: the tag ``ftrt``, the
number 0 of the serialization format, and the version in the bytes 24 to 27. Nothing published tells
from the header whether a plan is compatible with other versions or other GPUs, or which tensors it
has.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from triton_model_check.facts.images import image_version as image_facts
from triton_model_check.model_files.model_file import FileFault, ModelFile
from triton_model_check.model_files.plan_manifest import manifest_of_file
from triton_model_check.model_files.wrong_content import recognize

_TAG = b"ftrt"
_HEADER_BYTES = 28
_VERSION = slice(24, 28)
_FIRST_VERSION = 8


def describe_plan(path: Path, file: BinaryIO, image_version: str | None) -> ModelFile:
    """Describe an open plan file; the whole file is read only to compare it with its manifest."""
    header = file.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or header[1:4] != _TAG[1:]:
        return ModelFile(path, "tensorrt_plan", faults=(_not_a_plan(file),))
    manifest = manifest_of_file(path)
    inputs, outputs = (manifest.inputs, manifest.outputs) if manifest is not None else ((), ())
    if not _has_known_header(header):
        unchecked = ("content not checked",)
        has_manifest = manifest is not None
        return ModelFile(
            path, "tensorrt_plan", inputs, outputs, not_checked=unchecked, has_manifest=has_manifest
        )
    version = ".".join(str(part) for part in header[_VERSION])
    needed = image_facts(image_version).tensorrt if image_version is not None else None
    note = (
        f"built with TensorRT {version}; the image must have the same version, which is not checked"
    )
    return ModelFile(
        path,
        "tensorrt_plan",
        inputs,
        outputs,
        versions={"tensorrt": version},
        faults=tuple(_version_faults(version, needed, image_version)),
        not_checked=(note,) if needed is None else () if inputs else ("tensors not checked",),
        has_manifest=manifest is not None,
    )


def _has_known_header(header: bytes) -> bool:
    """Older versions of TensorRT wrote other headers, which are not published."""
    is_known = header[:4] == _TAG and int.from_bytes(header[4:8], "little") == 0
    return is_known and header[_VERSION][0] >= _FIRST_VERSION


def _not_a_plan(file: BinaryIO) -> FileFault:
    wrong = recognize(file)
    message = "is not a TensorRT plan" + (f": it is {wrong.description}" if wrong else "")
    hint = (
        wrong.hint if wrong else "build the plan with trtexec --saveEngine, and copy the whole file"
    )
    return FileFault("plan-not-a-plan", message, hint)


def _version_faults(
    version: str, needed: str | None, image_version: str | None
) -> Iterator[FileFault]:
    """Compare as many parts of the version as are known of the image."""
    if needed is not None and version.split(".")[: needed.count(".") + 1] != needed.split("."):
        message = (
            "The engine plan file is not compatible with this version of TensorRT, expecting "
            f"library version {needed} got {version}: image {image_version} has TensorRT {needed}"
        )
        hint = (
            f"build the plan with TensorRT {needed}, with `constructs-triton compile "
            f"--image-version {image_version}` or in the endpoint's image"
        )
        yield FileFault("plan-version", message, hint)
