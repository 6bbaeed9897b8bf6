"""The properties that all endpoint constructs share,
checked before anything is added to the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypedDict, cast

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs

from constructs_triton.cdk.endpoint.log_group import check_log_retention
from constructs_triton.cdk.options.async_inference import AsyncInferenceConfig
from constructs_triton.cdk.options.data_capture import DataCapture
from constructs_triton.cdk.options.deployment import Deployment, total_wait_seconds
from constructs_triton.cdk.options.host_options import (
    HostOptions,
    InstanceOptions,
    ResourceOptions,
    check_subnets_need_vpc,
)
from constructs_triton.cdk.options.instance_pool import INSTANCE_TYPE_EXAMPLE, check_instances
from constructs_triton.cdk.options.published_metrics import PublishedMetrics, check_custom_metrics
from constructs_triton.cdk.options.removal import check_removal_policy
from constructs_triton.cdk.options.variant_options import (
    TritonVariant,
    VariantOptions,
    check_variant_options,
)
from constructs_triton.cdk.repository.properties import CompressionType
from constructs_triton.cdk.scaling.off_switch import OffSwitch
from constructs_triton.cdk.validation.properties import check_properties, refuse_properties
from constructs_triton_core.declared_values import Value, part_of, with_defaults
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits

#: The function waits for an update for about 45 minutes, and instances need time to start.
_LONGEST_WAIT_SECONDS = 30 * 60
_VARIANT_EXAMPLE = 'TritonVariant(variant_name="Green")'


class FleetOptions(VariantOptions, InstanceOptions, total=False):
    """The instances of an endpoint: its variants, or those of its only variant."""

    variant_name: Annotated[
        str | None,
        Value(
            "Name of the only variant. Keep it for the life of the endpoint: SageMaker keeps "
            "traffic and scaling by this name. Not supported together with ``variants``.",
            default="AllTraffic",
            limit=limits.VARIANT_NAME,
        ),
    ]
    variants: Annotated[
        Sequence[TritonVariant] | None,
        Value(
            "Up to 10 production variants. "
            "Each takes from the endpoint what it does not set itself.",
            default_text="one variant with the properties of the endpoint",
            example=_VARIANT_EXAMPLE,
            limit=limits.PRODUCTION_VARIANTS,
        ),
    ]
    shadow_variant: Annotated[
        TritonVariant | None,
        Value(
            "A variant that receives copies of the requests and whose responses are discarded. "
            "Needs exactly one production variant. Not supported on multi-model endpoints.",
            example=_VARIANT_EXAMPLE,
        ),
    ]


class RequestOptions(TypedDict, total=False):
    """What SageMaker does with the requests of an endpoint besides answering them."""

    data_capture: Annotated[
        DataCapture | None,
        Value("Writes requests and responses to S3.", example="DataCapture(bucket=bucket)"),
    ]
    async_inference: Annotated[
        AsyncInferenceConfig | None,
        Value("Makes the endpoint asynchronous.", example="AsyncInferenceConfig(bucket=bucket)"),
    ]


class UpdateOptions(TypedDict, total=False):
    """How a deployment updates an endpoint, and what it verifies."""

    deployment: Annotated[
        Deployment | None,
        Value(
            "How an update replaces the fleet, and which alarms roll it back.",
            default_text="blue/green, all at once",
            example="Deployment.blue_green_canary()",
        ),
    ]
    adopt_existing: Annotated[
        bool | None,
        Value(
            "Takes over the existing endpoint ``endpoint_name``, which belongs to no stack, "
            "instead of creating one. A Lambda function updates it to the new configuration; name, "
            "ARN, tags and instance counts stay. If the deployment fails, it returns the endpoint "
            "to the configuration that it had. The endpoint is never deleted.",
            default=False,
            example="True",
        ),
    ]
    off_switch: Annotated[
        OffSwitch | None,
        Value(
            "Turns the endpoint off and on, by hand or at night: an update "
            "of the stack deletes it and creates it again. Endpoints with the same switch "
            "are off together. Needs an ``endpoint_name``. Not supported together with "
            "``async_inference``, ``adopt_existing`` and a "
            "``removal_policy`` that keeps the endpoint.",
            example='OffSwitch(self, "Night")',
        ),
    ]
    scaling_guard: Annotated[
        bool | None,
        Value(
            "Lets a deployment change the instance type of a scaled variant, or remove the "
            "variant, which SageMaker otherwise refuses. A Lambda function deregisters the variant "
            "from scaling before the update and registers it again afterwards.",
            default_text="``False``; ``True`` with ``adopt_existing``",
            example="True",
        ),
    ]
    verify_update: Annotated[
        bool | None,
        Value(
            "Fails a deployment after which the endpoint does not run the new configuration, "
            "because SageMaker returned to the old one. A Lambda function reads the endpoint's "
            "state after the update, and CloudFormation then rolls the deployment back.",
            default_text="``True`` if the endpoint has rollback alarms",
            example="True",
        ),
    ]
    verify_responses: Annotated[
        str | Path | None,
        Value(
            "File of recorded requests that each deployment sends to the endpoint, at most 100 "
            "requests and 20 MiB; ``constructs-triton invoke --record`` writes it. A response that "
            "differs from the recorded one fails the deployment, and CloudFormation rolls it back. "
            "Traffic has shifted by then. To compare before traffic shifts, use a shadow variant, "
            "or a canary deployment with alarms. Not supported together with ``async_inference``.",
            example='"requests.json"',
        ),
    ]


class EndpointOptions(
    FleetOptions,
    HostOptions,
    ResourceOptions,
    RequestOptions,
    UpdateOptions,
    PublishedMetrics,
    total=False,
):
    """The properties of every endpoint besides its models."""

    compression_type: Annotated[
        CompressionType | None,
        Value(
            "How the models are stored in S3. ``CompressionType.NONE`` stores each file as an "
            "object: nothing is packed or unpacked, and after a change only the changed files are "
            "uploaded. Multi-model endpoints need archives.",
            default_text=(
                "``CompressionType.GZIP``, one archive; models that are in S3 stay as they are"
            ),
            example="CompressionType.NONE",
        ),
    ]
    log_retention: Annotated[
        logs.RetentionDays | None,
        Value(
            "How long CloudWatch keeps the logs of the containers. The log group is created before "
            "the endpoint, so this needs an ``endpoint_name`` "
            "and an endpoint that does not exist yet.",
            default_text="forever, in a log group that SageMaker creates",
            example="logs.RetentionDays.ONE_MONTH",
        ),
    ]


class EndpointParts(TypedDict):
    """The checked properties of an endpoint, in parts: each function takes those that it needs."""

    fleet: FleetOptions
    host: HostOptions
    resource: ResourceOptions
    requests: RequestOptions
    update: UpdateOptions
    metrics: PublishedMetrics
    log_retention: logs.RetentionDays | None


def checked_options(callee: str, given: EndpointOptions, others: Sequence[str]) -> EndpointParts:
    """Check the properties of an endpoint, add the defaults and split them.

    ``others`` are the keyword arguments that the endpoint takes besides these properties.

    Raises:
        TypeError: there is no such property.
        InvalidValueError: a value is out of range, or two properties contradict each other.
    """
    refuse_properties(given, "endpoints with models")
    check_properties(callee, given, EndpointOptions, others=others)
    check_variant_options(given)
    if given.get("variants") is not None and given.get("variant_name") is not None:
        raise InvalidValueError(
            "variant_name: not supported together with variants, "
            f'got "{given["variant_name"]}"; set variant_name on each TritonVariant'
        )
    options = with_defaults(given, EndpointOptions)

    if options["adopt_existing"]:
        _check_adoption(options)
        options = _with_adoption_defaults(options)
    _refuse_pools_with_variants(options)
    _check_instance_types(options)
    check_removal_policy(options["removal_policy"], "endpoints")
    check_subnets_need_vpc(options)
    check_custom_metrics(options)
    check_log_retention("endpoint_name", options["endpoint_name"], options["log_retention"])
    _check_variants(options)

    return {
        "fleet": part_of(options, FleetOptions),
        "host": part_of(options, HostOptions),
        "resource": part_of(options, ResourceOptions),
        "requests": part_of(options, RequestOptions),
        "update": part_of(options, UpdateOptions),
        "metrics": part_of(options, PublishedMetrics),
        "log_retention": options["log_retention"],
    }


def _with_adoption_defaults(options: EndpointOptions) -> EndpointOptions:
    """Return the properties with the defaults that an adopted endpoint has instead of the usual.

    The endpoint belonged to no stack before, so its stack never deletes it.
    """
    removal_policy = options["removal_policy"]
    if removal_policy is None:
        removal_policy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE

    scaling_guard = options["scaling_guard"]
    if scaling_guard is None:
        scaling_guard = True

    return {**options, "removal_policy": removal_policy, "scaling_guard": scaling_guard}


def _check_adoption(options: EndpointOptions) -> None:
    """Check the properties that ``adopt_existing`` requires, and those that it does not support.

    Raises:
        InvalidValueError: one is missing or not supported.
    """
    name = options["endpoint_name"]
    if name is None:
        raise InvalidValueError(
            "endpoint_name: is required with adopt_existing; "
            "set it to the name of the existing endpoint"
        )
    if options["log_retention"] is not None:
        raise InvalidValueError(
            "log_retention: not supported with adopt_existing, because the log group exists "
            "already; remove it, and run `aws logs put-retention-policy --log-group-name "
            f"/aws/sagemaker/Endpoints/{name} --retention-in-days 30`"
        )
    if options["removal_policy"] is RemovalPolicy.RETAIN:
        raise InvalidValueError(
            "removal_policy: RETAIN would leave the endpoint on the new model if the first "
            "deployment fails; use RETAIN_ON_UPDATE_OR_DELETE"
        )
    deployment = options["deployment"]
    if deployment is None:
        return
    wait_seconds = total_wait_seconds(deployment)
    if wait_seconds is not None and wait_seconds > _LONGEST_WAIT_SECONDS:
        raise InvalidValueError(
            f"deployment: the waits must take at most {_LONGEST_WAIT_SECONDS} seconds together "
            "with adopt_existing, because CloudFormation waits an hour for the update, got "
            f"{wait_seconds:g}; shorten wait_interval or termination_wait"
        )


def _refuse_pools_with_variants(options: EndpointOptions) -> None:
    """Refuse several instance types together with several variants.

    AWS documents pools for the only variant; what they do beside others is not known.
    """
    if options["instance_pools"] is None:
        return
    for name in ("variants", "shadow_variant"):
        if options[name] is not None:
            raise InvalidValueError(
                f"{name}: not supported together with instance_pools; remove one of them, or "
                "replace instance_pools with instance_type"
            )


def _given_variants(options: EndpointOptions) -> list[TritonVariant]:
    """Return the variants that are declared as such: the production variants, then the shadow."""
    variants = list(options["variants"] or ())
    if options["shadow_variant"] is not None:
        variants.append(options["shadow_variant"])
    return variants


def _check_instance_types(options: EndpointOptions) -> None:
    """Check that each variant has an instance type: its own or that of the endpoint."""
    if options["variants"] is None or options["instance_type"] is not None:
        check_instances(options)
        return
    for variant in _given_variants(options):
        if variant.instance_type is None:
            raise InvalidValueError(
                f'variant "{variant.variant_name}" instance_type: is required, since the endpoint '
                f"has none; write instance_type={INSTANCE_TYPE_EXAMPLE} "
                "on the variant or on the endpoint"
            )


def _check_variants(options: EndpointOptions) -> None:
    """Check the names of the variants, and how many a shadow and a rolling deployment allow.

    Raises:
        InvalidValueError: two have the same name, or there are too many.
    """
    _check_names_are_unique(options)

    variants = options["variants"]
    count = 1 if variants is None else len(variants)
    if options["shadow_variant"] is not None and count != 1:
        raise InvalidValueError(
            "shadow_variant: needs exactly one production variant, "
            f"got {count}; leave one in variants"
        )

    # AWS documentation: deployment guardrails, exclusions.
    deployment = options["deployment"]
    if deployment is not None and deployment.strategy == "ROLLING" and count > 1:
        raise InvalidValueError(
            f"deployment: rolling deployments support one variant only, got {count}; "
            "use a blue/green deployment"
        )


def _check_names_are_unique(options: EndpointOptions) -> None:
    """Check that no two variants have the same name.

    Raises:
        InvalidValueError: two have.
    """
    names = [variant.variant_name for variant in _given_variants(options)]
    if options["variants"] is None:
        names.append(cast(str, options["variant_name"]))
    for name in names:
        if names.count(name) > 1:
            raise InvalidValueError(
                f'variants: each name must be unique, got "{name}" twice; '
                "rename one of these variants"
            )
