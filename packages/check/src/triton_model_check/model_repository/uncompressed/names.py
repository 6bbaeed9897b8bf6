"""SageMaker's rules for the names of the files of an uncompressed model.

Source: SageMaker API reference, S3ModelDataSource, ``CompressionType``; Amazon S3 user guide,
"Naming Amazon S3 objects".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["KEEP_FILE", "name_problems"]

KEEP_FILE = ".triton-keep"
"""Name of a file that keeps an otherwise empty folder, since S3 has no folders.

Triton ignores it.
"""

_MAX_NAME_BYTES = 255
_MAX_KEY_BYTES = 1024


def name_problems(paths: Iterable[str], prefix: str = "") -> list[str]:
    """Return what is wrong with the paths of files, each with its path and a fix.

    ``paths`` are relative to ``/opt/ml/model``. ``prefix`` is the S3 prefix of the files.
    """
    known = set(paths)
    prefix_bytes = len(prefix.encode())
    found = []
    for path in sorted(known):
        for problem in _problems(path, known, prefix_bytes):
            found.append(f"{path[:300]!r}: {problem}")
    return found


def _problems(path: str, known: set[str], prefix_bytes: int) -> Iterator[str]:
    """Yield why a file cannot be an object in S3."""
    parts = path.split("/")
    key_bytes = prefix_bytes + len(path.encode())

    if "\0" in path:
        yield "has a NUL in its name; rename it"
    if any(part.strip() in ("", ".", "..") for part in parts):
        yield 'has an empty name, "." or ".." in its path; rename it'
    if any(len(part.encode()) > _MAX_NAME_BYTES for part in parts):
        yield f"has a name of more than {_MAX_NAME_BYTES} bytes; shorten it"
    if key_bytes > _MAX_KEY_BYTES:
        yield f"its S3 key has {key_bytes} bytes, and S3 allows {_MAX_KEY_BYTES}; shorten the path"
    above = ("/".join(parts[:count]) for count in range(1, len(parts)))
    if any(folder in known for folder in above):
        yield "is below a file, which cannot be a folder too; rename one of them"
