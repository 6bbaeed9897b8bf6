"""``DataCapture``: writes requests and responses of an endpoint to S3."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker

from constructs_triton.cdk.options.s3_destination import Destination, check_places, check_prefix
from constructs_triton.cdk.validation.limit_checks import check_spelling, unknown_value
from constructs_triton.cdk.validation.property_types import check_names, check_type, shown
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.findings import Finding
from constructs_triton_core.limit_checks import check_count, check_range
from constructs_triton_core.tokens import is_token

CaptureMode = Literal["Input", "Output", "InputAndOutput"]
_MODES = ("Input", "Output", "InputAndOutput")
_CONTENT_TYPES = limits.RangeLimit(0, 10, "content types")
# botocore sagemaker service model: JsonContentType, CsvContentType.
_CONTENT_TYPE = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9])*/[a-zA-Z0-9](-*[a-zA-Z0-9.])*")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCapture:
    """Writes requests and responses to S3. The execution role may write below the prefix only.

    ``bucket``, ``prefix``
        Where the objects are written. SageMaker appends endpoint, variant and time. Default prefix:
        ``"data-capture"``.
    ``initial_sampling_percentage``
        Percentage of the requests, 0 to 100. Default: 100.
    ``capture_modes``
        What is written. Default: ``"Input"`` and ``"Output"``.
    ``encryption_key``
        KMS key of the objects. Default: the encryption of the bucket.
    ``previous_encryption_keys``
        Further KMS keys that the bucket may have while its key changes. The execution role may
        encrypt with these, too.
    ``json_content_types``, ``csv_content_types``
        Content types that are written as text. Others are written as base64, as is Triton's binary
        format.
    ``enable_capture``
        ``False`` keeps the settings and captures nothing. Default: ``True``.

    Raises:
        InvalidValueError: SageMaker would refuse a value.
    """

    bucket: s3.IBucket
    prefix: str = "data-capture"
    initial_sampling_percentage: float = 100
    capture_modes: Sequence[CaptureMode] = ("Input", "Output")
    encryption_key: kms.IKey | None = None
    previous_encryption_keys: Sequence[kms.IKey] = ()
    json_content_types: Sequence[str] = ("application/json",)
    csv_content_types: Sequence[str] = ()
    enable_capture: bool = True

    def __post_init__(self) -> None:
        check_places(
            "data_capture", self.bucket, self.encryption_key, self.previous_encryption_keys
        )
        check_prefix("data_capture.prefix", self.prefix)
        percentage = self.initial_sampling_percentage
        check_range(
            "data_capture.initial_sampling_percentage",
            percentage,
            limits.DATA_CAPTURE_SAMPLING_PERCENTAGE,
        )
        check_names("data_capture.capture_modes", self.capture_modes)
        check_type("data_capture.enable_capture", self.enable_capture, (bool, "True"))
        if not self.capture_modes:
            raise InvalidValueError(
                f"data_capture.capture_modes: must be some of {', '.join(_MODES)}, "
                "got none; use at least one"
            )
        for mode in self.capture_modes:
            check_spelling("data_capture.capture_modes", mode, _MODES)
        for name in ("json_content_types", "csv_content_types"):
            _check_content_types(f"data_capture.{name}", getattr(self, name))

    @property
    def _destination(self) -> Destination:
        return Destination(
            self.bucket,
            self.prefix,
            "captured data",
            "data_capture",
            self.encryption_key,
            self.previous_encryption_keys,
        )

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
        if not is_token(value) and _CONTENT_TYPE.fullmatch(value) is None:
            raise InvalidValueError(
                f"{property}: must be a content type without parameters, got {shown(value)}; "
                'write for example "application/json"'
            )


def unknown_capture_modes(capture: DataCapture) -> list[Finding]:
    """Return a warning for each value that this library does not know."""
    name = "data_capture.capture_modes"
    source = "botocore sagemaker service model: CaptureMode"
    findings: list[Finding] = []
    for mode in capture.capture_modes:
        findings += unknown_value(name, mode, _MODES, source)
    return findings


def captured_data(capture: DataCapture) -> Destination:
    """The prefix of the captured data, with its keys and the permissions to write it."""
    return capture._destination


def render_data_capture(
    capture: DataCapture,
) -> sagemaker.CfnEndpointConfig.DataCaptureConfigProperty:
    """Return the property of the endpoint configuration."""
    config = sagemaker.CfnEndpointConfig
    return config.DataCaptureConfigProperty(
        enable_capture=capture.enable_capture,
        initial_sampling_percentage=capture.initial_sampling_percentage,
        destination_s3_uri=capture._destination.uri,
        kms_key_id=capture._destination.key_arn,
        capture_options=[
            config.CaptureOptionProperty(capture_mode=mode) for mode in capture.capture_modes
        ],
        capture_content_type_header=capture._content_types(),
    )
