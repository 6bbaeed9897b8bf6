"""The properties that the three kinds of endpoint share, checked before anything is added to the tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypedDict

from aws_cdk import Duration, RemovalPolicy, Size
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from constructs_triton.cdk.metrics.metrics_config import MetricsConfig
from constructs_triton.cdk.options.async_inference import AsyncInferenceConfig
from constructs_triton.cdk.options.core_dump import CoreDump
from constructs_triton.cdk.options.data_capture import DataCapture
from constructs_triton.cdk.options.deployment import Deployment
from constructs_triton.cdk.options.environment import TritonEnvironment
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.options.variant_options import RoutingStrategy, TritonVariant, VariantProps
from constructs_triton.cdk.validation.limit_checks import check_count, check_name
from constructs_triton.cdk.validation.property_types import PropertyType, check_type, check_types
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts import limits
from constructs_triton.facts.inference_ami import FOR_THE_IMAGE, InferenceAmi
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.spelling import did_you_mean

__all__ = ["EndpointOptions", "EndpointProps", "endpoint_props"]

_VARIANT: PropertyType = (TritonVariant, 'TritonVariant(variant_name="Green")')
_TYPES: dict[str, PropertyType] = {
    "shadow_variant": _VARIANT,
    "data_capture": (DataCapture, "DataCapture(...)"),
    "async_inference": (AsyncInferenceConfig, "AsyncInferenceConfig(...)"),
    "deployment": (Deployment, "Deployment.blue_green_canary(...)"),
    "metrics_config": (MetricsConfig, "MetricsConfig(...)"),
}
_DEFAULT_VARIANT_NAME = "AllTraffic"


class EndpointOptions(TypedDict, total=False):
    """What every endpoint takes beside its models.

    ``instance_type``
        ``InstanceType.of("ml.g5.xlarge")``. Required, unless each variant has one of its own.
    ``image``
        ``TritonImage.dlc()`` by default, for GPUs or CPUs as the instance type demands.
    ``environment``
        Variables of the container: typed by ``TritonEnvironment``, or a plain mapping of names to texts.
    ``endpoint_name``
        By default CloudFormation makes one up, so that the endpoint can be replaced.
    ``variant_name``
        ``"AllTraffic"`` by default. It has to stay the same for the life of the endpoint.
    ``initial_instance_count``
        1 by default; once scaling is on, a deployment keeps the count that scaling has reached.
    ``initial_variant_weight``
        1 by default; 0 is a variant that gets no traffic of its own.
    ``variants``
        Several production variants, 10 at most, in place of the one that the properties above and below
        describe; what a ``TritonVariant`` leaves open is taken from here.
    ``shadow_variant``
        A variant that is sent copies of the requests and whose answers nobody sees, beside exactly one
        production variant. Single-model endpoints only.
    ``inference_ami_version``
        The host's image, which brings the GPU driver: by default the one that the container image needs;
        ``InferenceAmi.of(...)`` is another one, ``None`` SageMaker's default.
    ``volume_size``
        Of the storage volume; refused for instance types that have local NVMe instead. By default derived
        from the archive where that is large.
    ``container_startup_health_check_timeout``, ``model_data_download_timeout``
        From 60 s to an hour each; by default derived from the archive's size.
    ``variant_instance_provision_timeout``
        How long SageMaker looks for instances: 5 minutes to an hour.
    ``routing_strategy``
        Which instance a request goes to: ``"LEAST_OUTSTANDING_REQUESTS"`` (the default where one model is
        served in real time) or ``"RANDOM"``. A multi-model endpoint keeps requests at the instances that
        hold the model.
    ``enable_ssm_access``
        Lets Systems Manager into the container's host.
    ``core_dump``
        Where the core dump of a crashed container goes.
    ``vpc``, ``vpc_subnets``, ``security_groups``
        Where the containers' traffic goes; with a ``vpc`` alone a security group is made.
    ``enable_network_isolation``
        No network for the container at all; SageMaker still brings the models.
    ``role``
        The execution role, which is granted what it needs; by default one with least privilege is made.
    ``encryption_key``
        KMS key of the storage volume.
    ``data_capture``
        Requests and answers, kept in S3.
    ``async_inference``
        Makes the endpoint asynchronous.
    ``deployment``
        How an update reaches the fleet, and what rolls it back: blue/green, all at once, by default.
    ``metrics_config``
        How often, and in what detail, metrics are published.
    ``scaling_guard``
        Lets a deployment change the instance type of a scaled variant, or remove it, which SageMaker refuses
        otherwise: a function deregisters it before the endpoint's update and registers it afterwards.
    ``removal_policy``
        ``RETAIN`` keeps a serving endpoint, and all it runs on, when it leaves the stack.
    """

    instance_type: InstanceType
    image: TritonImage | None
    environment: TritonEnvironment | Mapping[str, str] | None
    endpoint_name: str | None
    variant_name: str
    initial_instance_count: float
    initial_variant_weight: float
    variants: Sequence[TritonVariant] | None
    shadow_variant: TritonVariant | None
    inference_ami_version: InferenceAmi | str | None
    volume_size: Size | None
    container_startup_health_check_timeout: Duration | None
    model_data_download_timeout: Duration | None
    variant_instance_provision_timeout: Duration | None
    routing_strategy: RoutingStrategy | None
    enable_ssm_access: bool | None
    core_dump: CoreDump | None
    vpc: ec2.IVpc | None
    vpc_subnets: ec2.SubnetSelection | None
    security_groups: Sequence[ec2.ISecurityGroup] | None
    enable_network_isolation: bool | None
    role: iam.IRole | None
    encryption_key: kms.IKey | None
    data_capture: DataCapture | None
    async_inference: AsyncInferenceConfig | None
    deployment: Deployment | None
    metrics_config: MetricsConfig | None
    scaling_guard: bool
    removal_policy: RemovalPolicy | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointProps:
    """:class:`EndpointOptions` with its defaults; an instance has passed its checks."""

    instance_type: InstanceType | None = None
    image: TritonImage | None = None
    environment: TritonEnvironment | Mapping[str, str] | None = None
    endpoint_name: str | None = None
    variant_name: str | None = None
    initial_instance_count: float = 1
    initial_variant_weight: float = 1
    variants: Sequence[TritonVariant] | None = None
    shadow_variant: TritonVariant | None = None
    inference_ami_version: InferenceAmi | str | None = FOR_THE_IMAGE
    volume_size: Size | None = None
    container_startup_health_check_timeout: Duration | None = None
    model_data_download_timeout: Duration | None = None
    variant_instance_provision_timeout: Duration | None = None
    routing_strategy: RoutingStrategy | None = None
    enable_ssm_access: bool | None = None
    core_dump: CoreDump | None = None
    vpc: ec2.IVpc | None = None
    vpc_subnets: ec2.SubnetSelection | None = None
    security_groups: Sequence[ec2.ISecurityGroup] | None = None
    enable_network_isolation: bool | None = None
    role: iam.IRole | None = None
    encryption_key: kms.IKey | None = None
    data_capture: DataCapture | None = None
    async_inference: AsyncInferenceConfig | None = None
    deployment: Deployment | None = None
    metrics_config: MetricsConfig | None = None
    scaling_guard: bool = False
    removal_policy: RemovalPolicy | None = None

    def __post_init__(self) -> None:
        check_types(self, _TYPES)
        for variant in self.variants or ():
            check_type("variants", variant, _VARIANT)
        if self.endpoint_name is not None:
            check_name("endpoint_name", self.endpoint_name, limits.ENDPOINT_NAME)
        if self.removal_policy is RemovalPolicy.SNAPSHOT:
            raise InvalidValueError(
                "removal_policy: an endpoint has no snapshots, got SNAPSHOT; use RETAIN or DESTROY"
            )
        self._check_network()
        self._check_variants()

    def variant_props(self, variant: TritonVariant | None) -> VariantProps:
        """What is decided about a variant, or about the only one where there is no list of them."""
        if variant is None:
            values = {"variant_name": self.variant_name or _DEFAULT_VARIANT_NAME, **self._defaults()}
            return VariantProps(**_with_instance_type(values))
        own = {name: getattr(variant, name) for name in VariantProps.names()}
        unset = {"inference_ami_version": FOR_THE_IMAGE}
        given = {name: value for name, value in own.items() if value is not unset.get(name)}
        try:
            values = {"variant_name": variant.variant_name, **self._defaults(), **given}
            return VariantProps(**_with_instance_type(values))
        except InvalidValueError as error:
            raise InvalidValueError(f'variant "{variant.variant_name}" {error}') from None

    def _defaults(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in VariantProps.names()}

    def _check_network(self) -> None:
        if self.vpc is None and (self.vpc_subnets is not None or self.security_groups is not None):
            raise InvalidValueError(
                "vpc: needed with vpc_subnets or security_groups, got none; say which VPC they are in"
            )
        if self.security_groups is not None and is_concrete(list(self.security_groups)):
            check_count("security_groups", self.security_groups, limits.SECURITY_GROUPS)

    def _check_variants(self) -> None:
        if self.variants is not None:
            check_count("variants", self.variants, limits.PRODUCTION_VARIANTS)
            if self.variant_name is not None:
                raise InvalidValueError(
                    "variant_name: belongs to an endpoint without a list of variants, "
                    f'got "{self.variant_name}"; name each of the variants'
                )
        self._check_names()
        count = 1 if self.variants is None else len(self.variants)
        if self.shadow_variant is not None and count != 1:
            raise InvalidValueError(
                f"shadow_variant: stands beside exactly one production variant, got {count}; leave one"
            )
        if self.deployment is not None and self.deployment.strategy == "ROLLING" and count > 1:
            # AWS documentation: deployment guardrails, exclusions.
            raise InvalidValueError(
                f"deployment: rolling is not for several variants, got {count}; use a blue/green deployment"
            )

    def _check_names(self) -> None:
        listed = [*(self.variants or ()), *(() if self.shadow_variant is None else (self.shadow_variant,))]
        names = [each.variant_name for each in listed]
        if self.variants is None:
            names.append(self.variant_name or _DEFAULT_VARIANT_NAME)
        for name in names:
            if names.count(name) > 1:
                raise InvalidValueError(
                    f'variants: each name may be there once, got "{name}" twice; rename one'
                )


def endpoint_props(options: Mapping[str, Any]) -> EndpointProps:
    """The checked properties; a serverless endpoint is refused with the reason, a typo by ``TypeError``."""
    if options.get("serverless_config") is not None:
        # AWS documentation: serverless inference, feature exclusions.
        raise InvalidValueError(
            "serverless_config: serverless endpoints have no GPU, no multi-model mode, no VPC and at most "
            f"6 GB of memory, which Triton's images are not made for, got {options['serverless_config']!r}; "
            "use one small instance, or async_inference, which scales to zero"
        )
    given = {name: value for name, value in options.items() if name != "serverless_config"}
    known = [each.name for each in fields(EndpointProps)]
    for name in given.keys() - known:
        # What Python raises for a keyword that a function has not got, with the nearest that it has.
        hint = did_you_mean(name, known) or "leave it out"
        raise TypeError(f"got an unexpected keyword argument '{name}'; {hint}")
    return EndpointProps(**given)


def _with_instance_type(values: dict[str, Any]) -> dict[str, Any]:
    if values["instance_type"] is None:
        raise InvalidValueError(
            'instance_type: is needed, got none; write instance_type=InstanceType.of("ml.g5.xlarge")'
        )
    return values
