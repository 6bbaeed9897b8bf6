"""Volume and time-outs that follow from the size of the archive, where nobody set them.

SageMaker publishes neither its default time-outs nor how fast it loads, so that these are assumptions, made
to be too generous rather than too tight: a time-out that is too long costs nothing where all goes well.
"""

from __future__ import annotations

from dataclasses import dataclass

from constructs_triton.cdk.endpoint.properties import EndpointOptions
from constructs_triton.cdk.repository.loaded_models import ModelLocation
from constructs_triton.cdk.validation.durations import seconds
from constructs_triton.facts import limits
from constructs_triton.findings import Finding, Severity

__all__ = ["Sizing"]

_BYTES_A_MINUTE = 3 * 10**9
"""Assumed of download and loading alike: 50 MB/s, below the 128 MB/s at least that gp2 volumes sustain."""
_LEAST_MINUTES = 10
_GIB = 1 << 30
_DEFAULT_VOLUME_GIB = 30
"""AWS documentation, large model inference: beyond 30 GB the volume has to be enlarged."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """Volume size in GiB and time-outs in seconds of one variant; ``None`` leaves it to SageMaker."""

    volume_size_gib: float | None
    model_data_download_timeout: float | None
    container_startup_health_check_timeout: float | None
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, options: EndpointOptions, location: ModelLocation) -> Sizing:
        """What was given, else what the archive's size asks for.

        Ten minutes, and one more for each 3 GB: of the archive for the download, of its content for the
        start. A volume is asked for where the archive and its content would not fit on the default one; types
        with local NVMe take none. A multi-model endpoint loads later and gets no time-outs.
        """
        volume, findings = _volume(options, location)
        download = seconds(options["model_data_download_timeout"])
        startup = seconds(options["container_startup_health_check_timeout"])
        return cls(
            volume,
            _timeout(location.size_bytes) if download is None else download,
            _timeout(location.unpacked_size_bytes) if startup is None else startup,
            findings,
        )


def _timeout(size_bytes: int | None) -> float | None:
    if size_bytes is None:
        return None
    most = limits.MODEL_DATA_DOWNLOAD_TIMEOUT_SECONDS.maximum or 3600
    return min(60 * (_LEAST_MINUTES + size_bytes // _BYTES_A_MINUTE), most)


def _volume(options: EndpointOptions, location: ModelLocation) -> tuple[float | None, tuple[Finding, ...]]:
    volume_size = options["volume_size"]
    if volume_size is not None:
        return volume_size.to_gibibytes(), ()
    if options["instance_type"].supports_volume_size is not True or location.unpacked_size_bytes is None:
        return None, ()
    # Archive and content lie on it together while the one is unpacked; a tenth more for all else.
    needed = ((location.size_bytes or 0) + location.unpacked_size_bytes) * 11 // 10 // _GIB + 1
    most = int(limits.VOLUME_SIZE_GB.maximum or needed)
    if needed <= _DEFAULT_VOLUME_GIB:
        return None, ()
    return min(needed, most), (_too_large(needed, most),) if needed > most else ()


def _too_large(needed: int, most: int) -> Finding:
    return Finding(
        "volume-too-small",
        Severity.WARNING,
        "volume_size",
        f"the archive and its content need {needed} GiB, and a volume has {most} GiB at most",
        "choose an instance type with local NVMe, or a smaller model",
        source="botocore sagemaker service model: ProductionVariantVolumeSizeInGB",
    )
