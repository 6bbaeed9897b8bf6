"""The properties that the three kinds of endpoint share, checked before anything is added to the tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Required, TypedDict

from aws_cdk import Duration, Size
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from constructs_triton.cdk._tokens import is_concrete
from constructs_triton.cdk.image import TritonImage
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts import limits
from constructs_triton.facts.environment import TritonEnvironment
from constructs_triton.facts.inference_ami import InferenceAmi
from constructs_triton.facts.instance_types import InstanceType

__all__ = ["EndpointOptions", "EndpointProps"]


class EndpointOptions(TypedDict, total=False):
    """What every endpoint takes beside its models.

    ``instance_type``
        Required. ``InstanceType.of("ml.g5.xlarge")``.
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
    ``inference_ami_version``
        The host's image, which brings the GPU driver: by default the one that the container image needs.
    ``volume_size``
        Of the storage volume; refused for instance types that have local NVMe instead.
    ``container_startup_health_check_timeout``, ``model_data_download_timeout``
        From 60 s to an hour each.
    ``vpc``, ``vpc_subnets``, ``security_groups``
        Where the containers' traffic goes; with a ``vpc`` alone a security group is made.
    ``enable_network_isolation``
        No network for the container at all; SageMaker still brings the models.
    ``role``
        The execution role, which is granted what it needs; by default one with least privilege is made.
    ``encryption_key``
        KMS key of the storage volume.
    """

    instance_type: Required[InstanceType]
    image: TritonImage | None
    environment: TritonEnvironment | Mapping[str, str] | None
    endpoint_name: str | None
    variant_name: str
    initial_instance_count: float
    initial_variant_weight: float
    inference_ami_version: InferenceAmi | str | None
    volume_size: Size | None
    container_startup_health_check_timeout: Duration | None
    model_data_download_timeout: Duration | None
    vpc: ec2.IVpc | None
    vpc_subnets: ec2.SubnetSelection | None
    security_groups: Sequence[ec2.ISecurityGroup] | None
    enable_network_isolation: bool | None
    role: iam.IRole | None
    encryption_key: kms.IKey | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointProps:
    """:class:`EndpointOptions` with its defaults; an instance has passed :meth:`check`."""

    instance_type: InstanceType
    image: TritonImage | None = None
    environment: TritonEnvironment | Mapping[str, str] | None = None
    endpoint_name: str | None = None
    variant_name: str = "AllTraffic"
    initial_instance_count: float = 1
    initial_variant_weight: float = 1
    inference_ami_version: InferenceAmi | str | None = None
    volume_size: Size | None = None
    container_startup_health_check_timeout: Duration | None = None
    model_data_download_timeout: Duration | None = None
    vpc: ec2.IVpc | None = None
    vpc_subnets: ec2.SubnetSelection | None = None
    security_groups: Sequence[ec2.ISecurityGroup] | None = None
    enable_network_isolation: bool | None = None
    role: iam.IRole | None = None
    encryption_key: kms.IKey | None = None

    def __post_init__(self) -> None:
        self._check_names()
        self._check_capacity()
        self._check_timeouts()
        self._check_network()

    def _check_names(self) -> None:
        limits.check_name("variant_name", self.variant_name, limits.VARIANT_NAME)
        if self.endpoint_name is not None:
            limits.check_name("endpoint_name", self.endpoint_name, limits.ENDPOINT_NAME)

    def _check_capacity(self) -> None:
        count, weight = self.initial_instance_count, self.initial_variant_weight
        limits.check_range("initial_instance_count", count, limits.INITIAL_INSTANCE_COUNT)
        limits.check_range("initial_variant_weight", weight, limits.VARIANT_WEIGHT)
        if self.volume_size is not None:
            limits.check_range("volume_size", self.volume_size.to_gibibytes(), limits.VOLUME_SIZE_GB)

    def _check_timeouts(self) -> None:
        startup, download = self.container_startup_health_check_timeout, self.model_data_download_timeout
        _check_duration(
            "container_startup_health_check_timeout",
            startup,
            limits.CONTAINER_STARTUP_HEALTH_CHECK_TIMEOUT_SECONDS,
        )
        _check_duration("model_data_download_timeout", download, limits.MODEL_DATA_DOWNLOAD_TIMEOUT_SECONDS)

    def _check_network(self) -> None:
        if self.vpc is None and (self.vpc_subnets is not None or self.security_groups is not None):
            raise InvalidValueError(
                "vpc: needed with vpc_subnets or security_groups, got none; say which VPC they are in"
            )
        if self.security_groups is not None and is_concrete(list(self.security_groups)):
            limits.check_count("security_groups", self.security_groups, limits.SECURITY_GROUPS)


def _check_duration(property: str, value: Duration | None, limit: limits.RangeLimit) -> None:
    if value is not None and not value.is_unresolved():
        limits.check_range(property, value.to_seconds(), limit)
