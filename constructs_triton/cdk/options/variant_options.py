"""``TritonVariant``, and the properties that endpoints, variants and inference components share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypedDict, Unpack

from aws_cdk import Duration, SecretValue, Size

from constructs_triton.cdk.options.capacity_reservation import CapacityReservationConfig
from constructs_triton.cdk.options.core_dump import CoreDump
from constructs_triton.cdk.options.environment import TritonEnvironment
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.options.instance_pool import INSTANCE_TYPE_EXAMPLE
from constructs_triton.cdk.repository.model_repository import TritonModelRepository
from constructs_triton.cdk.validation.properties import check_properties, takes_properties
from constructs_triton.cdk.validation.property_types import PropertyType, check_type
from constructs_triton_core.declared_values import DERIVED, Value, given_values
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.limit_checks import check_name
from triton_model_check.facts.inference_ami import InferenceAmi

TEN_MINUTES = "Duration.seconds(600)"  # the unit of the API


class ContainerOptions(TypedDict, total=False):
    """The image of a container, its variables, and how long it may take to start."""

    image: Annotated[
        TritonImage | None,
        Value(
            "The container image. The instance type decides between its GPU and its CPU version.",
            default_text="``TritonImage.dlc()``; for a component, the image of its endpoint",
            example='TritonImage.dlc("26.05")',
        ),
    ]
    environment: Annotated[
        TritonEnvironment | Mapping[str, str | SecretValue] | None,
        Value(
            "Environment variables of the container: a ``TritonEnvironment``, or a mapping of "
            "names to strings, or to a ``SecretValue`` of Secrets Manager, whose value the "
            "template does not contain. The variables of a variant are added to those of its "
            "endpoint and replace variables of the same name.",
            example="TritonEnvironment(thread_count=16)",
        ),
    ]
    container_startup_health_check_timeout: Annotated[
        Duration | None,
        Value(
            "How long the container may take until its health check succeeds: 60 seconds to 1 "
            "hour. A deployment of a container that does not start waits for it.",
            default_text="derived from the size of the models",
            example=TEN_MINUTES,
            limit=limits.CONTAINER_STARTUP_HEALTH_CHECK_TIMEOUT_SECONDS,
        ),
    ]
    model_data_download_timeout: Annotated[
        Duration | None,
        Value(
            "How long the download of the models may take: 60 seconds to 1 hour.",
            default_text="derived from the size of the archive",
            example=TEN_MINUTES,
            limit=limits.MODEL_DATA_DOWNLOAD_TIMEOUT_SECONDS,
        ),
    ]


RoutingStrategy = Literal["LEAST_OUTSTANDING_REQUESTS", "RANDOM"]
STRATEGIES = ("LEAST_OUTSTANDING_REQUESTS", "RANDOM")
_INSTANCE_TYPE: PropertyType = (InstanceType, INSTANCE_TYPE_EXAMPLE)


class VariantOptions(ContainerOptions, total=False):
    """The properties that an endpoint and its variants share.

    A variant takes from its endpoint what it does not set itself.
    """

    initial_instance_count: Annotated[
        float | None,
        Value(
            "Number of instances at the first deployment. With scaling, later deployments keep the "
            "count that scaling has reached.",
            default=1,
            limit=limits.INITIAL_INSTANCE_COUNT,
        ),
    ]
    initial_variant_weight: Annotated[
        float | None,
        Value(
            "Share of the traffic, relative to the sum over all variants. A variant of weight 0 "
            "receives only requests with its name as ``TargetVariant``. For a shadow variant: "
            "share of the requests that are copied to it, "
            "relative to the weight of the production variant.",
            default=1,
            limit=limits.VARIANT_WEIGHT,
        ),
    ]
    inference_ami_version: Annotated[
        InferenceAmi | str | None,
        Value(
            "The Amazon Machine Image of the instance, which contains the GPU driver. "
            "``None`` uses SageMaker's default.",
            default=DERIVED,
            default_text="the one that the container image needs",
            example='InferenceAmi.of("...")',
        ),
    ]
    volume_size: Annotated[
        Size | None,
        Value(
            "Size of the storage volume. Not supported by instance types with local NVMe storage.",
            default_text=(
                "derived from the size of the archive, where SageMaker's default is too small"
            ),
            example="Size.gibibytes(50)",
            limit=limits.VOLUME_SIZE_GB,
        ),
    ]
    variant_instance_provision_timeout: Annotated[
        Duration | None,
        Value(
            "How long SageMaker tries to find instances: 5 minutes to 1 hour.",
            default_text="SageMaker's",
            example=TEN_MINUTES,
            limit=limits.VARIANT_INSTANCE_PROVISION_TIMEOUT_SECONDS,
        ),
    ]
    routing_strategy: Annotated[
        RoutingStrategy | None,
        Value(
            "How SageMaker chooses an instance for a request: "
            "``LEAST_OUTSTANDING_REQUESTS`` or ``RANDOM``.",
            default_text="``LEAST_OUTSTANDING_REQUESTS`` on real-time endpoints of one model. "
            "A multi-model endpoint sends requests to the instances that have loaded the model",
        ),
    ]
    enable_ssm_access: Annotated[
        bool | None,
        Value(
            "Whether AWS Systems Manager can open a session on the container's host.",
            default_text="``False``",
            example="True",
        ),
    ]
    capacity_reservation: Annotated[
        CapacityReservationConfig | None,
        Value(
            "A reservation whose instances the variant uses. It has no others, so it cannot scale "
            "above the reservation.",
            example='CapacityReservationConfig(ml_reservation_arn="...")',
        ),
    ]
    core_dump: Annotated[
        CoreDump | None,
        Value(
            "Where the core dump of a container that crashed is written.",
            example="CoreDump(bucket=bucket)",
        ),
    ]


@takes_properties(VariantOptions, has_defaults=False)
class TritonVariant:
    """A production variant or a shadow variant of an endpoint.

    A property that is not given, or is ``None``, is taken from the endpoint.
    ``inference_ami_version=None`` is the exception: it uses SageMaker's default.

    ``variant_name``
        Keep it for the life of the endpoint: SageMaker keeps traffic and scaling by this name.
    ``model_repository``, ``model``
        Other models than the endpoint's, for example their next release. ``model`` is not supported
        on multi-model endpoints.
    ``instance_type``
        Another instance type than the endpoint's. If each variant sets it, the endpoint needs none.

    Raises:
        InvalidValueError: a value has the wrong type or SageMaker would refuse it.
    """

    __slots__ = ("instance_type", "model", "model_repository", "options", "variant_name")

    def __init__(
        self,
        *,
        variant_name: str,
        model_repository: TritonModelRepository | None = None,
        model: str | None = None,
        instance_type: InstanceType | None = None,
        **options: Unpack[VariantOptions],
    ) -> None:
        check_name("variant_name", variant_name, limits.VARIANT_NAME)
        try:
            check_type("instance_type", instance_type, _INSTANCE_TYPE)
            check_properties("TritonVariant()", options, VariantOptions)
            check_variant_options(options)
        except InvalidValueError as error:
            raise InvalidValueError(f'variant "{variant_name}" {error}') from None
        self.variant_name = variant_name
        self.model_repository = model_repository
        self.model = model
        self.instance_type = instance_type
        self.options = given_values(options, VariantOptions)


def check_variant_options(options: VariantOptions) -> None:
    """Check what types and limits alone do not say: that Triton supports the routing strategy."""
    strategy = options.get("routing_strategy")
    if strategy in ("PREFIX_AWARE", "KV_AWARE"):
        raise InvalidValueError(
            f'routing_strategy: only containers for language models support it, got "{strategy}"; '
            "use LEAST_OUTSTANDING_REQUESTS or RANDOM, or serve the model as a "
            "ContainerInferenceComponent"
        )
