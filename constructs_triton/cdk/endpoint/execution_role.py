"""The execution role: permissions for archives, image, logs, metrics and the features in use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from constructs_triton.cdk.endpoint.endpoint_config import BoundVariant, ModelContainer
from constructs_triton.cdk.endpoint.log_group import ContainerLogs
from constructs_triton.cdk.endpoint.properties import RequestOptions
from constructs_triton.cdk.options.async_inference import (
    async_inference_data,
    async_inference_statements,
)
from constructs_triton.cdk.options.core_dump import core_dump_statements
from constructs_triton.cdk.options.data_capture import captured_data
from constructs_triton.cdk.options.host_options import HostOptions
from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys
from constructs_triton.cdk.permissions.role_permissions import (
    RolePermissions,
    accepts_policies,
    removed_after_error,
)
from constructs_triton.cdk.permissions.role_trust import SAGEMAKER, check_trust
from constructs_triton.cdk.permissions.statements import Statement, allow, arn_in_stack
from constructs_triton.cdk.validation.read_once import environment_of
from constructs_triton_core.facts.execution_role import LOG_ACTIONS, NETWORK_ACTIONS
from constructs_triton_core.findings import Finding, Severity

_METRIC_NAMESPACES = ["/aws/sagemaker/Endpoints", "AWS/SageMaker"]
_COMPONENTS = "/aws/sagemaker/InferenceComponents"
_JOBS = "/aws/sagemaker/TransformJobs"


@dataclass(frozen=True, slots=True)
class ExecutionRole:
    """A role and its permissions.

    SageMaker reads image and archive with the role while it creates the model. The model therefore
    depends on ``permissions``, which are created after the role. ``permissions`` is ``None`` for an
    immutable role. ``is_given`` is whether the role was created elsewhere.
    """

    role: iam.IRole
    permissions: RolePermissions | None
    is_given: bool = True

    @classmethod
    def make(
        cls, scope: Construct, statements: Sequence[Statement], given: iam.IRole | None
    ) -> ExecutionRole:
        """Create a role that trusts SageMaker for this account only, or use ``given``, and add
        permissions.

        The permissions are children of the endpoint and not of ``given``, which may belong to
        several endpoints or to another stack. An immutable role gets none.
        """
        if given is None:
            role: iam.IRole = iam.Role(scope, "Role", assumed_by=_trusted_service(scope))
        else:
            check_trust(scope, given)
            if not accepts_policies(scope, given):
                return cls(given, None)
            role = given

        permissions = RolePermissions(scope, "ExecutionPolicy", role=role, statements=statements)
        return cls(role, permissions, is_given=given is not None)

    @property
    def created(self) -> list[IConstruct]:
        """The role and the permissions that were created for the endpoint,
        which may get more policies.
        """
        created: list[IConstruct] = []
        if self.permissions is not None:
            created.append(self.permissions)
        if not self.is_given:
            created.append(self.role)
        return created

    def findings(self) -> Iterator[Finding]:
        """Yield a warning if the role takes no policies,
        so that it needs all permissions already.
        """
        if self.permissions is None:
            yield Finding(
                "role-without-policies",
                Severity.WARNING,
                "role",
                "takes no policies (mutable=False or without_policy_updates()), so it gets no "
                "permissions from this endpoint, nor later when the models or the image change",
                "give the role the statements of ExecutionPolicy that `cdk synth` shows without "
                "it, and acknowledge this, or pass a role that takes policies",
            )

    def add(self, *statements: Statement) -> None:
        """Add statements that an update replaces, like the first ones."""
        if self.permissions is not None:
            self.permissions.add(*statements)


def make_endpoint_role(
    scope: Construct,
    variants: Sequence[BoundVariant],
    host: HostOptions,
    requests: RequestOptions,
    container_logs: ContainerLogs,
) -> ExecutionRole:
    """Create the role of an endpoint, with the permissions for everything that its variants use."""
    containers: list[ModelContainer] = []
    for variant in variants:
        containers += [variant.container, *variant.overrides.values()]

    statements = [
        *container_statements(containers),
        *observability_statements(scope),
        *host_statements(host),
        *request_statements(requests),
        *container_logs.role_statements(),
    ]
    for variant in variants:
        core_dump = variant.settled.options["core_dump"]
        if core_dump is not None:
            statements += core_dump_statements(core_dump)

    with removed_after_error(scope):
        return ExecutionRole.make(scope, statements, host["role"])


def container_statements(containers: Sequence[ModelContainer]) -> list[Statement]:
    """Permissions to read the models of containers and to pull their images."""
    statements: list[Statement] = []
    for container in containers:
        statements += container.location.read_statements
    for container in containers:
        statements += container.image.pull_statements()
    return statements


def observability_statements(
    scope: Construct, *, has_components: bool = False, has_jobs: bool = False
) -> list[Statement]:
    """Permissions to write logs and to publish the instance metrics that scaling uses.

    The containers of inference components write to other log groups, and publish to another
    namespace too. Those of batch transform jobs share one log group and have a namespace of its
    name.
    """
    prefixes = ["/aws/sagemaker/Endpoints/"]
    namespaces = list(_METRIC_NAMESPACES)
    if has_components:
        prefixes.append(f"{_COMPONENTS}/")
        namespaces.append(_COMPONENTS)
    if has_jobs:
        prefixes.append(_JOBS)
        namespaces.append(_JOBS)

    log_groups = [arn_in_stack(scope, "logs", "log-group", f"{prefix}*") for prefix in prefixes]
    return [
        allow("WriteLogs", LOG_ACTIONS, log_groups),
        allow(
            "PublishMetrics",
            ["cloudwatch:PutMetricData"],
            ["*"],  # This action supports the namespace as a condition, but no resource.
            {"StringEquals": {"cloudwatch:namespace": namespaces}},
        ),
    ]


def host_statements(options: HostOptions) -> list[Statement]:
    """Permissions for the network and the storage volumes of the instances."""
    statements = []
    if options["vpc"] is not None:
        statements.append(allow("AttachToVpc", NETWORK_ACTIONS, ["*"]))

    key = options["encryption_key"]
    if key is not None:
        # Only AWS services may use the grants that SageMaker creates with the role.
        for_services = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
        statements += [
            allow("EncryptVolume", ["kms:CreateGrant"], [key.key_arn], for_services),
            allow("SeeKey", ["kms:DescribeKey"], [key.key_arn]),
        ]
    return statements


def host_data(options: HostOptions) -> list[DataUnderKeys]:
    """The storage volumes of an endpoint, if they have a key."""
    key = options["encryption_key"]
    if key is None:
        return []
    return [DataUnderKeys("storage volumes", [("encryption_key", key)])]


def request_data(requests: RequestOptions) -> list[DataUnderKeys]:
    """Requests and responses that an endpoint reads from and writes to S3."""
    data: list[DataUnderKeys] = []
    capture = requests["data_capture"]
    if capture is not None:
        data.append(captured_data(capture).data)

    asynchronous = requests["async_inference"]
    if asynchronous is not None:
        data += async_inference_data(asynchronous)
    return data


def request_statements(requests: RequestOptions) -> list[Statement]:
    """Permissions for the same data."""
    statements: list[Statement] = []
    capture = requests["data_capture"]
    if capture is not None:
        statements += captured_data(capture).write_statements("DataCapture")

    asynchronous = requests["async_inference"]
    if asynchronous is not None:
        statements += async_inference_statements(asynchronous)
    return statements


def _trusted_service(scope: Construct) -> iam.ServicePrincipal:
    """Return the service that may assume the role, on behalf of this account's resources."""
    # Against the confused deputy: SageMaker may assume the role only on behalf of this account's
    # resources.
    here = environment_of(scope)
    own_resources = f"arn:{here.partition}:sagemaker:{here.region}:{here.account}:*"
    return iam.ServicePrincipal(
        SAGEMAKER,
        conditions={
            "StringEquals": {"aws:SourceAccount": here.account},
            "ArnLike": {"aws:SourceArn": own_resources},
        },
    )
