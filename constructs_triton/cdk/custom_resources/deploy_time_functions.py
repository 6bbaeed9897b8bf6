"""``DeployTimeFunctions``: the settings of all functions that run during a deployment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict, Unpack, cast

from aws_cdk import Aws
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from constructs_triton.cdk.validation.property_types import KEY, check_has, check_type
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.keywords import check_known
from constructs_triton_core.limit_checks import check_range

DESCRIPTION_END = "(constructs-triton)"
"""The end of each function's description."""
_EXECUTIONS = RangeLimit(1, None, "executions", is_whole=True)


class DeployTimeFunctionOptions(TypedDict, total=False):
    """Settings of the functions that run during a deployment.

    ``vpc``, ``vpc_subnets``, ``security_groups``
        Network of the functions. The subnets need a route to the AWS services that a function
        calls, and to S3, through which it responds to CloudFormation. Default: no VPC.
    ``log_encryption_key``
        KMS key of the log groups. A key that is created in the app gets the permission for
        CloudWatch Logs.
    ``log_retention``
        Retention of the log groups. Default: one month.
    ``reserved_concurrent_executions``
        Reserved concurrency of each function, at least 1. Default: none.
    ``permissions_boundary``
        Permissions boundary of the functions' roles.
    """

    vpc: ec2.IVpc
    vpc_subnets: ec2.SubnetSelection
    security_groups: Sequence[ec2.ISecurityGroup]
    log_encryption_key: kms.IKey
    log_retention: logs.RetentionDays
    reserved_concurrent_executions: float
    permissions_boundary: iam.IManagedPolicy


# jsii makes a new Python object for a construct that Python no longer refers to, so the keys are
# kept.
_settings: dict[IConstruct, DeployTimeFunctionOptions] = {}


class DeployTimeFunctions:
    """The functions that run during a deployment, of all constructs below a scope."""

    def __init__(self, scope: Construct) -> None:
        self._scope = scope

    @classmethod
    def of(cls, scope: Construct) -> DeployTimeFunctions:
        """Return the functions of all constructs below an app, a stage, a stack or another
        construct.

        Args:
            scope: The app, or any construct in it.
        """
        return cls(scope)

    def configure(self, **options: Unpack[DeployTimeFunctionOptions]) -> None:
        """Set the network, the logs, the concurrency and the permissions boundary of the functions.

        Call it before the repositories and endpoints are created. Settings of an inner scope take
        precedence.

        Args:
            **options: The fields of :class:`DeployTimeFunctionOptions`.

        Raises:
            InvalidValueError: a value is invalid, or a function was created already.
        """
        _check(options)
        created = next(_functions(self._scope), None)
        if created is not None:
            raise InvalidValueError(
                f"{self._scope.node.path or 'App'}: {created} was created before these settings; "
                "call DeployTimeFunctions.of(...).configure(...) "
                "before you create repositories and endpoints"
            )
        key = options.get("log_encryption_key")
        if key is not None:
            _let_logs_use(key)
        known = _settings.get(self._scope, {})
        _settings[self._scope] = cast(DeployTimeFunctionOptions, {**known, **options})


def settings_of(construct: Construct) -> DeployTimeFunctionOptions:
    """Return the settings of the scopes of a construct; inner scopes take precedence."""
    merged: dict[str, object] = {}
    for scope in construct.node.scopes:
        merged |= _settings.get(scope, {})
    return cast(DeployTimeFunctionOptions, merged)


def _check(options: DeployTimeFunctionOptions) -> None:
    """Check the options of the functions.

    Raises:
        InvalidValueError: one is unknown, has the wrong type, or needs another one.
    """
    check_known(options, DeployTimeFunctionOptions.__annotations__, "DeployTimeFunctions.configure")
    if "vpc" not in options and {"vpc_subnets", "security_groups"} & options.keys():
        raise InvalidValueError("vpc: is required with vpc_subnets and security_groups; set vpc")
    check_has("vpc", options.get("vpc"), "select_subnets", 'ec2.Vpc.from_lookup(self, "Vpc", ...)')
    check_type(
        "vpc_subnets",
        options.get("vpc_subnets"),
        (ec2.SubnetSelection, "ec2.SubnetSelection(subnet_type=...)"),
    )
    _check_security_groups(options.get("security_groups"))
    check_has(
        "permissions_boundary",
        options.get("permissions_boundary"),
        "managed_policy_arn",
        'iam.ManagedPolicy.from_managed_policy_name(self, "Boundary", "...")',
    )
    check_has("log_encryption_key", options.get("log_encryption_key"), *KEY)
    check_type(
        "log_retention",
        options.get("log_retention"),
        (logs.RetentionDays, "RetentionDays.ONE_YEAR"),
    )
    reserved = options.get("reserved_concurrent_executions")
    if reserved is not None:
        # A function without concurrency never responds, and the stack waits for it.
        check_range(
            "reserved_concurrent_executions",
            reserved,
            RangeLimit(1, None, "executions", is_whole=True),
        )


def _check_security_groups(groups: Sequence[ec2.ISecurityGroup] | None) -> None:
    example = 'ec2.SecurityGroup.from_security_group_id(self, "Group", "...")'
    check_type("security_groups", groups, (Sequence, f"[{example}]"))
    for group in groups or ():
        check_has("security_groups", group, "security_group_id", example)


def _functions(scope: Construct) -> Iterator[str]:
    """Yield the paths of the functions below a scope."""
    for each in scope.node.find_all():
        if isinstance(each, lambda_.CfnFunction) and str(each.description or "").endswith(
            DESCRIPTION_END
        ):
            yield each.node.path.removesuffix("/Resource/Resource")


def _let_logs_use(key: kms.IKey) -> None:
    """Allow CloudWatch Logs to encrypt with the key.

    Source: CloudWatch Logs user guide, "Encrypt log data using AWS KMS".
    """
    groups = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:*"
    statement = iam.PolicyStatement(
        sid="EncryptLogs",
        principals=[iam.ServicePrincipal(f"logs.{Aws.REGION}.{Aws.URL_SUFFIX}")],
        actions=[
            "kms:Encrypt*",
            "kms:Decrypt*",
            "kms:ReEncrypt*",
            "kms:GenerateDataKey*",
            "kms:Describe*",
        ],
        resources=["*"],
        conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
    )
    key.add_to_resource_policy(statement, allow_no_op=True)
