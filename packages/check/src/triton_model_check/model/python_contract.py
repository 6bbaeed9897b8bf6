"""The names that Triton's Python backend has in each release.

Source: python_backend, src/pb_stub.cc and src/resources/triton_python_backend_utils.py, of each
release from 20.10 to 26.07; ``python_backend.json`` has the names of each.
"""

from __future__ import annotations

from functools import cache

from triton_model_check.facts.published import load

MODEL = "TritonPythonModel"
UTILS = "triton_python_backend_utils"
C_UTILS = "c_python_backend_utils"


@cache
def names_of(group: str, version: str | None) -> frozenset[str]:
    """Return the names of a group of ``python_backend.json`` that a release has.

    ``None``, and a release that is newer than the table, have all names.
    """
    names: dict[str, str] = load("python_backend")[group]
    return frozenset(name for name, since in names.items() if version is None or since <= version)


def members_of(class_name: str, version: str | None) -> frozenset[str]:
    """Return what the objects of a class of the backend have in a release; ``None`` has all."""
    names: dict[str, str] = load("python_backend")["members"][class_name]
    return frozenset(name for name, since in names.items() if version is None or since <= version)


def is_outside_table(version: str | None) -> bool:
    """Whether a release may have names that ``python_backend.json`` does not have.

    Those of newer releases are not known yet. Releases before the oldest had names that were
    removed, and the table states no arguments of theirs.
    """
    if version is None:
        return False
    table = load("python_backend")
    return not table["oldest_release"] <= version <= table["newest_release"]
