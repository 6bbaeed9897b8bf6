"""Names, lengths, patterns, ranges and timeouts of the SageMaker and Application Auto Scaling APIs.

Every limit stands here once and names its source: ``shape`` is the shape of botocore's service model
(``sagemaker`` unless it says otherwise) that a check in the build compares it with. Values that CDK fills in
at deployment, tokens, pass every check untouched: nothing is known of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from numbers import Real

from constructs_triton.errors import InvalidValueError

# CDK writes a token into a text as "${Token[Name.12]}", into a list as ["#{Token[Name.12]}"], and into a
# number as a double whose upper bits are a mark, which reads as about -1.888e289.
_TEXT_TOKEN, _LIST_TOKEN, _NUMBER_TOKEN_BELOW = "${Token[", "#{Token[", -1e288


def is_token(value: object) -> bool:
    """Whether a value is, or holds, a CDK token: text, number, list or mapping. Imports no CDK."""
    match value:
        case str():
            return _TEXT_TOKEN in value or _LIST_TOKEN in value
        case int() | float():
            return value < _NUMBER_TOKEN_BELOW
        case Mapping():
            return any(is_token(part) for item in value.items() for part in item)
        case Iterable():
            return any(is_token(part) for part in value)
    return False


@dataclass(frozen=True, slots=True)
class TextLimit:
    """Length and characters of a text; ``allowed`` says the pattern in words."""

    max_length: int
    pattern: str = r"[\s\S]*"
    allowed: str = ""
    min_length: int = 0
    shape: str = ""


@dataclass(frozen=True, slots=True)
class RangeLimit:
    """The least and the greatest value, both allowed; ``None`` is unbounded. ``unit`` is for messages."""

    minimum: float | None
    maximum: float | None
    unit: str = ""
    shape: str = ""

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if self.minimum is None or self.maximum is None:
            bounds = [("at least", self.minimum), ("at most", self.maximum)]
            return " and ".join(f"{word} {_plain(end)}{unit}" for word, end in bounds if end is not None)
        return f"from {_plain(self.minimum)} to {_plain(self.maximum)}{unit}"


_HYPHENATED = r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
_HYPHENATED_WORDS = "letters, digits and hyphens, with a letter or digit at both ends"
_S3_WORDS = "an s3:// or https:// address"

# Names.
MODEL_NAME = TextLimit(63, r"[a-zA-Z0-9]([\-a-zA-Z0-9]*[a-zA-Z0-9])?", _HYPHENATED_WORDS, 1, "ModelName")
ENDPOINT_CONFIG_NAME = TextLimit(63, _HYPHENATED, _HYPHENATED_WORDS, 1, "EndpointConfigName")
ENDPOINT_NAME = TextLimit(63, _HYPHENATED, _HYPHENATED_WORDS, 1, "EndpointName")
VARIANT_NAME = TextLimit(63, _HYPHENATED, _HYPHENATED_WORDS, 1, "VariantName")
CONTAINER_HOSTNAME = TextLimit(63, _HYPHENATED, _HYPHENATED_WORDS, 1, "ContainerHostname")
SCALING_POLICY_NAME = TextLimit(
    256, r"[^\x00-\x1f\x7f]+", "printable characters", 1, "application-autoscaling:PolicyName"
)

# The container.
IMAGE = TextLimit(255, r"[\S]+", "no white space", 1, "ContainerImage")
MODEL_DATA_URL = TextLimit(1024, r"(https|s3)://([^/]+)/?(.*)", _S3_WORDS, 1, "Url")
TARGET_MODEL = TextLimit(
    1024, r"\S[^\x00-\x1f\x7f]*", "printable characters", 1, "sagemaker-runtime:TargetModelHeader"
)
ENVIRONMENT_ENTRIES = RangeLimit(0, 100, "entries", "EnvironmentMap")
ENVIRONMENT_KEY = TextLimit(
    1024, r"[a-zA-Z_][a-zA-Z0-9_]*", "letters, digits and underscores, no digit first", 1, "EnvironmentKey"
)
ENVIRONMENT_VALUE = TextLimit(1024, shape="EnvironmentValue")
# API reference, ContainerDefinition: all keys and values together, also over all containers of a pipeline.
ENVIRONMENT_TOTAL_BYTES = RangeLimit(0, 32 * 1024, "bytes")

# The endpoint configuration.
VOLUME_SIZE_GB = RangeLimit(1, 512, "GB", "ProductionVariantVolumeSizeInGB")
INITIAL_INSTANCE_COUNT = RangeLimit(1, None, "instances", "InitialTaskCount")
VARIANT_WEIGHT = RangeLimit(0, None, "", "VariantWeight")
PRODUCTION_VARIANTS = RangeLimit(1, 10, "variants", "ProductionVariantList")
# API reference, CreateEndpointConfig: with a shadow variant, exactly one production variant.
PRODUCTION_VARIANTS_BESIDE_SHADOW = RangeLimit(1, 1, "variants")
MODEL_DATA_DOWNLOAD_TIMEOUT_SECONDS = RangeLimit(
    60, 3600, "seconds", "ProductionVariantModelDataDownloadTimeoutInSeconds"
)
CONTAINER_STARTUP_HEALTH_CHECK_TIMEOUT_SECONDS = RangeLimit(
    60, 3600, "seconds", "ProductionVariantContainerStartupHealthCheckTimeoutInSeconds"
)
VARIANT_INSTANCE_PROVISION_TIMEOUT_SECONDS = RangeLimit(
    300, 3600, "seconds", "VariantInstanceProvisionTimeoutInSeconds"
)
DATA_CAPTURE_SAMPLING_PERCENTAGE = RangeLimit(0, 100, "percent", "SamplingPercentage")
DATA_CAPTURE_DESTINATION = TextLimit(512, r"(https|s3)://([^/])/?(.*)", _S3_WORDS, 1, "DestinationS3Uri")
ASYNC_CONCURRENCY_PER_INSTANCE = RangeLimit(1, 1000, "invocations", "MaxConcurrentInvocationsPerInstance")

# Network, keys, tags.
SECURITY_GROUPS = RangeLimit(1, 5, "security groups", "VpcSecurityGroupIds")
SUBNETS = RangeLimit(1, 16, "subnets", "Subnets")
TAGS = RangeLimit(0, 50, "tags", "TagList")
TAG_KEY = TextLimit(128, min_length=1, shape="TagKey")
TAG_VALUE = TextLimit(256, shape="TagValue")
KMS_KEY_ID = TextLimit(2048, r"[a-zA-Z0-9:/_-]*", "letters, digits and : / _ -", 0, "KmsKeyId")

# Deployment. The percentages are in the API reference, not in the service model.
WAIT_INTERVAL_SECONDS = RangeLimit(0, 3600, "seconds", "WaitIntervalInSeconds")
TERMINATION_WAIT_SECONDS = RangeLimit(0, 3600, "seconds", "TerminationWaitInSeconds")
MAXIMUM_EXECUTION_TIMEOUT_SECONDS = RangeLimit(600, 28800, "seconds", "MaximumExecutionTimeoutInSeconds")
AUTO_ROLLBACK_ALARMS = RangeLimit(1, 10, "alarms", "AlarmList")
CANARY_SIZE_PERCENT = RangeLimit(1, 50, "percent of the fleet")
LINEAR_STEP_SIZE_PERCENT = RangeLimit(10, 50, "percent of the fleet")
ROLLING_BATCH_SIZE_PERCENT = RangeLimit(5, 50, "percent of the fleet")

# Automatic scaling. The SageMaker documentation wants one instance at least on a real-time endpoint; zero is
# for asynchronous ones.
MIN_CAPACITY_REAL_TIME = RangeLimit(1, None, "instances")
MIN_CAPACITY_ASYNC = RangeLimit(0, None, "instances")
COOLDOWN_SECONDS = RangeLimit(0, None, "seconds")
SAFETY_FACTOR = RangeLimit(0, 1)
GPU_UTILIZATION_PERCENT_PER_GPU = 100
"""``GPUUtilization`` and ``GPUMemoryUtilization`` run from 0 to this number times the GPUs of an instance."""

# Time that passes at run time, from the SageMaker developer guide (hosting) and the sagemaker-runtime model.
INVOCATION_TIMEOUT_SECONDS = 60
INVOCATION_CLIENT_READ_TIMEOUT_SECONDS = 70
STREAMING_TIMEOUT_SECONDS = 8 * 60
MULTI_MODEL_LOAD_TIMEOUT_SECONDS = 360
SCALING_COOLDOWN_DEFAULT_SECONDS = 300
INVOCATION_PAYLOAD_BYTES = 25 * 1024 * 1024


def check_name(property: str, value: str, limit: TextLimit) -> None:
    """Refuse a text that is too long, too short or made of other characters than ``limit`` allows.

    Raises ``InvalidValueError`` that names ``property``; a CDK token passes.
    """
    if is_token(value):
        return
    _refuse_no_text(property, value)
    if not limit.min_length <= len(value) <= limit.max_length:
        least = f"{limit.min_length} to " if limit.min_length else "at most "
        change = f"shorten it to {limit.max_length}" if len(value) > limit.max_length else "give it one"
        raise InvalidValueError(
            f"{property}: must have {least}{limit.max_length} characters, got {_shown(value)}; {change}"
        )
    if re.fullmatch(limit.pattern, value) is None:
        raise InvalidValueError(
            f"{property}: must match {limit.pattern}, got {_shown(value)}; use {limit.allowed}"
        )


def check_range(property: str, value: float, limit: RangeLimit) -> None:
    """Refuse a number outside ``limit``, both of whose ends are allowed.

    Raises ``InvalidValueError`` that names ``property``; a CDK token passes.
    """
    if is_token(value):
        return
    _refuse_no_number(property, value)
    # Written so that a NaN is refused: it is neither below nor above anything.
    above = limit.minimum is None or value >= limit.minimum
    below = limit.maximum is None or value <= limit.maximum
    if not (above and below):
        raise InvalidValueError(f"{property}: must be {limit}, got {_plain(value)}; {_bound(value, limit)}")


def check_count(property: str, values: Sized, limit: RangeLimit) -> None:
    """Refuse a collection with more or fewer entries than ``limit`` allows; a list token passes."""
    if not is_token(values):
        check_range(property, len(values), limit)


def _refuse_no_text(property: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidValueError(f'{property}: must be a text, got {value!r}; write "{value}"')


def _refuse_no_number(property: str, value: object) -> None:
    if isinstance(value, str):
        raise InvalidValueError(f"{property}: must be a number, got {_shown(value)}; write it without quotes")
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidValueError(f"{property}: must be a number, got {value!r}; give one")


def _bound(value: float, limit: RangeLimit) -> str:
    if limit.minimum is not None and value < limit.minimum:
        return f"raise it to {_plain(limit.minimum)}"
    if limit.maximum is not None and value > limit.maximum:
        return f"lower it to {_plain(limit.maximum)}"
    return "give a number"


def _plain(value: float) -> str:
    """Whole numbers without a point or an exponent."""
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def _shown(value: str, longest: int = 80) -> str:
    """The value in quotes, cut where nobody would read on."""
    return f'"{value}"' if len(value) <= longest else f'"{value[:longest]}..." ({len(value)} characters)'
