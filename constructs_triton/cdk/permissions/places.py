"""Where a thing is that an endpoint uses: its Region and its account, checked at one place.

``region_rules`` and ``account_rules`` say of each kind of thing what SageMaker does if it is
elsewhere: an error where a source says so, else a warning with the source or its absence. Keys are
checked with the data that they encrypt, and roles in ``role_trust``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

from aws_cdk import Reference, Stack, Tokenization
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3
from constructs import Construct

from constructs_triton.cdk.validation.read_once import environment_of, stack_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_lookup_dummy, is_token
from triton_model_check.facts import images

Kind = Literal[
    "models",
    "copied models",
    "image",
    "bucket",
    "topic",
    "key",
    "model package",
    "alarm",
    "alarm action",
    "VPC",
    "subnet",
    "security group",
]


# Parts of an ARN between colons.
_REGION_OF_ARN, _ACCOUNT_OF_ARN = 3, 4


class Rule(NamedTuple):
    """What is known about a kind of thing that is elsewhere."""

    severity: Severity
    text: str
    fix: str
    source: str


def region_rules() -> Mapping[Kind, Rule]:
    """Return what AWS does with a thing of another Region.

    There is none for copied models: Amazon S3 copies objects from any Region (Amazon S3 API
    reference, CopyObject).
    """
    return {
        **_region_rules_by_id(),
        "models": Rule(
            Severity.ERROR,
            "SageMaker loads models only from a bucket in the Region of the endpoint",
            "use a bucket in {here}, for example a copy by S3 replication",
            "botocore sagemaker service model: ContainerDefinition, ModelDataUrl; "
            "mlflow/mlflow issue 2573",
        ),
        "image": Rule(
            Severity.ERROR,
            "SageMaker pulls images only from ECR in the Region of the endpoint",
            "use a repository in {here}, for example a replica of the image",
            "hashicorp/terraform-provider-aws issue 16061: "
            '"Cross region ECR image pulls are not allowed"',
        ),
        "bucket": Rule(
            Severity.WARNING,
            "AWS does not say that the bucket may be in another Region than the endpoint",
            "use a bucket in {here}, or acknowledge this if you have tested it",
            "not settled: the AWS documentation of asynchronous inference, data capture and core "
            "dumps names no Region of buckets",
        ),
        "topic": Rule(
            Severity.WARNING,
            "AWS does not say that the topic may be in another Region than the endpoint",
            "use a topic in {here}, or acknowledge this if you have tested it",
            "not settled: the AWS documentation of asynchronous inference names no Region of "
            "topics",
        ),
        "model package": Rule(
            Severity.WARNING,
            "SageMaker may refuse a model package that is in another Region than the endpoint",
            "use the version that is registered in {here}, or acknowledge this if you have "
            "tested it",
            'aws/amazon-sagemaker-examples issue 1438: DescribeModelPackage answers "ARN should be '
            'scoped to correct region"',
        ),
    }


def _region_rules_by_id() -> Mapping[Kind, Rule]:
    """Return what AWS does with things of another Region that it is given by ID or name."""
    network = Rule(
        Severity.ERROR,
        "network interfaces are created only in a VPC of the Region of the construct",
        "use a VPC in {here} with its subnets and security groups",
        'Amazon VPC user guide: "A VPC spans all of the Availability Zones in a Region"; SageMaker '
        "API reference: VpcConfig has only IDs",
    )
    return {
        "VPC": network,
        "subnet": network,
        "security group": network,
        "alarm": Rule(
            Severity.ERROR,
            "SageMaker finds a rollback alarm by its name, in the Region of the endpoint",
            "create the alarm in {here}",
            "SageMaker API reference: Alarm has only a name; CloudWatch user guide: alarms are in "
            "the Region of their metric",
        ),
        "alarm action": Rule(
            Severity.ERROR,
            "CloudWatch refuses an action that is in another Region than its alarm",
            "use a topic, or another action, in {here}",
            'cds-snc/notification-terraform pull request 128: "Invalid region ca-central-1 '
            'specified. Only us-west-2 is supported."',
        ),
    }


def account_rules() -> Mapping[Kind, Rule]:
    """Return what a thing of another account needs. Its own policy is not in this stack."""
    own = "acknowledge this if it does"
    return {
        **_account_rules_by_name(),
        "copied models": Rule(
            Severity.WARNING,
            "the policy of a bucket in another account must allow the deploy-time function to read "
            "it",
            own,
            "Amazon S3 user guide: bucket owner granting cross-account permissions",
        ),
        "models": Rule(
            Severity.WARNING,
            "the policy of a bucket in another account must allow the execution role to read it",
            own,
            "Amazon S3 user guide: bucket owner granting cross-account permissions",
        ),
        "image": Rule(
            Severity.WARNING,
            "the policy of an ECR repository in another account must allow the execution role "
            "and its account to pull the image",
            own,
            "aws/sagemaker-python-sdk issue 4064; Amazon ECR user guide: repository policies",
        ),
        "bucket": Rule(
            Severity.WARNING,
            "the policy of a bucket in another account must allow the execution role to write",
            own,
            "Amazon S3 user guide: bucket owner granting cross-account permissions",
        ),
        "topic": Rule(
            Severity.WARNING,
            "the policy of a topic in another account must allow the execution role to publish",
            own,
            "Amazon SNS developer guide: cross-account access",
        ),
        "key": Rule(
            Severity.WARNING,
            "the policy of a KMS key in another account must allow the roles that use it",
            own,
            "AWS KMS developer guide: key policies, allowing users in other accounts",
        ),
        "model package": Rule(
            Severity.WARNING,
            "the policy of a model package group in another account must allow this account",
            own,
            "SageMaker developer guide: model registry, cross-account",
        ),
    }


def _account_rules_by_name() -> Mapping[Kind, Rule]:
    """Return what things of another account need that SageMaker is given by ID or name only."""
    shared = Rule(
        Severity.WARNING,
        "the subnets of a VPC in another account must be shared with the account of the construct",
        "acknowledge this if they are",
        "Amazon VPC user guide: share your VPC subnets with other accounts",
    )
    return {
        "VPC": shared,
        "subnet": shared,
        "security group": shared,
        "alarm action": Rule(
            Severity.WARNING,
            "the policy of a topic, or of another action, in another account must let CloudWatch "
            "use it for the alarms of this account",
            "acknowledge this if it does",
            "Amazon SNS developer guide: cross-account access; Amazon CloudWatch user guide: alarm "
            "actions of another account",
        ),
        "alarm": Rule(
            Severity.ERROR,
            "SageMaker finds a rollback alarm by its name, in the account of the endpoint",
            "create the alarm in the account {here}",
            'botocore sagemaker service model: Alarm, "The name of a CloudWatch alarm in your '
            'account"',
        ),
    }


@dataclass(frozen=True, slots=True)
class Place:
    """A thing that an endpoint uses.

    Args:
        property: The property that sets it.
        kind: What it is.
        region: Its Region; may be a token.
        account: Its account; may be a token. ``None`` if everyone may use it.
        shown: What a message calls it.
        reference: What the template refers to it by; empty if nothing does.
    """

    property: str
    kind: Kind
    region: str
    account: str | None
    shown: str
    reference: str = ""

    @classmethod
    def of(cls, property: str, kind: Kind, resource: Any, reference: str) -> Iterator[Self]:
        """Yield the place of a construct; none of an interface of the user's own without one."""
        environment = getattr(resource, "env", None)
        # ecr.Repository.from_lookup has a stand-in account and Region at first.
        if environment is not None and not is_lookup_dummy(reference):
            shown = resource.node.path if is_token(reference) else reference
            yield cls(property, kind, environment.region, environment.account, shown, reference)

    @classmethod
    def of_bucket(cls, property: str, kind: Kind, bucket: s3.IBucket) -> Iterator[Self]:
        """Yield the place of a bucket."""
        return cls.of(property, kind, bucket, bucket.bucket_name)


def network_places(
    vpc: ec2.IVpc,
    selection: ec2.SubnetSelection | None = None,
    groups: Sequence[ec2.ISecurityGroup] | None = None,
) -> Iterator[Place]:
    """Yield where a VPC, its selected subnets and security groups are."""
    yield from Place.of("vpc", "VPC", vpc, vpc.vpc_id)
    for subnet in (selection.subnets if selection is not None else None) or ():
        yield from Place.of("vpc_subnets", "subnet", subnet, subnet.subnet_id)
    for group in groups or ():
        yield from Place.of("security_groups", "security group", group, group.security_group_id)


def alarm_places(alarms: Sequence[cloudwatch.IAlarm]) -> Iterator[Place]:
    """Yield where rollback alarms are."""
    for alarm in alarms:
        yield from Place.of("alarms", "alarm", alarm, alarm.alarm_arn)


def action_places(arns: Iterable[str]) -> Iterator[Place]:
    """Yield where the actions of an alarm are, by their ARNs.

    Of an action that the app creates, it is the place of its stack.
    """
    for arn in arns:
        if is_token(arn):
            target = resource_of(arn)
            if target is not None:
                there = environment_of(target)
                path = target.node.path
                yield Place("actions", "alarm action", there.region, there.account, path, arn)
            continue
        parts = arn.split(":")
        if len(parts) > _ACCOUNT_OF_ARN:
            account = parts[_ACCOUNT_OF_ARN]
            # arn:aws:automate:eu-west-1:ec2:stop has none.
            known = account if account.isdigit() else None
            yield Place("actions", "alarm action", parts[_REGION_OF_ARN], known, arn, arn)


def resource_of(text: str) -> Construct | None:
    """Return the resource that a string token refers to; ``None`` if it is another token."""
    token = Tokenization.reverse_string(text).first_token
    target = token.target if isinstance(token, Reference) else None
    return target if isinstance(target, Construct) else None


def check_places(scope: Construct, places: Iterable[Place]) -> list[Finding]:
    """Return a warning for each thing that is elsewhere than the stack of ``scope``.

    Regions and accounts that are known only at deployment pass.

    Raises:
        InvalidValueError: SageMaker refuses a thing in another Region, or the CDK cannot refer to
            it from the stack.
    """
    here = environment_of(scope)
    found: list[Finding] = []
    for place in places:
        region_rule = region_rules().get(place.kind)
        if region_rule is not None and _differs(place.region, here.region):
            found += _finding("place-in-other-region", region_rule, place, here.region)
            _check_reference(stack_of(scope), place)
        if _differs(place.account, here.account) and place.account not in _accounts_of_aws():
            rule = account_rules()[place.kind]
            found += _finding("place-in-other-account", rule, place, here.account)
    return list(dict.fromkeys(found))


def _differs(there: str | None, here: str) -> bool:
    return there not in (None, here) and not is_token(there) and not is_token(here)


def _finding(code: str, rule: Rule, place: Place, here: str) -> list[Finding]:
    there = place.region if code == "place-in-other-region" else place.account
    text = f"{rule.text}, {here}, got {there}"
    fix = rule.fix.format(here=here)
    if rule.severity is Severity.ERROR:
        raise InvalidValueError(f"{place.property}: {text} ({place.shown}); {fix}")
    return [Finding(code, rule.severity, place.property, text, fix, source=rule.source)]


def _check_reference(stack: Stack, place: Place) -> None:
    try:
        stack.resolve(place.reference)
    except RuntimeError:  # the CDK names neither the property nor both Regions
        raise InvalidValueError(
            f"{place.property}: must be in the Region of the stack, {stack.region}, got "
            f"{place.region} ({place.shown}); use a {place.kind} in {stack.region}"
        ) from None


def _accounts_of_aws() -> set[str]:
    """The accounts of AWS's own images, which everyone may pull."""
    version = images.DEFAULT_VERSION
    return {images.account(region, version) for region in images.regions(version)}
