"""Everything that AWS says about one endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constructs_triton.errors import InvalidValueError
from constructs_triton.operations.adopting.reading import RecordingReader
from constructs_triton.operations.aws_reader import describe_failure
from constructs_triton.operations.status import describe_endpoint

__all__ = ["RunningEndpoint", "RunningRole", "container_of", "read_running_endpoint", "specifications_of"]

_SCALING = "application-autoscaling"
_STACK = "aws:cloudformation:stack-name"
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunningRole:
    """An execution role: its ARN, and what its policies allow, one action each; ``None`` if not readable."""

    arn: str
    policies: Sequence[str]
    actions: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class RunningEndpoint:
    """AWS's answers about an endpoint.

    Args:
        endpoint: Answer of ``DescribeEndpoint``.
        config: Answer of ``DescribeEndpointConfig``.
        models: Answers of ``DescribeModel`` by the name of the model; empty ones for deleted models.
        components: Answers of ``DescribeInferenceComponent``.
        tags: Tags by ARN, without those of AWS.
        stack: CloudFormation stack that owns the endpoint or its configuration; ``None`` if there is none.
        targets: Scalable targets of its variants and components.
        policies: Their scaling policies.
        actions: Their scheduled actions.
        alarms: Alarms that watch it, without those that belong to scaling policies.
        log_retention_days: Retention of its log group; ``None`` if it is kept forever or not known.
        roles: Execution roles by ARN.
        vpc_ids: VPC of each subnet of the models, with its Availability Zone.
        tag_digests: Digest that the tag of each image in the account's own ECR has now, by the image's URI.
        not_read: What could not be read, one sentence each.
    """

    endpoint: Answer
    config: Answer
    models: Mapping[str, Answer]
    components: Sequence[Answer]
    tags: Mapping[str, Mapping[str, str]]
    stack: str | None
    targets: Sequence[Answer]
    policies: Sequence[Answer]
    actions: Sequence[Answer]
    alarms: Sequence[Answer]
    log_retention_days: int | None
    roles: Mapping[str, RunningRole]
    vpc_ids: Mapping[str, tuple[str, str]]
    tag_digests: Mapping[str, str]
    not_read: Sequence[str]

    @property
    def name(self) -> str:
        """Name of the endpoint."""
        return str(self.endpoint["EndpointName"])

    @property
    def region(self) -> str:
        """Region of the endpoint."""
        return str(self.endpoint["EndpointArn"].split(":")[3])

    @property
    def account(self) -> str:
        """Account of the endpoint."""
        return str(self.endpoint["EndpointArn"].split(":")[4])

    @property
    def variants(self) -> list[Answer]:
        """The production variants of the configuration, then the shadow variants."""
        return [*self.config["ProductionVariants"], *self.config.get("ShadowProductionVariants", [])]

    def running_digest(self, image: str) -> str | None:
        """Return the digest that an image runs as; ``None`` if SageMaker does not say it."""
        variants = self.endpoint.get("ProductionVariants", [])
        deployed = [each for variant in variants for each in variant.get("DeployedImages", [])]
        resolved = next(
            (e.get("ResolvedImage", "") for e in deployed if e.get("SpecifiedImage") == image), ""
        )
        return resolved.partition("@")[2] or None

    def running_variant(self, name: str) -> Answer:
        """Return what ``DescribeEndpoint`` says about a variant."""
        members = ("ProductionVariants", "ShadowProductionVariants")
        found = [each for member in members for each in self.endpoint.get(member, [])]
        return next((each for each in found if each["VariantName"] == name), {})


def read_running_endpoint(reader: RecordingReader, name: str) -> RunningEndpoint:
    """Read an endpoint and everything that belongs to it.

    Raises:
        InvalidValueError: it does not exist, AWS cannot be reached, or its configuration was deleted.
    """
    endpoint = describe_endpoint(reader, name)
    config = _read_config(reader, name, endpoint["EndpointConfigName"])
    components = _read_components(reader, name)
    models = {each: _read_model(reader, each) for each in sorted(_model_names(config, components))}
    arns = [endpoint["EndpointArn"], config["EndpointConfigArn"]]
    arns += [each["ModelArn"] for each in models.values() if each]
    arns += [each["InferenceComponentArn"] for each in components]
    tags = {arn: _read_tags(reader, arn) for arn in arns}
    targets = _read_targets(reader, name, components)
    roles = {each["ExecutionRoleArn"] for each in [config, *models.values()] if each.get("ExecutionRoleArn")}
    return RunningEndpoint(
        endpoint=endpoint,
        config=config,
        models=models,
        components=components,
        tags={
            arn: {k: v for k, v in found.items() if not k.startswith("aws:")} for arn, found in tags.items()
        },
        # An endpoint that a stack has adopted has only a configuration of the stack.
        stack=next((tags[arn][_STACK] for arn in arns[:2] if _STACK in tags[arn]), None),
        targets=targets,
        policies=_of_targets(reader, targets, "describe_scaling_policies", "ScalingPolicies"),
        actions=_of_targets(reader, targets, "describe_scheduled_actions", "ScheduledActions"),
        alarms=_read_alarms(reader, name, components),
        log_retention_days=_read_retention(reader, name),
        roles={arn: _read_role(reader, arn) for arn in sorted(roles)},
        vpc_ids=_read_subnets(reader, models.values()),
        tag_digests=_read_digests(reader, endpoint["EndpointArn"], models.values()),
        not_read=reader.not_read,
    )


def _read_config(reader: RecordingReader, name: str, config_name: str) -> dict[str, Any]:
    from botocore.exceptions import ClientError

    try:
        return reader.require("sagemaker", "describe_endpoint_config", EndpointConfigName=config_name)
    except ClientError as error:
        raise InvalidValueError(
            f"endpoint {name}: its configuration {config_name} cannot be read "
            f"({describe_failure('sagemaker', error)}), so its instance types and models are not known; if "
            "it was deleted, create a configuration with the same variants, and update the endpoint to it"
        ) from None


def _read_components(reader: RecordingReader, name: str) -> list[dict[str, Any]]:
    listed = reader.read_all(
        "sagemaker", "list_inference_components", "InferenceComponents", EndpointNameEquals=name
    )
    names = [each["InferenceComponentName"] for each in listed]
    found = [
        reader.read("sagemaker", "describe_inference_component", InferenceComponentName=each)
        for each in sorted(names)
    ]
    return [each for each in found if each]


def _model_names(config: Answer, components: Sequence[Answer]) -> set[str]:
    variants = [*config["ProductionVariants"], *config.get("ShadowProductionVariants", [])]
    pools = [pool for each in variants for pool in each.get("InstancePools", [])]
    names = [each.get("ModelName") for each in variants]
    names += [each.get("ModelNameOverride") for each in pools]
    for each in components:
        names += [part.get("ModelName") for part in specifications_of(each)]
    return {name for name in names if name}


def container_of(model: Answer) -> Answer:
    """Return the only container of a model; an empty one for a model that was deleted."""
    found: Answer = model.get("PrimaryContainer") or next(iter(model.get("Containers", [])), {})
    return found


def specifications_of(component: Answer) -> list[Answer]:
    """Return the specification of a component, or those of its instance types."""
    return list(component.get("Specifications") or [component.get("Specification", {})])


def _read_model(reader: RecordingReader, name: str) -> dict[str, Any]:
    return reader.read("sagemaker", "describe_model", ModelName=name)


def _read_tags(reader: RecordingReader, arn: str) -> dict[str, str]:
    found = reader.read_all("sagemaker", "list_tags", "Tags", ResourceArn=arn)
    return {each["Key"]: each["Value"] for each in found}


def _read_targets(reader: RecordingReader, name: str, components: Sequence[Answer]) -> list[dict[str, Any]]:
    copies = {f"inference-component/{each['InferenceComponentName']}" for each in components}
    found = reader.read_all(
        _SCALING, "describe_scalable_targets", "ScalableTargets", ServiceNamespace="sagemaker"
    )
    prefix = f"endpoint/{name}/variant/"
    own = [each for each in found if each["ResourceId"].startswith(prefix) or each["ResourceId"] in copies]
    reader.keep_only("describe_scalable_targets", "ScalableTargets", own)
    return own


def _of_targets(
    reader: RecordingReader, targets: Sequence[Answer], operation: str, member: str
) -> list[dict[str, Any]]:
    key = ("ServiceNamespace", "ResourceId", "ScalableDimension")
    requests = [{name: each[name] for name in key} for each in targets]
    found = [part for each in requests for part in reader.read_all(_SCALING, operation, member, **each)]
    ids = {each["ResourceId"] for each in targets}
    return [each for each in found if each["ResourceId"] in ids]


def _read_alarms(reader: RecordingReader, name: str, components: Sequence[Answer]) -> list[dict[str, Any]]:
    watched = [{"Name": "EndpointName", "Value": name}]
    watched += [
        {"Name": "InferenceComponentName", "Value": each["InferenceComponentName"]} for each in components
    ]
    found = reader.read_all("cloudwatch", "describe_alarms", "MetricAlarms")
    # Alarms of scaling policies belong to Application Auto Scaling.
    own = [each for each in found if not each["AlarmName"].startswith("TargetTracking-")]
    own = [each for each in own if any(map(_dimensions(each).count, watched))]
    reader.keep_only("describe_alarms", "MetricAlarms", own)
    return own


def _dimensions(alarm: Answer) -> list[Any]:
    metrics = [alarm, *(each.get("MetricStat", {}).get("Metric", {}) for each in alarm.get("Metrics", []))]
    return [each for metric in metrics for each in metric.get("Dimensions", [])]


def _read_retention(reader: RecordingReader, name: str) -> int | None:
    group = f"/aws/sagemaker/Endpoints/{name}"
    found = reader.read_all("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=group)
    return next((each.get("retentionInDays") for each in found if each["logGroupName"] == group), None)


def _read_role(reader: RecordingReader, arn: str) -> RunningRole:
    name = arn.rpartition("/")[2]
    reader.read("iam", "get_role", RoleName=name)
    attached = reader.read_all("iam", "list_attached_role_policies", "AttachedPolicies", RoleName=name)
    inline = _names(reader.read("iam", "list_role_policies", RoleName=name))
    documents = [
        reader.read("iam", "get_role_policy", RoleName=name, PolicyName=each).get("PolicyDocument")
        for each in inline
    ]
    documents += [_read_policy(reader, each["PolicyArn"]) for each in attached]
    names = [*(each["PolicyName"] for each in attached), *inline]
    is_readable = all(each is not None for each in documents)
    return RunningRole(arn, names, sorted(set(_actions(documents))) if is_readable else None)


def _names(answer: Answer) -> list[str]:
    return list(answer.get("PolicyNames", []))


def _read_policy(reader: RecordingReader, arn: str) -> Any:
    version = reader.read("iam", "get_policy", PolicyArn=arn).get("Policy", {}).get("DefaultVersionId")
    if version is None:
        return None
    answer = reader.read("iam", "get_policy_version", PolicyArn=arn, VersionId=version)
    return answer.get("PolicyVersion", {}).get("Document")


def _actions(documents: Sequence[Any]) -> Iterator[str]:
    for document in documents:
        statements = (document or {}).get("Statement", [])
        for each in [statements] if isinstance(statements, Mapping) else statements:
            actions = each.get("Action", [])
            if each.get("Effect") == "Allow":
                yield from [actions] if isinstance(actions, str) else actions


def _read_digests(reader: RecordingReader, endpoint_arn: str, models: Iterable[Answer]) -> dict[str, str]:
    """Read what the tags of the account's own images name now: a tag may have moved since the deployment."""
    _, _, _, region, account, _ = endpoint_arn.split(":", 5)
    tagged = re.compile(rf"{account}\.dkr\.ecr\.{region}\.[a-z.]+/([^:@]+):([\w.-]+)")
    found: dict[str, str] = {}
    for image in sorted({container_of(each).get("Image", "") for each in models}):
        match = tagged.fullmatch(image)
        if match:
            ids = [{"imageTag": match[2]}]
            answer = reader.read("ecr", "describe_images", repositoryName=match[1], imageIds=ids)
            for each in answer.get("imageDetails", []):
                found[image] = each["imageDigest"]
    return found


def _read_subnets(reader: RecordingReader, models: Iterable[Answer]) -> dict[str, tuple[str, str]]:
    ids = sorted({subnet for each in models for subnet in each.get("VpcConfig", {}).get("Subnets", [])})
    if not ids:
        return {}
    found = reader.read_all("ec2", "describe_subnets", "Subnets", SubnetIds=ids)
    return {each["SubnetId"]: (each["VpcId"], each["AvailabilityZone"]) for each in found}
