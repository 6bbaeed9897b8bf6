"""Where a model repository will run."""

from __future__ import annotations

from typing import Any

import pytest

from constructs_triton_core.errors import InvalidValueError
from triton_model_check.model_config.target import (
    PLATFORMS,
    SERVERS,
    Platform,
    Target,
    read_platform,
    read_size,
)

MIB = 1 << 20


def test_nothing_known_is_the_default() -> None:
    """``Target()`` is a single-model endpoint with unknown hardware and image."""
    assert Target() == Target("sagemaker", gpu_count=None, image_version=None, local_files=True)
    assert [Target(each).is_sagemaker for each in PLATFORMS] == [False] * 5 + [True] * 2
    assert [Target(each).mode for each in ("sagemaker", "sagemaker-multi-model")] == [
        "single",
        "multi-model",
    ]


@pytest.mark.parametrize(
    ("platform", "known", "image", "shm", "memory"),
    [
        ("server", {}, "26.08", None, None),
        ("server", {"shm_bytes": MIB}, "26.08", MIB, None),
        ("kserve", {}, "23.05", 64 * MIB, 2),
        ("kserve", {"image_version": "24.10"}, "24.10", 64 * MIB, 2),
        ("docker", {"image_version": None}, "26.08", 64 * MIB, None),
        ("kubernetes", {"shm_bytes": 128 * MIB}, "26.08", 128 * MIB, None),
        ("dynamo", {}, "26.08", None, None),
        ("sagemaker", {}, "26.05", None, None),
        ("sagemaker-multi-model", {"image_version": "26.05"}, "26.05", None, None),
    ],
)
def test_what_a_platform_is_assumed_to_have(
    platform: Platform,
    known: dict[str, Any],
    image: str | None,
    shm: int | None,
    memory: float | None,
) -> None:
    """Each platform has its image, shared memory and main memory, unless others are known."""
    target = Target.named(platform, **known)
    assert (target.image_version, target.shm_bytes, target.memory_gib) == (image, shm, memory)


def test_target_of_an_instance_type() -> None:
    """The instance type determines the hardware; the disk is local NVMe storage if there is any."""
    target = Target.named("sagemaker", instance_type="ml.g4dn.12xlarge")
    assert (target.gpu_count, target.gpu_memory_mib) == (4, 15360)
    assert (target.memory_gib, target.storage_gb) == (192, 900)
    assert Target.named("sagemaker", instance_type="ml.g4dn.12xlarge", gpu_count=1).gpu_count == 1
    assert Target.named("sagemaker", instance_type="ml.m5.large").storage_gb is None
    assert Target.named("sagemaker", instance_type="ml.g9.xlarge").gpu_count is None


def test_words_for_each_platform() -> None:
    """Every platform has its words for the verdict, and none is the same as another."""
    assert len({Target(each).place for each in PLATFORMS}) == len(PLATFORMS)
    assert set(SERVERS) < set(PLATFORMS)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64m", 64 * MIB),
        ("256M", 256 * MIB),
        ("1Gi", 1 << 30),
        ("512k", 1 << 19),
        ("65536", 65536),
        ("1gb", 1 << 30),
    ],
)
def test_sizes_as_docker_and_kubernetes_write_them(text: str, size: int) -> None:
    """Units are powers of 1,024."""
    assert read_size("x", text) == size


@pytest.mark.parametrize("text", ["", "m", "1t", "-1m", "1.5g", "64 m"])
def test_other_sizes_are_refused(text: str) -> None:
    """The message has the form of a size."""
    with pytest.raises(InvalidValueError, match="x: must be a size, got"):
        read_size("x", text)


def test_unknown_platform_gets_a_suggestion() -> None:
    """Of a similar name the hint is that name."""
    with pytest.raises(
        InvalidValueError, match='x: must be a target, got "kserv"; did you mean "kserve"'
    ):
        read_platform("x", "kserv")
