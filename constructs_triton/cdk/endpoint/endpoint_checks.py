"""The checks of a new endpoint, all of which run before the construct is added to the tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aws_cdk import RemovalPolicy
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton.cdk.endpoint.execution_role import host_data, request_data
from constructs_triton.cdk.endpoint.mode_limits import (
    check_deployment,
    check_mode,
    check_off_switch,
    check_weights,
)
from constructs_triton.cdk.endpoint.network import check_network
from constructs_triton.cdk.endpoint.properties import FleetOptions, RequestOptions, UpdateOptions
from constructs_triton.cdk.endpoint.served_models import ServedModels, check_kept_models
from constructs_triton.cdk.endpoint.settled_variant import SettledVariant, settle_variants
from constructs_triton.cdk.monitoring.publisher_variables import metrics_name
from constructs_triton.cdk.options.core_dump import core_dump_data
from constructs_triton.cdk.options.deployment import Deployment
from constructs_triton.cdk.options.host_options import HostOptions, ResourceOptions
from constructs_triton.cdk.options.published_metrics import PublishedMetrics
from constructs_triton.cdk.options.recorded_responses import read_recorded
from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys, check_regions
from constructs_triton.cdk.permissions.places import alarm_places, check_places
from constructs_triton.cdk.permissions.role_trust import check_account
from constructs_triton.cdk.validation.unique_names import check_unique_name
from constructs_triton_core.findings import Finding


class CheckedEndpoint(NamedTuple):
    """What the checks of an endpoint settle.

    ``models`` may have got the one that publishes metrics. ``recorded`` are the requests that a
    deployment repeats, and ``encrypted_data`` is what the endpoint reads and writes under keys.
    """

    models: ServedModels
    settled: Sequence[SettledVariant]
    findings: list[Finding]
    encrypted_data: list[DataUnderKeys]
    recorded: str | None


def check_endpoint(
    scope: Construct,
    id: str,
    *,
    models: ServedModels,
    fleet: FleetOptions,
    host: HostOptions,
    resource: ResourceOptions,
    requests: RequestOptions,
    update: UpdateOptions,
    metrics: PublishedMetrics,
) -> CheckedEndpoint:
    """Check all properties of an endpoint, and settle its variants.

    Raises:
        InvalidValueError: a property is invalid, or cannot be combined with another one.
        RepositoryError: the checks of the models found errors.
    """
    name = resource["endpoint_name"]
    check_unique_name(scope, id, "endpoint_name", name)
    check_off_switch(scope, resource, requests, update)
    if metrics["container_metrics"]:
        custom = tuple(metrics["custom_metrics"] or ())
        models = models.publish_metrics(metrics_name(scope, id, name), custom)
    settled = settle_variants(scope, models, fleet, is_isolated=host["enable_network_isolation"])
    _check_kept(settled, resource["removal_policy"])
    check_account(scope, host["role"])

    deployment = update["deployment"]
    data = [*host_data(host), *request_data(requests), *_dumped(settled)]
    findings = [
        *check_mode(scope, requests, resource["metrics_config"], settled),
        *check_deployment(deployment, [variant.initial_instance_count for variant in settled]),
        *check_network(scope, host),
        *check_places(scope, alarm_places(_alarms_of(deployment))),
        *check_weights(settled),
        *check_regions(scope, data),
    ]
    recorded = read_recorded(
        update["verify_responses"], requests["async_inference"], serves_many=models.serves_many
    )
    under_keys = [each for each in data if each.keys]
    return CheckedEndpoint(models, settled, findings, under_keys, recorded)


def _check_kept(settled: Sequence[SettledVariant], policy: RemovalPolicy | None) -> None:
    """Check that the stack does not delete models that a kept endpoint still loads."""
    for variant in settled:
        for container in (variant.container, *(pool.container for pool in variant.pools)):
            check_kept_models(container.models, policy)


def _dumped(settled: Sequence[SettledVariant]) -> list[DataUnderKeys]:
    """Return where the containers of the variants write their core dumps."""
    dumps = [variant.options["core_dump"] for variant in settled]
    return [core_dump_data(dump) for dump in dumps if dump is not None]


def _alarms_of(deployment: Deployment | None) -> Sequence[cloudwatch.IAlarm]:
    return () if deployment is None else deployment.alarms
