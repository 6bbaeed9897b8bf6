"""The properties of ``TritonComponentEndpoint``, checked before anything is added to the tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Required, cast

from aws_cdk import Duration, Size
from aws_cdk import aws_sagemaker as sagemaker

from constructs_triton.cdk.options.host_options import (
    HostOptions,
    InstanceOptions,
    ResourceOptions,
    check_subnets_need_vpc,
)
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.options.instance_pool import (
    check_instances,
    has_own_models,
    instance_types_of,
)
from constructs_triton.cdk.options.removal import check_removal_policy
from constructs_triton.cdk.validation.limit_checks import whole
from constructs_triton.cdk.validation.properties import check_properties, refuse_properties
from constructs_triton.cdk.validation.property_types import shown
from constructs_triton_core.declared_values import DERIVED, Value, with_defaults
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.limit_checks import check_range
from constructs_triton_core.tokens import is_token
from triton_model_check.facts.inference_ami import InferenceAmi

ComponentRoutingStrategy = Literal["LEAST_OUTSTANDING_REQUESTS", "RANDOM", "PREFIX_AWARE"]
_ScaleInPolicy = sagemaker.CfnEndpointConfig.ScaleInPolicyProperty
# botocore sagemaker service model: ManagedInstanceScalingCooldownInMinutes, ...MaximumStepSize.
_COOLDOWN, _STEP_SIZE = (
    limits.RangeLimit(5, 1440, "minutes"),
    limits.RangeLimit(1, 100, "instances", is_whole=True),
)


class ComponentEndpointOptions(HostOptions, InstanceOptions, ResourceOptions, total=False):
    """The properties of an endpoint whose instances inference components share."""

    min_instance_count: Required[
        Annotated[
            float,
            Value(
                "Minimum number of instances. With 0, the endpoint costs nothing while all "
                "components have no copies.",
                example="0",
                limit=limits.MANAGED_MIN_INSTANCE_COUNT,
            ),
        ]
    ]
    max_instance_count: Required[
        Annotated[
            float,
            Value(
                "Maximum number of instances. SageMaker adds instances when copies do not fit.",
                example="2",
                limit=limits.MANAGED_MAX_INSTANCE_COUNT,
            ),
        ]
    ]
    initial_instance_count: Annotated[
        float | None,
        Value(
            "Number of instances at the first deployment, at least 1.",
            default_text="``min_instance_count``, or 1 if that is 0",
            limit=limits.INITIAL_INSTANCE_COUNT,
        ),
    ]
    variant_name: Annotated[
        str | None,
        Value(
            "Name of the only variant. A new name replaces the components.",
            default="AllTraffic",
            limit=limits.VARIANT_NAME,
        ),
    ]
    image: Annotated[
        TritonImage | None,
        Value(
            "The container image of components that do not set their own.",
            default_text="``TritonImage.dlc()``",
            example='TritonImage.dlc("26.05")',
        ),
    ]
    scale_in_strategy: Annotated[
        Literal["IDLE_RELEASE", "CONSOLIDATION"] | None,
        Value(
            "How SageMaker removes instances: ``IDLE_RELEASE`` removes those without copies, and "
            "``CONSOLIDATION`` also moves copies onto fewer instances.",
            default_text="SageMaker's",
        ),
    ]
    scale_in_cooldown: Annotated[
        Duration | None,
        Value(
            "How long after the last operation of the endpoint "
            "``CONSOLIDATION`` begins: 5 minutes to a day.",
            default_text="SageMaker's, 20 minutes",
            example="Duration.minutes(20)",
        ),
    ]
    scale_in_maximum_step_size: Annotated[
        float | None,
        Value(
            "How many instances ``CONSOLIDATION`` removes at a time, at most 100.",
            default_text="SageMaker's, 1",
            limit=_STEP_SIZE,
        ),
    ]
    inference_ami_version: Annotated[
        InferenceAmi | str | None,
        Value(
            "The Amazon Machine Image of the instances, which contains the GPU driver for the "
            "images of all components. ``None`` uses SageMaker's default.",
            default=DERIVED,
            default_text="the one that the newest image of the components needs",
            example='InferenceAmi.of("...")',
        ),
    ]
    volume_size: Annotated[
        Size | None,
        Value(
            "Size of the storage volume of each instance, which contains the models of all "
            "components. Not supported by instance types with local NVMe storage.",
            default_text="SageMaker's",
            example="Size.gibibytes(50)",
            limit=limits.VOLUME_SIZE_GB,
        ),
    ]
    routing_strategy: Annotated[
        ComponentRoutingStrategy | None,
        Value(
            "How SageMaker chooses a copy of the component for a request: "
            "``LEAST_OUTSTANDING_REQUESTS``, ``RANDOM``, or ``PREFIX_AWARE``, which sends requests "
            "with the same beginning to the same copy. "
            "``PREFIX_AWARE`` is for endpoints without components of Triton.",
            default="LEAST_OUTSTANDING_REQUESTS",
        ),
    ]
    prefix_length: Annotated[
        float | None,
        Value(
            "How many bytes of the body, or characters of OpenAI messages, ``PREFIX_AWARE`` "
            "compares. It should cover shared instructions and some text that is not shared. "
            "Required with ``PREFIX_AWARE``.",
            default_text="none",
            limit=limits.PREFIX_LENGTH,
        ),
    ]
    concurrency_threshold: Annotated[
        float | None,
        Value(
            "How many requests a copy processes at a time before ``PREFIX_AWARE`` chooses another "
            "copy. Required with ``PREFIX_AWARE``.",
            default_text="none",
            limit=limits.CONCURRENCY_THRESHOLD,
        ),
    ]


def checked_endpoint_options(given: ComponentEndpointOptions) -> ComponentEndpointOptions:
    """Check the properties of a component endpoint and add the defaults.

    Raises:
        TypeError: there is no such property.
        InvalidValueError: a value is out of range, or components do not support the property.
    """
    refuse_properties(given, "component endpoints")
    check_properties("TritonComponentEndpoint()", given, ComponentEndpointOptions)
    _check_routing(given.get("routing_strategy"))
    options = with_defaults(given, ComponentEndpointOptions)
    check_instances(options)
    _check_pools(options)
    check_removal_policy(options["removal_policy"], "endpoints")
    check_subnets_need_vpc(options)
    if options["initial_instance_count"] is None:
        options["initial_instance_count"] = _initial(options["min_instance_count"])
    _check_counts(options)
    _check_volume(options)
    _check_prefix(options)
    scale_in_policy(options)
    return options


def _check_pools(options: ComponentEndpointOptions) -> None:
    for each in options["instance_pools"] or ():
        if has_own_models(each):
            raise InvalidValueError(
                f"instance_pools: an endpoint with components has no models, got some on {each}; "
                "set instance_pools on the TritonInferenceComponent"
            )


def _initial(min_instance_count: float) -> float:
    # SageMaker requires an initial instance, also of an endpoint that may scale to zero.
    return 1 if is_token(min_instance_count) else max(min_instance_count, 1)


def _check_counts(options: ComponentEndpointOptions) -> None:
    """Check that the instance counts are in order.

    Raises:
        InvalidValueError: they are not.
    """
    least, most = options["min_instance_count"], options["max_instance_count"]
    initial = cast(float, options["initial_instance_count"])
    if is_token(most):
        return
    if not is_token(least) and least > most:
        raise InvalidValueError(
            f"min_instance_count: must not be above max_instance_count {most:g}, got {least:g}; "
            "lower it or raise max_instance_count"
        )
    if not is_token(initial) and not is_token(least) and not max(least, 1) <= initial <= most:
        raise InvalidValueError(
            f"initial_instance_count: must be from {max(least, 1):g} to max_instance_count "
            f"{most:g}, got {initial:g}; change it"
        )


def _check_routing(strategy: str | None) -> None:
    if strategy == "KV_AWARE":
        raise InvalidValueError(
            "routing_strategy: only some containers for language models support it, and it needs "
            f'properties that this library does not have, got "{strategy}"; use PREFIX_AWARE, or '
            "cfn_endpoint_config.add_property_override"
        )


def _check_prefix(options: ComponentEndpointOptions) -> None:
    """Check that the properties of prefix-aware routing are set with it, and only with it."""
    given = {name: options[name] for name in ("prefix_length", "concurrency_threshold")}
    is_needed = options["routing_strategy"] == "PREFIX_AWARE"
    for name, value in given.items():
        if is_needed and value is None:
            raise InvalidValueError(
                f'{name}: is required with routing_strategy="PREFIX_AWARE"; set it'
            )
        if not is_needed and value is not None:
            raise InvalidValueError(
                f'{name}: only for routing_strategy="PREFIX_AWARE", '
                f"got {shown(value)}; remove it, or set the strategy"
            )


def scale_in_policy(options: ComponentEndpointOptions) -> _ScaleInPolicy | None:
    """Return the property of the production variant.

    Raises:
        InvalidValueError: a value is out of range, or has no strategy.
    """
    strategy, cooldown = options["scale_in_strategy"], options["scale_in_cooldown"]
    step_size, minutes = options["scale_in_maximum_step_size"], None
    if cooldown is not None:
        minutes = cooldown.to_minutes(integral=False)
        check_range("scale_in_cooldown", minutes, _COOLDOWN)
        whole("scale_in_cooldown", minutes, "minutes", "Duration.minutes")
    if strategy is not None:
        return _ScaleInPolicy(
            strategy=strategy, cooldown_in_minutes=minutes, maximum_step_size=step_size
        )
    if minutes is None and step_size is None:
        return None
    given = "scale_in_maximum_step_size" if cooldown is None else "scale_in_cooldown"
    raise InvalidValueError(
        f'scale_in_strategy: is required with {given}; set it to "CONSOLIDATION"'
    )


def scale_in_findings(options: ComponentEndpointOptions) -> Iterator[Finding]:
    """Yield a warning if a property of scaling in is only for another strategy."""
    others = (options["scale_in_cooldown"], options["scale_in_maximum_step_size"])
    if options["scale_in_strategy"] == "IDLE_RELEASE" and others != (None, None):
        yield Finding(
            "scale-in-policy-unused",
            Severity.WARNING,
            "scale_in_strategy",
            "AWS describes the cooldown and the step size for CONSOLIDATION only, got IDLE_RELEASE",
            'set scale_in_strategy="CONSOLIDATION", or remove the two',
            source="API reference: ProductionVariantManagedInstanceScalingScaleInPolicy",
        )


def _check_volume(options: ComponentEndpointOptions) -> None:
    for instance_type in instance_types_of(options):
        if options["volume_size"] is not None and instance_type.supports_volume_size is False:
            raise InvalidValueError(
                f'volume_size: "{instance_type}" has {instance_type.local_storage_gb} GB of local '
                "NVMe and does not support a volume size; remove it"
            )
