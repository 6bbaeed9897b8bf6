"""Writes what a maintainer needs after an error that this package did not expect."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence

_PACKAGES = (
    *(
        "constructs-triton",
        "constructs-triton-core",
        "constructs-triton-client",
        "triton-model-check",
    ),
    *(
        "cdk-rehearse",
        "aws-cdk-lib",
        "boto3",
        "botocore",
        "moto",
        "numpy",
        "nvidia-pytriton",
        "protobuf",
    ),
    "urllib3",
)


def write_bug_report(error: BaseException, program: str, words: Sequence[str]) -> str:
    """Write the command, the versions and the traceback into a new file, and return its path."""
    # Only the user may read the file: a command line may contain what others must not see.
    number, path = tempfile.mkstemp(prefix=f"{program}-error-", suffix=".txt")
    with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.writelines(f"{line}\n" for line in _lines(error, program, words))
    return path


def _lines(error: BaseException, program: str, words: Sequence[str]) -> Iterator[str]:
    yield f"{program} {shlex.join(words)}"
    yield ""
    yield (
        f"Python {sys.version.split()[0]} on {platform.system()} "
        f"{platform.release()} {platform.machine()}"
    )
    for name in _PACKAGES:
        yield f"{name} {_version(name)}"
    yield ""
    yield "".join(traceback.format_exception(error)).rstrip()


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
