"""AWS's prebuilt Triton images: versions, Regions, accounts, and what is inside.

The table is ``images.json``, beside its sources. A version is open: ``image_version("26.08")`` describes a
release that came after the table (an image of one's own may be newer), only ``image_uri`` insists on what is
published.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from constructs_triton.errors import FactNotFoundError
from constructs_triton.facts.published import load
from constructs_triton.facts.versions import is_at_least, parse_version
from constructs_triton.spelling import did_you_mean

__all__ = [
    "DEFAULT_VERSION",
    "ImageVersion",
    "account",
    "all_regions",
    "dns_suffix",
    "image_uri",
    "image_version",
    "newest_version",
    "published_versions",
    "regions",
    "repository_name",
    "require_regions",
]

DEFAULT_VERSION = "26.05"
"""The version that is used where none is asked for: one constant, the same in every Region."""

# GovCloud, the isolated partitions and the European Sovereign Cloud.
_WITHOUT_IMAGES = ("us-gov-", "us-iso", "eu-iso", "eusc-")


@dataclass(frozen=True, slots=True)
class ImageVersion:
    """What one Triton release of AWS's images holds; ``None`` where no source says.

    ``python``
        Python of the image, which environments for the Python backend have to match: ``"3.12"``.
    ``cuda``
        CUDA of the image by NVIDIA's release notes: ``"13.2"``. Label files of the images are older.
    ``min_compute_capability``
        GPUs below it are not supported by the release: ``"7.5"``.
    ``newest_compute_capability_major``
        The newest GPU architecture that the release knows: 8 Ampere, 9 Hopper, 10 to 12 Blackwell.
    ``removed_backends``
        Backends and legacy platform names that earlier releases had and this one has not.
    ``has_inference_type``
        Whether ``SAGEMAKER_TRITON_INFERENCE_TYPE`` (``generate``, ``generate_stream``) is understood.
    ``is_legacy``
        Whether it is older than 23.12 and lives in the older accounts.
    ``is_published``
        Whether AWS has released an image of it. ``regions_are_known`` is ``False`` for those that AWS
        released without listing their Regions.
    """

    version: str
    python: str | None
    cuda: str | None
    released_on: str | None
    min_compute_capability: str
    newest_compute_capability_major: int
    removed_backends: frozenset[str]
    has_inference_type: bool
    gpu_tag: str
    cpu_tag: str
    is_legacy: bool
    is_published: bool
    regions_are_known: bool
    regions_without: tuple[str, ...]

    def tag(self, *, cpu: bool) -> str:
        """The image's tag, for instances without (``cpu``) or with a GPU."""
        return self.cpu_tag if cpu else self.gpu_tag


@cache
def image_version(version: str) -> ImageVersion:
    """What the image of a Triton release holds.

    Raises ``InvalidValueError`` for anything but ``YY.MM``. A release that is not in the table comes back
    with ``is_published=False`` and with what is true of every release of its time.
    """
    parse_version(version, "image_version")
    facts, row = load("images"), load("images")["versions"].get(version)
    known: dict[str, Any] = row or {}
    legacy = not is_at_least(version, facts["first_version_in_accounts"])
    return ImageVersion(
        version=version,
        python=known.get("python"),
        cuda=known.get("cuda"),
        released_on=known.get("released_on"),
        min_compute_capability=_in_force(facts["min_compute_capability"], version),
        newest_compute_capability_major=_in_force(facts["newest_compute_capability_major"], version),
        removed_backends=_removed_backends(facts["removed_backends"], version),
        has_inference_type=is_at_least(version, facts["inference_type_since"]["since"]),
        gpu_tag=facts["gpu_tag"].format(version=version),
        cpu_tag=facts["cpu_tag"].format(version=version),
        is_legacy=legacy,
        is_published=row is not None,
        regions_are_known=row is not None and (legacy or known["regions_without"] is not None),
        regions_without=tuple(known.get("regions_without") or ()),
    )


def _in_force(rows: Iterable[dict[str, Any]], version: str) -> Any:
    """The value of the last row that had come into force; the first one for a version older than all."""
    rows = list(rows)
    value = rows[0]["value"]
    for row in rows:
        if is_at_least(version, row["since"]):
            value = row["value"]
    return value


def _removed_backends(rows: Iterable[dict[str, Any]], version: str) -> frozenset[str]:
    gone = [row for row in rows if is_at_least(version, row["since"])]
    return frozenset(name for row in gone for name in (row["backend"], *row["platforms"]))


def repository_name() -> str:
    """The ECR repository of the images, the same in every account."""
    return str(load("images")["repository"])


def published_versions() -> tuple[str, ...]:
    """All versions that AWS has released, newest first."""
    return tuple(sorted(load("images")["versions"], key=parse_version, reverse=True))


def all_regions() -> tuple[str, ...]:
    """Every Region that has a Triton image of some version, sorted."""
    return tuple(sorted(load("images")["accounts"]))


def regions(version: str) -> tuple[str, ...]:
    """The Regions that have the image of ``version``, sorted; empty where they are not published."""
    image = image_version(version)
    if not image.regions_are_known:
        return ()
    return tuple(sorted(set(_accounts(image)) - set(image.regions_without)))


def require_regions(version: str) -> None:
    """Raise ``FactNotFoundError`` for a version of which no Region is known, and name one that has them."""
    image = image_version(version)
    if regions(version):
        return
    reason = (
        "AWS released it but does not list its Regions"
        if image.is_published
        else "AWS publishes no Triton image of this release"
    )
    raise FactNotFoundError(
        f'image_version: {reason}, got "{version}"; use "{DEFAULT_VERSION}", or name an image by registry'
    )


def newest_version(region: str) -> str:
    """The newest version that is known to be in ``region``.

    Raises ``FactNotFoundError`` for a Region without any Triton image.
    """
    for version in published_versions():
        if region in regions(version):
            return version
    raise _unknown_region(region)


def account(region: str, version: str) -> str:
    """The AWS account that holds the image of ``version`` in ``region``: twelve digits.

    Raises ``FactNotFoundError``, which names the newest version the Region has.
    """
    image = image_version(version)
    if region in regions(version):
        return _accounts(image)[region]
    newest = newest_version(region)
    if not image.is_published:
        raise FactNotFoundError(
            f'image_version: AWS publishes no Triton image of this release, got "{version}"; '
            f'the newest in {region} is "{newest}"'
        )
    if not image.regions_are_known:
        raise FactNotFoundError(
            f'image_version: AWS released it but does not list its Regions, got "{version}"; '
            f'use "{newest}", the newest listed in {region}, or name the image by its registry'
        )
    raise FactNotFoundError(
        f'image_version: not published in region {region}, got "{version}"; '
        f'the newest that region has is "{newest}"'
    )


def image_uri(region: str, version: str, *, cpu: bool) -> str:
    """The image's URI, for instances without (``cpu``) or with a GPU.

    Raises ``FactNotFoundError`` where the Region has not got the version; it names the newest it has.
    """
    holder = account(region, version)
    tag = image_version(version).tag(cpu=cpu)
    return f"{holder}.dkr.ecr.{region}.{dns_suffix(region)}/{repository_name()}:{tag}"


def dns_suffix(region: str) -> str:
    """The domain of the Region's partition, for example ``amazonaws.com.cn`` in China.

    Raises ``FactNotFoundError`` for a name that is no Region of any partition.
    """
    suffix = _partition_dns_suffix(region)
    if suffix is None:
        raise _unknown_region(region)
    return suffix


def _partition_dns_suffix(region: str) -> str | None:
    for partition in load("images")["partitions"].values():
        if re.fullmatch(partition["region_regex"], region):
            return str(partition["dns_suffix"])
    return None


def _accounts(image: ImageVersion) -> dict[str, str]:
    accounts: dict[str, str] = load("images")["legacy_accounts" if image.is_legacy else "accounts"]
    return accounts


def _unknown_region(region: str) -> FactNotFoundError:
    own_image = "name an image of your own by its ECR repository"
    # GovCloud and the isolated partitions are no misspelling of a Region that resembles them.
    hint = own_image if region.startswith(_WITHOUT_IMAGES) else did_you_mean(region, all_regions())
    return FactNotFoundError(
        f'region: AWS publishes no Triton image there, got "{region}"; {hint or own_image}'
    )
