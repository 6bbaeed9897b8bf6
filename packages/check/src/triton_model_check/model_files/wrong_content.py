"""Recognizes what is often stored in place of a model file."""

from __future__ import annotations

import re
from typing import BinaryIO, NamedTuple

from triton_model_check.model_files.model_file import FaultCode, FileFault

_HEAD_BYTES = 512


class WrongContent(NamedTuple):
    """What the file is in place of a model, and the fix."""

    description: str
    hint: str


_DECOMPRESS = WrongContent("a compressed file", "decompress it")
PICKLE = WrongContent("a Python pickle", "export the model in the format of the backend")
ZIP = WrongContent(
    "a zip archive, as PyTorch and Keras write", "export the model in the format of the backend"
)
_SIGNATURES = {
    b"\x1f\x8b\x08": _DECOMPRESS,
    b"BZh": _DECOMPRESS,
    b"\xfd7zXZ\0": _DECOMPRESS,
    b"\x28\xb5\x2f\xfd": _DECOMPRESS,
    b"PK\x03\x04": ZIP,
    b"\x89HDF\r\n": WrongContent("an HDF5 file", "export the model in the format of the backend"),
}
_PICKLE_BEGINNINGS = re.compile(rb"\x80[\x02\x03][\x8a(\]}cX]|\x80[\x04\x05]\x95")
"""Protocol and first operation, because two bytes alone may be those of a number."""
PLAN_BEGINNING = b"ftrt"
_PLAN_HEADER_BYTES = 28


def recognize(file: BinaryIO) -> WrongContent | None:
    """Return what the file is in place of a model, or ``None``. Reads from the beginning."""
    file.seek(0)
    head = file.read(_HEAD_BYTES)
    if not head:
        return WrongContent("an empty file", "export or copy the model to this file again")
    if not head.strip(b"\0"):
        return WrongContent("a file of zeros", "export or copy the model to this file again")
    if head.lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return WrongContent(
            "a web page", "download the file itself; the page may say why it was not sent"
        )
    if head.startswith(PLAN_BEGINNING):
        return _plan(head)
    if _PICKLE_BEGINNINGS.match(head):
        return PICKLE
    return next((known for start, known in _SIGNATURES.items() if head.startswith(start)), None)


def _plan(head: bytes) -> WrongContent:
    if len(head) < _PLAN_HEADER_BYTES:
        return WrongContent("an incomplete TensorRT plan", "copy the whole file again")
    return WrongContent("a TensorRT plan", 'name it model.plan, and set backend: "tensorrt"')


# Git LFS: the text in place of a large file for which `git lfs pull` was not run.

POINTER_BYTES = 1024
"""A pointer is smaller than this. Source: Git LFS specification."""
POINTER_MESSAGE = "is a Git LFS pointer, not the file itself"
POINTER_HINT = "run `git lfs install` and `git lfs pull`"
_FIRST_LINE = b"version https://git-lfs.github.com/spec/v1"


def is_pointer(content: bytes) -> bool:
    """Whether the content of a file is a pointer.

    The first ``POINTER_BYTES`` of a file are enough.
    """
    first, _, _ = content.partition(b"\n")
    return len(content) < POINTER_BYTES and first.rstrip(b"\r") == _FIRST_LINE


def pointer_fault(file: BinaryIO, code: FaultCode) -> FileFault | None:
    """Return the fault of an open file that is a pointer, or ``None``. Reads from the beginning."""
    file.seek(0)
    found = is_pointer(file.read(POINTER_BYTES))
    file.seek(0)
    return FileFault(code, POINTER_MESSAGE, POINTER_HINT) if found else None
