"""Tags of NVIDIA's images: the release, and the flavor that decides which backends it has.

Sources: triton vllm_backend README and tensorrtllm_backend docs/build.md, for what the two flavors
are built with; triton server docs/introduction/compatibility.md, for the Python of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from constructs_triton_core.facts.versions import parse_version

__all__ = ["FLAVORS", "OTHER_PYTHON", "flavor_of", "read_image_tag", "release_of"]

FLAVORS: Mapping[str, frozenset[str]] = {
    "vllm-python-py3": frozenset({"vllm", "python"}),
    "trtllm-python-py3": frozenset({"tensorrtllm", "python"}),
}
"""The backends of the flavors that do not have those of ``py3``; those of others are not known."""
OTHER_PYTHON: Mapping[str, str] = {"24.11-trtllm-python-py3": "3.10"}
"""The Python of the tags that do not have that of ``py3`` of the same release."""
_ALL_BACKENDS = "py3"
_REFERENCE = re.compile(r"(?:[^@]*[/:])?([^/:@]+)(?:@sha256:[0-9a-f]+)?")


def read_image_tag(place: str, text: str) -> str:
    """Return the release of an image, with its flavor unless that is ``py3``.

    Args:
        place: What has the value, for the message of the error.
        text: A release such as ``"26.05"``, a tag such as ``"25.06-trtllm-python-py3"``, or an
            image such as ``"nvcr.io/nvidia/tritonserver:24.10-py3"``.

    Raises:
        InvalidValueError: it names no release.
    """
    found = _REFERENCE.fullmatch(text.strip())
    tag = text if found is None else found[1]
    version, _, flavor = tag.partition("-")
    parse_version(version if flavor else tag, place)  # "26.05-" is no version
    if flavor in ("", _ALL_BACKENDS):
        return version
    return tag


def release_of(tag: str) -> str:
    """Return the release of what ``read_image_tag`` returns."""
    return tag.partition("-")[0]


def flavor_of(tag: str) -> str | None:
    """Return the flavor of what ``read_image_tag`` returns; ``None`` is ``py3``."""
    return tag.partition("-")[2] or None
