"""How a release, a tag or an image of NVIDIA is read."""

from __future__ import annotations

import pytest

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.facts.image_tags import flavor_of, read_image_tag, release_of


@pytest.mark.parametrize(
    ("text", "release", "flavor"),
    [
        ("26.05", "26.05", None),
        ("24.10-py3", "24.10", None),
        ("nvcr.io/nvidia/tritonserver:24.10-py3", "24.10", None),
        ("localhost:5000/triton:24.10-py3@sha256:00ff", "24.10", None),
        ("24.10-py3-igpu", "24.10", "py3-igpu"),
        ("25.06-trtllm-python-py3", "25.06", "trtllm-python-py3"),
        ("nvcr.io/nvidia/tritonserver:25.06-vllm-python-py3", "25.06", "vllm-python-py3"),
    ],
)
def test_release_and_flavor(text: str, release: str, flavor: str | None) -> None:
    """A release, a tag and an image name a release, and a flavor if it decides about backends."""
    tag = read_image_tag("--image-version", text)
    assert (release_of(tag), flavor_of(tag)) == (release, flavor)


@pytest.mark.parametrize("text", ["", "latest", "py3", "24.1-py3", "24.1", "24.10-"])
def test_other_tags_are_refused(text: str) -> None:
    """What names no release is an error."""
    with pytest.raises(InvalidValueError, match="--image-version: must be a"):
        read_image_tag("--image-version", text)
