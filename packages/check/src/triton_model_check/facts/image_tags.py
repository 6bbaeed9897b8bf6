"""Tags of NVIDIA's images: the release, and the flavor that decides which backends it has.

Sources: the overview of ``nvcr.io/nvidia/tritonserver`` in NVIDIA's catalog, which says of each
flavor in ``FLAVORS`` that it has two backends only; triton server,
docs/introduction/compatibility.md, for the Python of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.versions import parse_version
from constructs_triton_core.spelling import quoted

__all__ = ["FLAVORS", "OTHER_PYTHON", "flavor_of", "read_image_tag", "release_of"]

FLAVORS: Mapping[str, frozenset[str]] = {
    "vllm-python-py3": frozenset({"vllm", "python"}),
    "trtllm-python-py3": frozenset({"tensorrtllm", "python"}),
    "pyt-python-py3": frozenset({"pytorch", "python"}),
    "tf2-python-py3": frozenset({"tensorflow", "python"}),
}
"""The backends of each flavor that does not have those of ``py3``."""
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
        InvalidValueError: it names no release, or a flavor whose backends are not known.
    """
    found = _REFERENCE.fullmatch(text.strip())
    tag = text if found is None else found[1]
    version, _, flavor = tag.partition("-")
    parse_version(version if flavor else tag, place)
    if flavor in ("", _ALL_BACKENDS):
        return version
    if flavor not in FLAVORS:
        known = quoted((_ALL_BACKENDS, *FLAVORS))
        raise InvalidValueError(
            f'{place}: must be a release or a tag whose backends are known ({known}), got "{text}"; '
            f'write "{version}", and add the other backends of your image with --backends'
        )
    return tag


def release_of(tag: str) -> str:
    """Return the release of what ``read_image_tag`` returns."""
    return tag.partition("-")[0]


def flavor_of(tag: str) -> str | None:
    """Return the flavor of what ``read_image_tag`` returns; ``None`` is ``py3``."""
    return tag.partition("-")[2] or None
