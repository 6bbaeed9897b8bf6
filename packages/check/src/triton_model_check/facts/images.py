"""AWS's prebuilt Triton images: versions, Regions, accounts and content.

The table and its sources are in ``images.json``. ``image_version("26.08")`` also describes a
release that is newer than the table, because your own image may be newer. Only ``image_uri``
requires a published image.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from constructs_triton_core.errors import FactNotFoundError
from constructs_triton_core.facts.versions import is_at_least, parse_version
from constructs_triton_core.spelling import did_you_mean
from triton_model_check.facts.published import load
from triton_model_check.facts.releases import release

__all__ = [
    "DEFAULT_VERSION",
    "first_published",
    "image_uri",
    "image_version",
    "newest_version",
    "published_versions",
    "python_version",
    "release_of_server",
    "server_of_aws",
    "version_of_image",
]

DEFAULT_VERSION = "26.05"
"""The default version: one constant, the same in every Region."""

_TAG_VERSION = re.compile(r":(\d\d\.\d\d)-")
# GovCloud, the isolated partitions and the European Sovereign Cloud.
_REPOSITORY = r"(?P<repository>[a-z0-9._/-]+)"
_IMAGE_IN_ECR = re.compile(
    rf"(?P<account>\d{{12}})\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?/{_REPOSITORY}"
)
_REPOSITORY_ARN = re.compile(
    rf"arn:[a-z-]+:ecr:[^:]*:(?P<account>\d{{12}}):repository/{_REPOSITORY}"
)
_WITHOUT_IMAGES = ("us-gov-", "us-iso", "eu-iso", "eusc-")


@dataclass(frozen=True, slots=True)
class ImageVersion:
    """One Triton release of AWS's images; ``None`` means that no source states the value.

    ``python``
        Python version of the image, such as ``"3.12"``. Environments for the Python backend must
        match it.
    ``glibc``
        Version of the image's C library, which limits the wheels that it can load, such as
        ``"2.39"``.
    ``cuda``
        CUDA version of the image by NVIDIA's release notes, such as ``"13.2"``. Label files have
        older ones.
    ``tensorrt``
        Beginning of the TensorRT version, such as ``"10.0"``. A plan must be built with the same
        version.
    ``min_compute_capability``
        The release does not support GPUs below this compute capability, such as ``"7.5"``.
    ``newest_compute_capability_major``
        The newest GPU architecture that the release supports: 8 Ampere, 9 Hopper, 10 to 12
        Blackwell.
    ``backends``
        Names of the backends in the image of NVIDIA and of AWS. The server may also load a backend
        that a model folder contains.
    ``removed_backends``
        Backends and legacy platform names that earlier releases had and this one does not.
    ``has_inference_type``
        Whether the release supports ``SAGEMAKER_TRITON_INFERENCE_TYPE`` (``generate``,
        ``generate_stream``).
    ``is_legacy``
        Whether it is older than 23.12, and therefore in the older accounts.
    ``is_published``
        Whether AWS has released an image of it. ``regions_are_known`` is ``False`` for images that
        AWS released without listing their Regions.
    """

    version: str
    python: str | None
    glibc: str
    cuda: str | None
    tensorrt: str | None
    released_on: str | None
    min_compute_capability: str
    newest_compute_capability_major: int
    backends: frozenset[str] | None
    removed_backends: frozenset[str]
    has_inference_type: bool
    gpu_tag: str
    cpu_tag: str
    is_legacy: bool
    is_published: bool
    regions_are_known: bool
    regions_without: tuple[str, ...]

    def tag(self, *, cpu: bool) -> str:
        """Return the image's tag, for instances without (``cpu``) or with a GPU."""
        return self.cpu_tag if cpu else self.gpu_tag


@cache
def image_version(version: str) -> ImageVersion:
    """Return what is known about the image of a Triton release.

    A release that is not in the table has ``is_published=False``, and the values that apply to all
    releases of its time.

    Raises:
        InvalidValueError: the version is not ``YY.MM``.
    """
    parse_version(version, "image_version")
    facts = load("images")
    row = load("images")["versions"].get(version)
    known: dict[str, Any] = row or {}
    legacy = not is_at_least(version, facts["first_version_in_accounts"])
    content = release(version)
    return ImageVersion(
        version=version,
        python=python_version(version),
        glibc=in_force(facts["glibc"], version),
        cuda=known.get("cuda"),
        tensorrt=known.get("tensorrt"),
        released_on=known.get("released_on"),
        min_compute_capability=in_force(facts["min_compute_capability"], version),
        newest_compute_capability_major=in_force(facts["newest_compute_capability_major"], version),
        backends=None if content is None else content.backends,
        removed_backends=_removed_backends(facts["removed_backends"], version),
        has_inference_type=is_at_least(version, facts["inference_type_since"]["since"]),
        gpu_tag=facts["gpu_tag"].format(version=version),
        cpu_tag=facts["cpu_tag"].format(version=version),
        is_legacy=legacy,
        is_published=row is not None,
        regions_are_known=row is not None and (legacy or known["regions_without"] is not None),
        regions_without=tuple(known.get("regions_without") or ()),
    )


def python_version(image_version: str | None) -> str | None:
    """Return the Python of an image, such as ``"3.12"``, or ``None`` if it is not known.

    The images of NVIDIA and AWS of one release have the same Python. AWS's own list has it for
    releases that are not in the table of releases.
    """
    content = release(image_version)
    if content is not None and content.python is not None:
        return content.python
    row = load("images")["versions"].get(image_version) or {}
    return row.get("python")


def version_of_image(uri: str | None) -> str | None:
    """Return the Triton release in the tag of an image, such as ``"26.05"``;
    ``None`` for other tags.
    """
    found = _TAG_VERSION.search(uri or "")
    return None if found is None else found[1]


@cache
def image_packages(version: str | None) -> frozenset[str]:
    """Return the Python packages that AWS's image is known to contain; ``None`` is any image."""
    rows = load("images")["python_packages"]
    if version is not None:
        return frozenset(in_force(rows, version))
    return frozenset(name for row in rows for name in row["value"])


def in_force(rows: Sequence[dict[str, Any]], version: str) -> Any:
    """The value of the last row that applies to the version;
    the first one for versions older than all.
    """
    return next((row for row in reversed(rows) if is_at_least(version, row["since"])), rows[0])[
        "value"
    ]


def _removed_backends(rows: Iterable[dict[str, Any]], version: str) -> frozenset[str]:
    removed = [row for row in rows if is_at_least(version, row["since"])]
    return frozenset(name for row in removed for name in (row["backend"], *row["platforms"]))


def image_of_backend(backend: str, version: str) -> str | None:
    """Return NVIDIA's image with a backend that AWS's images do not have,
    or ``None`` if there is none.
    """
    rows = {row["backend"]: str(row["image"]) for row in load("images")["backends_of_other_images"]}
    return rows[backend].format(version=version) if backend in rows else None


def newest_with(backend: str) -> str:
    """Return the newest version that AWS has released with a backend.

    Raises:
        FactNotFoundError: no version has the backend.
    """
    for version in published_versions():
        if backend in (image_version(version).backends or ()):
            return version
    raise FactNotFoundError(f'backend: no image of AWS has it, got "{backend}"; use your own image')


def newest_release() -> str:
    """Return the newest release of which NVIDIA has published images,
    which is often newer than AWS's.
    """
    return str(load("targets")["newest_release"])


def release_of_server(version: str) -> str | None:
    """Return the release of the server version that a server says of itself, such as ``"24.10"``
    for ``"2.51.0"``; ``None`` if it is not known.
    """
    found = load("targets")["server_releases"].get(version.rpartition(".")[0])
    return None if found is None else str(found)


def last_release_with(backend: str) -> str:
    """Return the last release whose images from NVIDIA have a backend that
    later ones do not have.
    """
    return str(load("targets")["last_with"].get(backend, newest_with(backend)))


def repository_name() -> str:
    """Return the name of the ECR repository, which is the same in every account."""
    return str(load("images")["repository"])


def published_versions() -> tuple[str, ...]:
    """Return all versions that AWS has released, newest first."""
    return tuple(sorted(load("images")["versions"], key=parse_version, reverse=True))


def first_published(since: str) -> str:
    """Return the oldest version with published Regions that is ``since`` or later;
    else ``since``.
    """
    newer = [each for each in published_versions() if is_at_least(each, since) and regions(each)]
    return newer[-1] if newer else since


def all_regions() -> tuple[str, ...]:
    """Return every Region that has a Triton image of any version, sorted."""
    return tuple(sorted(load("images")["accounts"]))


def regions(version: str) -> tuple[str, ...]:
    """Return the Regions that have the image of ``version``, sorted;
    empty if AWS does not list them.
    """
    image = image_version(version)
    if not image.regions_are_known:
        return ()
    return tuple(sorted(set(_accounts(image)) - set(image.regions_without)))


def newest_version(region: str) -> str:
    """Return the newest version that AWS lists for ``region``.

    Raises:
        FactNotFoundError: the Region has no Triton image.
    """
    for version in published_versions():
        if region in regions(version):
            return version
    raise _unknown_region(region)


def account(region: str, version: str) -> str:
    """Return the AWS account that has the image of ``version`` in ``region``: twelve digits.

    Raises:
        FactNotFoundError: the Region does not have the version; the message has the newest that it
            has.
    """
    image = image_version(version)
    if region in regions(version):
        return _accounts(image)[region]
    newest = newest_version(region)
    if not image.is_published:
        raise FactNotFoundError(
            f'image_version: AWS publishes no Triton image of this release, got "{version}"; '
            f'use "{newest}", the newest in {region}'
        )
    if not image.regions_are_known:
        raise FactNotFoundError(
            f'image_version: AWS released it but does not list its Regions, got "{version}"; '
            f'use "{newest}", the newest listed in {region}, or give the image by its URI'
        )
    raise FactNotFoundError(
        f'image_version: not published in Region {region}, got "{version}"; '
        f'use "{newest}", the newest in that Region'
    )


def image_uri(region: str, version: str, *, cpu: bool) -> str:
    """Return the image's URI, for instances without (``cpu``) or with a GPU.

    Raises:
        FactNotFoundError: the Region does not have the version; the message has the newest that it
            has.
    """
    holder = account(region, version)
    tag = image_version(version).tag(cpu=cpu)
    return f"{holder}.dkr.ecr.{region}.{dns_suffix(region)}/{repository_name()}:{tag}"


def dns_suffix(region: str) -> str:
    """Return the domain of the Region's partition, for example ``amazonaws.com.cn`` in China.

    Raises:
        FactNotFoundError: the name is not a Region of any partition.
    """
    for partition in load("images")["partitions"].values():
        if re.fullmatch(partition["region_regex"], region):
            return str(partition["dns_suffix"])
    raise _unknown_region(region)


def server_of_aws(uri_or_arn: str) -> str | None:
    """Return the repository of a prebuilt image of AWS that has another server than Triton.

    ``uri_or_arn`` is the URI of an image, or the ARN of its repository in ECR. ``None`` is an image
    of Triton, or of anyone else, whose content is not known. AWS names the repository by the
    server, in the same accounts: ``vllm``, ``djl-inference``, ``pytorch-inference``
    (https://aws.github.io/deep-learning-containers/reference/available_images/).
    """
    found = _IMAGE_IN_ECR.match(uri_or_arn) or _REPOSITORY_ARN.match(uri_or_arn)
    facts = load("images")
    accounts = {*facts["accounts"].values(), *facts["legacy_accounts"].values()}
    if found is None or found["account"] not in accounts or "triton" in found["repository"]:
        return None
    return found["repository"]


def _accounts(image: ImageVersion) -> dict[str, str]:
    accounts: dict[str, str] = load("images")["legacy_accounts" if image.is_legacy else "accounts"]
    return accounts


def _unknown_region(region: str) -> FactNotFoundError:
    own_image = "use your own image from an ECR repository"
    # Names in GovCloud and the isolated partitions are not misspelled names of other Regions.
    hint = own_image if region.startswith(_WITHOUT_IMAGES) else did_you_mean(region, all_regions())
    return FactNotFoundError(
        f'region: AWS publishes no Triton image in this Region, got "{region}"; {hint or own_image}'
    )
