"""``TritonModel``: the SageMaker model of a repository,
for batch jobs and endpoints of other programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import jsii
from aws_cdk import SecretValue
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.endpoint.container import settle_container
from constructs_triton.cdk.endpoint.endpoint_config import (
    ModelContainer,
    ModelHost,
    bind_container,
    make_model,
)
from constructs_triton.cdk.endpoint.execution_role import (
    ExecutionRole,
    host_statements,
    observability_statements,
)
from constructs_triton.cdk.endpoint.network import ContainerNetwork, check_network
from constructs_triton.cdk.endpoint.sizing import Sizing
from constructs_triton.cdk.inference_component.component_pools import component_models
from constructs_triton.cdk.options.environment import TritonEnvironment
from constructs_triton.cdk.options.host_options import HostOptions, check_subnets_need_vpc
from constructs_triton.cdk.options.image import TritonImage
from constructs_triton.cdk.options.inference_ami import cuda_major_of_image
from constructs_triton.cdk.options.variant_options import ContainerOptions
from constructs_triton.cdk.permissions.nag_findings import mark_as_own
from constructs_triton.cdk.permissions.role_permissions import removed_after_error
from constructs_triton.cdk.permissions.role_trust import check_account
from constructs_triton.cdk.repository.model_repository import TritonModelRepository, annotate
from constructs_triton.cdk.repository.properties import CompressionType
from constructs_triton.cdk.validation.properties import check_properties
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton_core.declared_values import with_defaults
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token
from triton_model_check.facts.images import published_versions
from triton_model_check.facts.published import load


@jsii.implements(iam.IGrantable)
class TritonModel(Construct):
    """A SageMaker model that is checked and packed like that of an endpoint, without an endpoint.

    A batch transform job names it in ``ModelName``, and so can an endpoint configuration that
    another program creates. CloudFormation has no resource for the job itself. The model has a new
    name after each change, so read it from :attr:`model_name`.

    ``model_repository``
        The repository that contains the model.
    ``instance_type``
        Type of the job's instances, which the models are checked for. A warning says if batch
        transform does not have the type, or has no driver for the CUDA of the image.
    ``model``
        The name of the model. Default: the only model that is not just a step of an ensemble.
    ``ensemble``
        The name of an ensemble, in place of ``model``.
    ``image``
        The container image. Default: ``TritonImage.dlc()``.
    ``environment``
        A ``TritonEnvironment``, or a mapping of names to strings.
    ``compression_type``
        ``CompressionType.NONE`` places files in place of an archive. Batch transform refuses such a
        model, and a warning says so.
    ``role``
        Execution role. Default: a new role with least privilege. The job reads its input and writes
        its output with the same role; grant it both, for example with
        ``bucket.grant_read_write(model)``.
    ``vpc``, ``vpc_subnets``, ``security_groups``
        VPC that the containers are attached to. Default: none.
    ``enable_network_isolation``
        Whether the containers have no network access. Default: ``False``.

    Raises:
        InvalidValueError: a property has the wrong type or contradicts another.
        RepositoryError: Triton would not load the models with this instance type and image.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        model_repository: TritonModelRepository,
        instance_type: InstanceType,
        model: str | None = None,
        ensemble: str | None = None,
        image: TritonImage | None = None,
        environment: TritonEnvironment | Mapping[str, str | SecretValue] | None = None,
        compression_type: CompressionType | None = None,
        role: iam.IRole | None = None,
        vpc: ec2.IVpc | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
        enable_network_isolation: bool | None = None,
    ) -> None:
        _check_container_options(instance_type, image, environment)
        host = _checked_host(
            scope,
            {
                "vpc": vpc,
                "vpc_subnets": vpc_subnets,
                "security_groups": security_groups,
                "enable_network_isolation": enable_network_isolation,
                "role": role,
            },
        )
        models = component_models(model_repository, model, ensemble, compression_type)
        container = settle_container(
            scope,
            models,
            instance_type,
            image=image,
            environment=environment,
            inference_ami_version=None,  # only endpoints have one
            enable_network_isolation=enable_network_isolation,
        )
        findings = [*container.findings, *check_network(scope, host)]
        findings += _machine_findings(instance_type, container.image.triton_version)

        super().__init__(scope, id)
        mark_as_own(self)
        location = models.bind(self)
        bound = bind_container(container, self, location, Sizing(None, None, None))
        self._make(bound, host)

        if not location.is_compressed:
            findings.append(_UNCOMPRESSED)
        annotate(self, [*findings, *self._execution.findings()])

    def _make(self, container: ModelContainer, host: HostOptions) -> None:
        """Create the network, the role and then the model, which needs both."""
        network = ContainerNetwork.make(self, host)
        self._connections = network.connections
        self._execution = self._make_role(container, host)
        self._role = self._execution.role
        self._cfn_model = make_model(
            container,
            ModelHost(
                execution_role_arn=self._role.role_arn,
                permissions=self._execution.permissions,
                enable_network_isolation=host["enable_network_isolation"],
                network=network.ids,
            ),
        )

    def _make_role(self, container: ModelContainer, host: HostOptions) -> ExecutionRole:
        statements = [
            *container.location.read_statements,
            *container.image.pull_statements(),
            *observability_statements(self, has_jobs=True),
            *host_statements(host),
        ]
        with removed_after_error(self):
            return ExecutionRole.make(self, statements, host["role"])

    @property
    def cfn_model(self) -> sagemaker.CfnModel:
        """The ``AWS::SageMaker::Model``. It has no name, since changes replace it."""
        return self._cfn_model

    @property
    def model_name(self) -> str:
        """The name that CloudFormation generates for the model."""
        return self._cfn_model.attr_model_name

    @property
    def role(self) -> iam.IRole:
        """The execution role, with which a job also reads its input and writes its output."""
        return self._role

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The principal of the execution role."""
        return self._role.grant_principal

    @property
    def connections(self) -> ec2.Connections | None:
        """The network connections of the containers; ``None`` without a ``vpc``."""
        return self._connections


_ONLY_ENDPOINTS = "acknowledge this if only endpoints use the model"


def _checked_host(scope: Construct, given: HostOptions) -> HostOptions:
    """Check the properties of network and role, and return them with their defaults.

    Raises:
        InvalidValueError: one of them is wrong.
    """
    check_properties("TritonModel()", given, HostOptions)
    host = with_defaults(given, HostOptions)
    check_subnets_need_vpc(host)
    check_account(scope, host["role"])
    return host


def _check_container_options(
    instance_type: InstanceType,
    image: TritonImage | None,
    environment: TritonEnvironment | Mapping[str, str | SecretValue] | None,
) -> None:
    """Check the types of what describes the container."""
    check_type("instance_type", instance_type, (InstanceType, 'InstanceType.of("ml.g5.xlarge")'))
    check_properties(
        "TritonModel()", {"image": image, "environment": environment}, ContainerOptions
    )


_UNCOMPRESSED = Finding(
    "batch-transform-uncompressed",
    Severity.WARNING,
    "compression_type",
    "SageMaker's batch transform refuses this model, "
    "because it has ModelDataSource (uncompressed files)",
    f"serve the models from an archive for batch jobs, or {_ONLY_ENDPOINTS}",
    source="sagemaker-python-sdk issues #4777 and #5160",
)
_SOURCE = "packages/check/src/triton_model_check/facts/batch_transform.json"


def _machine_findings(instance_type: InstanceType, image_version: str | None) -> Iterator[Finding]:
    """Yield warnings about what batch transform lacks: the instance type,
    and a driver for the image.
    """
    known_types = load("batch_transform")["instance_types"]
    if instance_type.is_known and instance_type.name not in known_types:
        yield Finding(
            "batch-transform-instance-type",
            Severity.WARNING,
            "instance_type",
            f'batch transform does not have this type, got "{instance_type}"',
            f"use another type, such as ml.g5.xlarge, or {_ONLY_ENDPOINTS}",
            source=_SOURCE,
        )
    elif instance_type.has_gpu and image_version is not None and not is_token(image_version):
        yield from _driver_findings(image_version)


def _driver_findings(image_version: str) -> Iterator[Finding]:
    """Yield a warning if no AMI of batch transform has a driver for the image."""
    amis = load("batch_transform")["amis"]
    ami, newest = max(amis.items(), key=lambda item: float(item[1]["driver"]))
    newest_cuda = int(newest["cuda"].partition(".")[0])
    needed = cuda_major_of_image(image_version)
    if needed <= newest_cuda:
        return

    older = next(
        version for version in published_versions() if cuda_major_of_image(version) <= newest_cuda
    )
    yield Finding(
        "batch-transform-driver",
        Severity.WARNING,
        "image",
        f"batch transform has no driver for CUDA {needed}, which is in image "
        f"{image_version}; the newest one is {newest['driver']}, for CUDA {newest['cuda']}",
        f'use TritonImage.dlc("{older}") with TransformAmiVersion "{ami}" in the job, or '
        f"an asynchronous endpoint, or {_ONLY_ENDPOINTS}",
        source=_SOURCE,
    )
