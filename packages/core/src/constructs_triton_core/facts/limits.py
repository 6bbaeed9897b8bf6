"""Names, lengths, patterns, ranges and timeouts of the SageMaker and Application Auto Scaling APIs.

``shape`` is the source of a limit: the shape in botocore's service model, ``sagemaker`` unless it
says otherwise. ``dev/facts_check.py`` compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "COOLDOWN_SECONDS",
    "INVOCATION_PAYLOAD_BYTES",
    "INVOCATION_TIMEOUT_SECONDS",
    "MIN_CAPACITY_ASYNC",
    "MIN_CAPACITY_COMPONENT",
    "MIN_CAPACITY_REAL_TIME",
    "SAFETY_FACTOR",
    "SCALING_POLICY_NAME",
    "STREAM_TIMEOUT_SECONDS",
    "RangeLimit",
    "TextLimit",
    "plain_number",
]


@dataclass(frozen=True, slots=True)
class TextLimit:
    """Length and characters of a string; ``allowed`` describes the pattern in words."""

    max_length: int
    pattern: str = r"[\s\S]*"
    allowed: str = ""
    min_length: int = 0
    shape: str = ""


@dataclass(frozen=True, slots=True)
class RangeLimit:
    """Minimum and maximum, both allowed; ``None`` means no limit. ``unit`` is for messages.

    ``is_whole`` says that the API takes whole numbers only.
    """

    minimum: float | None
    maximum: float | None
    unit: str = ""
    shape: str = ""
    is_whole: bool = False

    def __str__(self) -> str:
        if self.minimum is not None and self.maximum is not None:
            return f"from {plain_number(self.minimum)} to {self._with_unit(self.maximum)}"
        if self.minimum is not None:
            return f"at least {self._with_unit(self.minimum, is_count=True)}"
        if self.maximum is not None:
            return f"at most {self._with_unit(self.maximum, is_count=True)}"
        return ""

    def _with_unit(self, number: float, *, is_count: bool = False) -> str:
        """Return a number with the unit; a count of one has the singular."""
        if not self.unit:
            return plain_number(number)
        unit = _singular(self.unit) if is_count and number == 1 else self.unit
        return f"{plain_number(number)} {unit}"


def _singular(unit: str) -> str:
    """Return the unit of one thing, such as ``second`` for ``seconds``."""
    return unit.replace("copies", "copy").removesuffix("s")


_HYPHENATED = r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
# The same names; AWS writes the pattern of inference components in another way.
_HYPHENATED_COMPONENT = r"[a-zA-Z0-9]([\-a-zA-Z0-9]*[a-zA-Z0-9])?"
_HYPHENATED_WORDS = "letters, digits and hyphens, with a letter or digit at both ends"

# Names.
ENDPOINT_NAME = TextLimit(63, _HYPHENATED, _HYPHENATED_WORDS, 1, "EndpointName")
VARIANT_NAME = TextLimit(63, _HYPHENATED, _HYPHENATED_WORDS, 1, "VariantName")
SCALING_POLICY_NAME = TextLimit(
    256, r"[^\x00-\x1f\x7f]+", "printable characters", 1, "application-autoscaling:PolicyName"
)

# The container.
IMAGE = TextLimit(255, r"[\S]+", "no white space", 1, "ContainerImage")
TARGET_MODEL = TextLimit(
    1024, r"\S[^\x00-\x1f\x7f]*", "printable characters", 1, "sagemaker-runtime:TargetModelHeader"
)
ENVIRONMENT_ENTRIES = RangeLimit(0, 100, "entries", "EnvironmentMap")
ENVIRONMENT_KEY = TextLimit(
    1024,
    r"[a-zA-Z_][a-zA-Z0-9_]*",
    "letters, digits and underscores, no digit first",
    1,
    "EnvironmentKey",
)
ENVIRONMENT_VALUE = TextLimit(1024, shape="EnvironmentValue")
# API reference, ContainerDefinition: all keys and values together, also over all containers of a
# pipeline.
ENVIRONMENT_TOTAL_BYTES = RangeLimit(0, 32 * 1024, "bytes")

# The endpoint configuration.
VOLUME_SIZE_GB = RangeLimit(1, 512, "GB", "ProductionVariantVolumeSizeInGB", is_whole=True)
INITIAL_INSTANCE_COUNT = RangeLimit(1, None, "instances", "InitialTaskCount", is_whole=True)
VARIANT_WEIGHT = RangeLimit(0, None, "", "VariantWeight")
PRODUCTION_VARIANTS = RangeLimit(1, 10, "variants", "ProductionVariantList")
INSTANCE_POOLS = RangeLimit(1, 5, "pools", "InstancePoolList")
MODEL_DATA_DOWNLOAD_TIMEOUT_SECONDS = RangeLimit(
    60, 3600, "seconds", "ProductionVariantModelDataDownloadTimeoutInSeconds"
)
CONTAINER_STARTUP_HEALTH_CHECK_TIMEOUT_SECONDS = RangeLimit(
    60, 3600, "seconds", "ProductionVariantContainerStartupHealthCheckTimeoutInSeconds"
)
VARIANT_INSTANCE_PROVISION_TIMEOUT_SECONDS = RangeLimit(
    300, 3600, "seconds", "VariantInstanceProvisionTimeoutInSeconds"
)
DATA_CAPTURE_SAMPLING_PERCENTAGE = RangeLimit(
    0, 100, "percent", "SamplingPercentage", is_whole=True
)
ASYNC_CONCURRENCY_PER_INSTANCE = RangeLimit(
    1, 1000, "invocations", "MaxConcurrentInvocationsPerInstance", is_whole=True
)

# Inference components. The first copy cannot be left out: SageMaker refuses a copy count of 0 at
# creation.
INFERENCE_COMPONENT_NAME = TextLimit(
    63, _HYPHENATED_COMPONENT, _HYPHENATED_WORDS, 1, "InferenceComponentName"
)
COPY_COUNT = RangeLimit(1, None, "copies", is_whole=True)
MEMORY_MIB = RangeLimit(128, None, "MiB", "MemoryInMb", is_whole=True)
CPU_CORES = RangeLimit(0.25, None, "vCPUs", "NumberOfCpuCores")
ACCELERATOR_DEVICES = RangeLimit(1, None, "GPUs", "NumberOfAcceleratorDevices")
MANAGED_MIN_INSTANCE_COUNT = RangeLimit(
    0, None, "instances", "ManagedInstanceScalingMinInstanceCount", is_whole=True
)
MANAGED_MAX_INSTANCE_COUNT = RangeLimit(
    1, None, "instances", "ManagedInstanceScalingMaxInstanceCount", is_whole=True
)
MAX_IMBALANCE = RangeLimit(0, 100, "copies", is_whole=True)
PREFIX_LENGTH = RangeLimit(1024, 65536, "bytes", "PrefixAwareRoutingPrefixLength", is_whole=True)
CONCURRENCY_THRESHOLD = RangeLimit(
    1, 1024, "requests", "PrefixAwareRoutingConcurrencyThreshold", is_whole=True
)

# The network.
SUBNETS = RangeLimit(1, 16, "subnets", "Subnets")
SECURITY_GROUPS = RangeLimit(1, 5, "security groups", "VpcSecurityGroupIds")

# Deployment. The percentages are in the API reference, not in the service model.
WAIT_INTERVAL_SECONDS = RangeLimit(0, 3600, "seconds", "WaitIntervalInSeconds")
TERMINATION_WAIT_SECONDS = RangeLimit(0, 3600, "seconds", "TerminationWaitInSeconds")
MAXIMUM_EXECUTION_TIMEOUT_SECONDS = RangeLimit(
    600, 28800, "seconds", "MaximumExecutionTimeoutInSeconds"
)
AUTO_ROLLBACK_ALARMS = RangeLimit(1, 10, "alarms", "AlarmList")
CANARY_SIZE_PERCENT = RangeLimit(1, 50, "percent of the fleet", is_whole=True)
LINEAR_STEP_SIZE_PERCENT = RangeLimit(10, 50, "percent of the fleet", is_whole=True)
ROLLING_BATCH_SIZE_PERCENT = RangeLimit(5, 50, "percent of the fleet", is_whole=True)
COPIES_BATCH_SIZE_PERCENT = RangeLimit(5, 50, "percent of the copies", is_whole=True)

# Application Auto Scaling. An asynchronous endpoint may have no instances, and a component no
# copies.
MIN_CAPACITY_REAL_TIME = RangeLimit(1, None, "instances", is_whole=True)
MIN_CAPACITY_ASYNC = RangeLimit(0, None, "instances", is_whole=True)
MIN_CAPACITY_COMPONENT = RangeLimit(0, None, "copies", is_whole=True)
COOLDOWN_SECONDS = RangeLimit(0, None, "seconds")
SAFETY_FACTOR = RangeLimit(0, 1)

# Invocations: SageMaker developer guide (hosting) and the sagemaker-runtime model.
INVOCATION_TIMEOUT_SECONDS = 60.0
STREAM_TIMEOUT_SECONDS = 480.0
INVOCATION_PAYLOAD_BYTES = 25 * 1024 * 1024


def plain_number(value: float) -> str:
    """Format a number; a whole number has no decimal point and no exponent."""
    return str(int(value)) if float(value).is_integer() else f"{value:g}"
