"""Marks tests that start the Triton server. They are skipped only where it cannot be installed.

If nvidia-pytriton is installed, nothing is skipped, so that a broken installation fails. With
CONSTRUCTS_TRITON_REQUIRE_SERVER nothing is skipped either.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

import pytest

_OLDEST_GLIBC = (2, 35)


def why_absent() -> str | None:
    """Return why there is no server; ``None`` if there is one or must be one."""
    if os.environ.get("CONSTRUCTS_TRITON_REQUIRE_SERVER") or _has_wheel():
        return None
    if sys.platform != "linux":
        return f"the Triton server runs on Linux, this is {sys.platform}"
    if sys.version_info >= (3, 13):
        return "the server's Python backend needs NumPy below 2, which Python 3.13 does not have"
    name, version = platform.libc_ver()
    if name != "glibc" or tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_GLIBC:
        return (
            "nvidia-pytriton has wheels for glibc 2.35 or newer, "
            f"this is {name or 'another'} {version}"
        )
    return (
        f"nvidia-pytriton is not installed for {platform.machine()}; pip install "
        "'constructs-triton[local]'"
    )


def _has_wheel() -> bool:
    try:
        importlib.metadata.distribution("nvidia-pytriton")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


_REASON = why_absent()
needs_server = pytest.mark.skipif(_REASON is not None, reason=_REASON or "")
