"""``DataCapture``: requests and answers of an endpoint, kept in S3."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker

from constructs_triton.cdk.options.s3_destination import Destination, check_places, check_prefix
from constructs_triton.cdk.validation.limit_checks import check_count, check_range
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts import limits

__all__ = ["CaptureMode", "DataCapture"]

CaptureMode = Literal["Input", "Output", "InputAndOutput"]
_MODES = ("Input", "Output", "InputAndOutput")
_CONTENT_TYPES = limits.RangeLimit(0, 10, "content types")
# botocore sagemaker service model: JsonContentType, CsvContentType.
_CONTENT_TYPE = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9])*/[a-zA-Z0-9](-*[a-zA-Z0-9.])*")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCapture:
    """What of the traffic is written to S3; the execution role is granted to write there, and only there.

    ``bucket``, ``prefix``
        Where to; ``"data-capture"`` by default. SageMaker appends endpoint, variant and time.
    ``initial_sampling_percentage``
        Share of the requests, 0 to 100; all by default.
    ``capture_modes``
        ``"Input"`` and ``"Output"`` by default.
    ``encryption_key``
        KMS key of the objects; by default the bucket's own encryption.
    ``json_content_types``, ``csv_content_types``
        What is written as text. All else is base64, as Triton's binary format is.
    ``enable_capture``
        ``False`` keeps the settings and captures nothing.

    Raises ``InvalidValueError`` for a value that SageMaker would refuse.
    """

    bucket: s3.IBucket
    prefix: str = "data-capture"
    initial_sampling_percentage: float = 100
    capture_modes: Sequence[CaptureMode] = ("Input", "Output")
    encryption_key: kms.IKey | None = None
    json_content_types: Sequence[str] = ("application/json",)
    csv_content_types: Sequence[str] = ()
    enable_capture: bool = True

    def __post_init__(self) -> None:
        check_places("data_capture", self.bucket, self.encryption_key)
        check_prefix("data_capture.prefix", self.prefix)
        percentage = self.initial_sampling_percentage
        check_range(
            "data_capture.initial_sampling_percentage", percentage, limits.DATA_CAPTURE_SAMPLING_PERCENTAGE
        )
        if not self.capture_modes or not set(self.capture_modes) <= set(_MODES):
            raise InvalidValueError(
                f"data_capture.capture_modes: must be some of {', '.join(_MODES)}, "
                f"got {list(self.capture_modes)}; name at least one"
            )
        for name in ("json_content_types", "csv_content_types"):
            _check_content_types(f"data_capture.{name}", getattr(self, name))

    def statements(self) -> list[iam.PolicyStatement]:
        """What the execution role needs."""
        return self._destination.write_statements("DataCapture")

    def render(self) -> sagemaker.CfnEndpointConfig.DataCaptureConfigProperty:
        """The property of the endpoint configuration."""
        config = sagemaker.CfnEndpointConfig
        return config.DataCaptureConfigProperty(
            enable_capture=self.enable_capture,
            initial_sampling_percentage=self.initial_sampling_percentage,
            destination_s3_uri=self._destination.uri,
            kms_key_id=self._destination.key_arn,
            capture_options=[config.CaptureOptionProperty(capture_mode=mode) for mode in self.capture_modes],
            capture_content_type_header=self._content_types(),
        )

    @property
    def _destination(self) -> Destination:
        return Destination(self.bucket, self.prefix, self.encryption_key)

    def _content_types(self) -> sagemaker.CfnEndpointConfig.CaptureContentTypeHeaderProperty | None:
        if not self.json_content_types and not self.csv_content_types:
            return None
        return sagemaker.CfnEndpointConfig.CaptureContentTypeHeaderProperty(
            json_content_types=list(self.json_content_types) or None,
            csv_content_types=list(self.csv_content_types) or None,
        )


def _check_content_types(property: str, values: Sequence[str]) -> None:
    check_count(property, values, _CONTENT_TYPES)
    for value in values:
        if is_concrete(value) and _CONTENT_TYPE.fullmatch(value) is None:
            raise InvalidValueError(
                f'{property}: must be a type without parameters, got "{value}"; '
                'write it as "application/json"'
            )
