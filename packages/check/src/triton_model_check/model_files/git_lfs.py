"""Recognizes a Git LFS pointer, the text in place of a large file for which ``git lfs pull`` was not run."""

from __future__ import annotations

from typing import BinaryIO

from triton_model_check.model_files.model_file import FaultCode, FileFault

POINTER_BYTES = 1024
"""A pointer is smaller than this. Source: Git LFS specification."""
POINTER_MESSAGE = "is a Git LFS pointer, not the file itself"
POINTER_HINT = "run `git lfs install` and `git lfs pull`"
_FIRST_LINE = b"version https://git-lfs.github.com/spec/v1"


def is_pointer(content: bytes) -> bool:
    """Whether the content of a file is a pointer. The first ``POINTER_BYTES`` of a file are enough."""
    first, _, _ = content.partition(b"\n")
    return len(content) < POINTER_BYTES and first.rstrip(b"\r") == _FIRST_LINE


def pointer_fault(file: BinaryIO, code: FaultCode) -> FileFault | None:
    """Return the fault of an open file that is a pointer, or ``None``. Reads from the beginning."""
    file.seek(0)
    found = is_pointer(file.read(POINTER_BYTES))
    file.seek(0)
    return FileFault(code, POINTER_MESSAGE, POINTER_HINT) if found else None
