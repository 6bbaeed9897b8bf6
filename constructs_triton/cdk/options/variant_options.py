"""``TritonVariant``: one of several fleets behind an endpoint, with a model, image or machine of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from aws_cdk import Duration, Size

from constructs_triton.cdk.options.core_dump import CoreDump
from constructs_triton.cdk.options.environment import TritonEnvironment
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.repository.model_repository import TritonModelRepository
from constructs_triton.cdk.validation.durations import check_duration
from constructs_triton.cdk.validation.limit_checks import check_name, check_range
from constructs_triton.cdk.validation.property_types import PropertyType, check_types
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts import limits
from constructs_triton.facts.inference_ami import FOR_THE_IMAGE, InferenceAmi
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.spelling import did_you_mean

__all__ = ["RoutingStrategy", "TritonVariant", "VariantProps"]

RoutingStrategy = Literal["LEAST_OUTSTANDING_REQUESTS", "RANDOM"]
_STRATEGIES = ("LEAST_OUTSTANDING_REQUESTS", "RANDOM")


@dataclass(frozen=True, slots=True, kw_only=True)
class TritonVariant:
    """A production variant, or a shadow variant; what is ``None`` is taken from the endpoint.

    ``variant_name``
        Has to stay the same for the life of the endpoint, or traffic and scaling start anew.
    ``model_repository``, ``model``
        Models of its own, for instance the next release of them; ``model`` not on multi-model endpoints.
    ``initial_variant_weight``
        Its share of the traffic, relative to the sum over all variants; 0 is a variant without traffic of
        its own, which callers still reach by ``TargetVariant``. Of a shadow variant: the share of requests
        that are copied to it, relative to the production variant's weight.

    The others are those of ``EndpointOptions``, and an ``inference_ami_version`` of ``None`` leaves it
    out here too. A given ``environment`` replaces the endpoint's as a whole.
    """

    variant_name: str
    model_repository: TritonModelRepository | None = None
    model: str | None = None
    instance_type: InstanceType | None = None
    image: TritonImage | None = None
    environment: TritonEnvironment | Mapping[str, str] | None = None
    initial_instance_count: float | None = None
    initial_variant_weight: float | None = None
    inference_ami_version: InferenceAmi | str | None = FOR_THE_IMAGE
    volume_size: Size | None = None
    container_startup_health_check_timeout: Duration | None = None
    model_data_download_timeout: Duration | None = None
    variant_instance_provision_timeout: Duration | None = None
    routing_strategy: RoutingStrategy | None = None
    enable_ssm_access: bool | None = None
    core_dump: CoreDump | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantProps:
    """All that is decided about one variant; an instance has passed its checks.

    Raises ``InvalidValueError`` for a value that SageMaker would refuse.
    """

    variant_name: str
    instance_type: InstanceType
    image: TritonImage | None = None
    environment: TritonEnvironment | Mapping[str, str] | None = None
    initial_instance_count: float = 1
    initial_variant_weight: float = 1
    inference_ami_version: InferenceAmi | str | None = FOR_THE_IMAGE
    volume_size: Size | None = None
    container_startup_health_check_timeout: Duration | None = None
    model_data_download_timeout: Duration | None = None
    variant_instance_provision_timeout: Duration | None = None
    routing_strategy: RoutingStrategy | None = None
    enable_ssm_access: bool | None = None
    core_dump: CoreDump | None = None

    def __post_init__(self) -> None:
        check_types(self, _TYPES)
        check_name("variant_name", self.variant_name, limits.VARIANT_NAME)
        count, weight = self.initial_instance_count, self.initial_variant_weight
        check_range("initial_instance_count", count, limits.INITIAL_INSTANCE_COUNT)
        check_range("initial_variant_weight", weight, limits.VARIANT_WEIGHT)
        if self.volume_size is not None:
            check_range("volume_size", self.volume_size.to_gibibytes(), limits.VOLUME_SIZE_GB)
        for name, limit in _TIMEOUTS.items():
            check_duration(name, getattr(self, name), limit)
        _check_routing(self.routing_strategy)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The properties that an endpoint and its variants have in common."""
        return tuple(field.name for field in fields(cls) if field.name != "variant_name")


_DURATION: PropertyType = (Duration, "Duration.minutes(10)")
_TYPES: dict[str, PropertyType] = {
    "instance_type": (InstanceType, 'InstanceType.of("ml.g5.xlarge")'),
    "image": (TritonImage, 'TritonImage.dlc("26.05")'),
    "environment": ((TritonEnvironment, Mapping), "TritonEnvironment(thread_count=16)"),
    "inference_ami_version": ((InferenceAmi, str), "InferenceAmi.of(...)"),
    "volume_size": (Size, "Size.gibibytes(50)"),
    "container_startup_health_check_timeout": _DURATION,
    "model_data_download_timeout": _DURATION,
    "variant_instance_provision_timeout": _DURATION,
    "core_dump": (CoreDump, "CoreDump(...)"),
}
_TIMEOUTS = {
    "container_startup_health_check_timeout": limits.CONTAINER_STARTUP_HEALTH_CHECK_TIMEOUT_SECONDS,
    "model_data_download_timeout": limits.MODEL_DATA_DOWNLOAD_TIMEOUT_SECONDS,
    "variant_instance_provision_timeout": limits.VARIANT_INSTANCE_PROVISION_TIMEOUT_SECONDS,
}


def _check_routing(strategy: str | None) -> None:
    if strategy is None or not is_concrete(strategy) or strategy in _STRATEGIES:
        return
    if strategy in ("PREFIX_AWARE", "KV_AWARE"):
        raise InvalidValueError(
            f'routing_strategy: follows the prompts of language model containers, got "{strategy}"; '
            "use LEAST_OUTSTANDING_REQUESTS or RANDOM"
        )
    hint = did_you_mean(strategy, _STRATEGIES) or "use LEAST_OUTSTANDING_REQUESTS or RANDOM"
    raise InvalidValueError(
        f'routing_strategy: must be one of {", ".join(_STRATEGIES)}, got "{strategy}"; {hint}'
    )
