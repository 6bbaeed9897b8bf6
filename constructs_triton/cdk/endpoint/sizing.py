"""Volume size and timeouts that are derived from the size of the models.

SageMaker publishes neither its default timeouts nor how fast it loads models. The timeouts are
therefore assumptions, and generous ones: a timeout that is too long costs nothing if the deployment
succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Size

from constructs_triton.cdk.options.variant_options import ContainerOptions
from constructs_triton.cdk.repository.loaded_models import ModelLocation
from constructs_triton.cdk.validation.limit_checks import seconds
from constructs_triton_core.facts import limits
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token

_BYTES_A_MINUTE = 3 * 10**9
"""Assumed for download and start: 50 MB/s. gp2 volumes sustain at least 128 MB/s."""
_LEAST_MINUTES = 10
_LONGEST = limits.MODEL_DATA_DOWNLOAD_TIMEOUT_SECONDS.maximum or 3600
_GIB = 1 << 30
_DEFAULT_VOLUME_GIB = 30
"""AWS documentation, large model inference: beyond 30 GB the volume has to be enlarged."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """Volume size in GiB and timeouts in seconds of a variant.

    ``None`` uses SageMaker's default.
    """

    volume_size_gib: float | None
    model_data_download_timeout: float | None
    container_startup_health_check_timeout: float | None
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(
        cls,
        location: ModelLocation,
        instance_type: InstanceType,
        options: ContainerOptions,
        volume_size: Size | None = None,
    ) -> Sizing:
        """Return the values that are set, and derive the others from the size of the archive.

        Each timeout is 10 minutes, plus one for each 3 GB: of the archive for the download, of its
        content for the start. The volume size is set if archive and content do not fit on the
        default volume. Instance types with local NVMe storage have no volume. Multi-model endpoints
        get no timeouts. A model that downloads its weights gets the longest timeout for the start,
        since their size is not known.
        """
        longest = _LONGEST if location.downloads_weights else _timeout(location.unpacked_size_bytes)
        volume, findings = _volume(location, instance_type, volume_size)
        download = seconds(options["model_data_download_timeout"])
        startup = seconds(options["container_startup_health_check_timeout"])
        return cls(
            volume,
            _timeout(location.size_bytes) if download is None else download,
            longest if startup is None else startup,
            findings,
        )

    @classmethod
    def of_pools(cls, sizings: Sequence[Sizing]) -> Sizing:
        """Return one sizing for all instance types of a variant: its longest timeouts, and its
        volume size.

        Types with local NVMe storage do not support a volume size that others need; the result is a
        warning.
        """
        findings: list[Finding] = []
        for sizing in sizings:
            findings += sizing.findings

        # A token is one that was given, so it is the same for all.
        volume_size_gib = sizings[0].volume_size_gib
        if not is_token(volume_size_gib):
            volume_sizes = {sizing.volume_size_gib for sizing in sizings}
            if len(volume_sizes) > 1:
                largest_gib = max(size_gib or 0 for size_gib in volume_sizes)
                findings.append(_different_volumes(largest_gib))
                volume_size_gib = None

        return cls(
            volume_size_gib,
            _longest([sizing.model_data_download_timeout for sizing in sizings]),
            _longest([sizing.container_startup_health_check_timeout for sizing in sizings]),
            tuple(dict.fromkeys(findings)),  # each once
        )


def _longest(timeouts: Sequence[float | None]) -> float | None:
    """Return the longest timeout; ``None`` uses SageMaker's default.

    A timeout that is not derived, because a size is not known, leaves the default for all.
    """
    known = [timeout for timeout in timeouts if timeout is not None]
    if any(is_token(timeout) for timeout in known):
        return timeouts[0]  # it was set, so it is the same for all
    if len(known) < len(timeouts):
        return None
    return max(known)


def _different_volumes(needed: float) -> Finding:
    """Return the warning that only some instance types support the volume size."""
    return Finding(
        "instance-pools-volume-size",
        Severity.WARNING,
        "instance_pools",
        f"the models need a volume of {needed:g} GiB on types without local NVMe storage, and the "
        "other types support no volume size",
        "use types that all have local NVMe storage, or none",
        source="SageMaker: 'VolumeSize parameter is not allowed for the selected Instance type'",
    )


def _timeout(size_bytes: int | None) -> float | None:
    if size_bytes is None:
        return None
    return min(60 * (_LEAST_MINUTES + size_bytes // _BYTES_A_MINUTE), _LONGEST)


def _volume(
    location: ModelLocation, instance_type: InstanceType, volume_size: Size | None
) -> tuple[float | None, tuple[Finding, ...]]:
    """Return the volume size in GiB that the models need, and a warning if none is that large.

    The size is ``None`` if the default is enough, or if a size is not known.
    """
    if volume_size is not None:
        return volume_size.to_gibibytes(), ()
    if instance_type.supports_volume_size is not True or location.unpacked_size_bytes is None:
        return None, ()
    # While an archive is unpacked, the volume holds archive and content; a tenth more for
    # everything else.
    archive = (location.size_bytes or 0) if location.is_compressed else 0
    needed = (archive + location.unpacked_size_bytes) * 11 // 10 // _GIB + 1
    most = int(limits.VOLUME_SIZE_GB.maximum or needed)
    if needed <= _DEFAULT_VOLUME_GIB:
        return None, ()
    return min(needed, most), (_too_large(needed, most),) if needed > most else ()


def _too_large(needed: int, most: int) -> Finding:
    return Finding(
        "volume-too-small",
        Severity.WARNING,
        "volume_size",
        f"the models need {needed} GiB, and a volume has {most} GiB at most",
        "use an instance type with local NVMe storage, or a smaller model",
        source="botocore sagemaker service model: ProductionVariantVolumeSizeInGB",
    )
