"""Reads everything that AWS says about one endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from constructs_triton_core.aws_reader import AwsError
from constructs_triton_core.cloud_assembly.endpoints import containers_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.operations.adopting.python_text import Answer
from constructs_triton_tools.operations.adopting.reading import RecordingReader
from constructs_triton_tools.operations.component_state import specifications_of
from constructs_triton_tools.operations.status import describe_endpoint, scalable_targets, watches

_SCALING = "application-autoscaling"
#: What names a scalable target.
_TARGET_KEY = ("ServiceNamespace", "ResourceId", "ScalableDimension")
_STACK = "aws:cloudformation:stack-name"
Answers = Sequence[Answer]


@dataclass(frozen=True, slots=True)
class RunningRole:
    """An execution role: its ARN, and what its policies allow, one action each;
    ``None`` if not readable.
    """

    arn: str
    policies: Sequence[str]
    actions: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class RunningEndpoint:
    """AWS's answers about an endpoint.

    Args:
        endpoint: Answer of ``DescribeEndpoint``.
        config: Answer of ``DescribeEndpointConfig``.
        models: Answers of ``DescribeModel`` by the name of the model; empty ones for deleted
            models.
        components: Answers of ``DescribeInferenceComponent``.
        tags: Tags by ARN, without those of AWS.
        stack: CloudFormation stack that owns the endpoint or its configuration; ``None`` if there
            is none.
        targets: Scalable targets of its variants and components.
        policies: Their scaling policies.
        actions: Their scheduled actions.
        alarms: Alarms that watch it, without those that belong to scaling policies.
        log_retention_days: Retention of its log group; ``None`` if it is kept forever or not known.
        roles: Execution roles.
        vpc_ids: VPC of each subnet of the models, with its Availability Zone.
        tag_digests: Digest that the tag of each image in the account's own ECR has now, by the
            image's URI.
    """

    endpoint: Answer
    config: Answer
    models: Mapping[str, Answer]
    components: Answers
    tags: Mapping[str, Mapping[str, str]]
    stack: str | None
    targets: Answers
    policies: Answers
    actions: Answers
    alarms: Answers
    log_retention_days: int | None
    roles: Sequence[RunningRole]
    vpc_ids: Mapping[str, tuple[str, str]]
    tag_digests: Mapping[str, str]

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
        return _variants(self.config)

    @property
    def hosts_components(self) -> bool:
        """Whether inference components run on a variant."""
        return any("ModelName" not in variant for variant in self.variants)

    def container(self, model_name: str | None) -> Answer:
        """Return the only container of a model; an empty one for a model that was deleted."""
        return next(iter(containers_of(self.models.get(model_name or "", {}))), {})

    def running_digest(self, image: str) -> str | None:
        """Return the digest that an image runs as; ``None`` if SageMaker does not report it."""
        for variant in self.endpoint.get("ProductionVariants", []):
            for deployed in variant.get("DeployedImages", []):
                if deployed.get("SpecifiedImage") == image:
                    return deployed.get("ResolvedImage", "").partition("@")[2] or None
        return None

    def running_variant(self, name: str) -> Answer:
        """Return what ``DescribeEndpoint`` says about a variant."""
        for variant in _variants(self.endpoint):
            if variant["VariantName"] == name:
                return variant
        return {}


def _variants(answer: Answer) -> list[Answer]:
    return [*answer.get("ProductionVariants", []), *answer.get("ShadowProductionVariants", [])]


def read_running_endpoint(reader: RecordingReader, name: str) -> RunningEndpoint:
    """Read an endpoint and everything that belongs to it."""
    endpoint = describe_endpoint(reader, name)
    config = _read_config(reader, name, endpoint["EndpointConfigName"])
    components = _read_components(reader, name)
    models = _read_models(reader, _model_names(config, components))

    arns = [endpoint["EndpointArn"], config["EndpointConfigArn"]]
    # An endpoint that a stack has adopted has only a configuration of the stack.
    stack_arns = tuple(arns)
    arns += [model["ModelArn"] for model in models.values() if model]
    arns += [component["InferenceComponentArn"] for component in components]
    tags = {arn: _read_tags(reader, arn) for arn in arns}

    targets = _read_targets(reader, name, components)
    return RunningEndpoint(
        endpoint=endpoint,
        config=config,
        models=models,
        components=components,
        tags={arn: _without_those_of_aws(values) for arn, values in tags.items()},
        stack=next((tags[arn][_STACK] for arn in stack_arns if _STACK in tags[arn]), None),
        targets=targets,
        policies=_of_targets(reader, targets, "describe_scaling_policies", "ScalingPolicies"),
        actions=_of_targets(reader, targets, "describe_scheduled_actions", "ScheduledActions"),
        alarms=_read_alarms(reader, name, components),
        log_retention_days=_read_retention(reader, name),
        roles=[_read_role(reader, arn) for arn in _role_arns(config, models)],
        vpc_ids=_read_subnets(reader, models.values()),
        tag_digests=_read_digests(reader, endpoint["EndpointArn"], models.values()),
    )


def _read_config(reader: RecordingReader, name: str, config_name: str) -> dict[str, Any]:
    try:
        return reader.require(
            "sagemaker", "describe_endpoint_config", EndpointConfigName=config_name
        )
    except AwsError as error:
        raise InvalidValueError(
            f"endpoint {name}: its configuration {config_name} cannot be read ({error.reason}), so "
            "its instance types and models are not known; if it was deleted, create a "
            "configuration with the same variants, and update the endpoint to it"
        ) from None


def _read_components(reader: RecordingReader, name: str) -> list[dict[str, Any]]:
    listed = reader.read_list(
        "sagemaker", "list_inference_components", "InferenceComponents", EndpointNameEquals=name
    )
    components = []
    for component_name in sorted(component["InferenceComponentName"] for component in listed):
        component = reader.read(
            "sagemaker", "describe_inference_component", InferenceComponentName=component_name
        )
        # Empty if it was deleted since it was listed.
        if component:
            components.append(component)
    return components


def _model_names(config: Answer, components: Answers) -> list[str]:
    """Return the models of the variants, of their instance pools, and of the components."""
    names: list[str | None] = []
    for variant in _variants(config):
        names.append(variant.get("ModelName"))
        names += [pool.get("ModelNameOverride") for pool in variant.get("InstancePools", [])]
    for component in components:
        names += [part.get("ModelName") for part in specifications_of(component)]
    return sorted({name for name in names if name})


def _read_models(reader: RecordingReader, names: Iterable[str]) -> dict[str, Answer]:
    models: dict[str, Answer] = {}
    for name in names:
        models[name] = reader.read("sagemaker", "describe_model", ModelName=name)
    return models


def _role_arns(config: Answer, models: Mapping[str, Answer]) -> list[str]:
    """Return the execution roles of the configuration and of the models."""
    arns = {answer.get("ExecutionRoleArn") for answer in (config, *models.values())}
    return sorted(arn for arn in arns if arn)


def _without_those_of_aws(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in tags.items() if not key.startswith("aws:")}


def _read_tags(reader: RecordingReader, arn: str) -> dict[str, str]:
    found = reader.read_list("sagemaker", "list_tags", "Tags", ResourceArn=arn)
    return {tag["Key"]: tag["Value"] for tag in found}


def _read_targets(reader: RecordingReader, name: str, components: Answers) -> list[dict[str, Any]]:
    copies = {
        f"inference-component/{component['InferenceComponentName']}" for component in components
    }
    found = scalable_targets(reader, name, copies)
    reader.keep_only("describe_scalable_targets", "ScalableTargets", found)
    return found


def _of_targets(
    reader: RecordingReader, targets: Answers, operation: str, member: str
) -> list[Answer]:
    """Return the policies or the scheduled actions of all targets."""
    found: list[Answer] = []
    for target in targets:
        request = {name: target[name] for name in _TARGET_KEY}
        found += reader.read_list(_SCALING, operation, member, **request)
    return found


def _read_alarms(reader: RecordingReader, name: str, components: Answers) -> list[dict[str, Any]]:
    watched = [{"Name": "EndpointName", "Value": name}]
    watched += [
        {"Name": "InferenceComponentName", "Value": component["InferenceComponentName"]}
        for component in components
    ]
    found = reader.read_list("cloudwatch", "describe_alarms", "MetricAlarms")
    own = []
    for alarm in found:
        # Alarms of scaling policies belong to Application Auto Scaling.
        is_of_policy = alarm["AlarmName"].startswith("TargetTracking-")
        if not is_of_policy and watches(alarm, watched):
            own.append(alarm)
    reader.keep_only("describe_alarms", "MetricAlarms", own)
    return own


def _read_retention(reader: RecordingReader, name: str) -> int | None:
    group = f"/aws/sagemaker/Endpoints/{name}"
    # The prefix also finds the groups of endpoints with a longer name.
    groups = list(
        reader.read_list("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=group)
    )
    for log_group in groups:
        if log_group["logGroupName"] == group:
            return log_group.get("retentionInDays")
    return None


def _read_role(reader: RecordingReader, arn: str) -> RunningRole:
    name = arn.rpartition("/")[2]
    reader.read("iam", "get_role", RoleName=name)
    attached = list(
        reader.read_list("iam", "list_attached_role_policies", "AttachedPolicies", RoleName=name)
    )
    inline = reader.read("iam", "list_role_policies", RoleName=name).get("PolicyNames", [])
    names = [*(policy["PolicyName"] for policy in attached), *inline]

    documents = []
    for policy_name in inline:
        answer = reader.read("iam", "get_role_policy", RoleName=name, PolicyName=policy_name)
        documents.append(answer.get("PolicyDocument"))
    documents += [_read_policy(reader, policy["PolicyArn"]) for policy in attached]

    # One policy that cannot be read may allow anything, so nothing is said about the actions.
    if any(document is None for document in documents):
        return RunningRole(arn, names, None)
    return RunningRole(arn, names, sorted(set(_actions(documents))))


def _read_policy(reader: RecordingReader, arn: str) -> Any:
    policy = reader.read("iam", "get_policy", PolicyArn=arn).get("Policy", {})
    version = policy.get("DefaultVersionId")
    if version is None:
        return None
    answer = reader.read("iam", "get_policy_version", PolicyArn=arn, VersionId=version)
    return answer.get("PolicyVersion", {}).get("Document")


def _actions(documents: Sequence[Any]) -> Iterator[str]:
    """Yield the actions that documents allow; IAM accepts one value in place of a list of one."""
    for document in documents:
        statements = (document or {}).get("Statement", [])
        if isinstance(statements, Mapping):
            statements = [statements]
        for statement in statements:
            if statement.get("Effect") != "Allow":
                continue
            actions = statement.get("Action", [])
            yield from [actions] if isinstance(actions, str) else actions


def _read_digests(
    reader: RecordingReader, endpoint_arn: str, models: Iterable[Answer]
) -> dict[str, str]:
    """Read what the tags of the account's own images name now:
    a tag may have moved since the deployment.
    """
    _, _, _, region, account, _ = endpoint_arn.split(":", 5)
    tagged = re.compile(rf"{account}\.dkr\.ecr\.{region}\.[a-z.]+/([^:@]+):([\w.-]+)")
    images = set()
    for model in models:
        images |= {container.get("Image", "") for container in containers_of(model)}

    found: dict[str, str] = {}
    for image in sorted(images):
        match = tagged.fullmatch(image)
        if match is None:
            continue
        ids = [{"imageTag": match[2]}]
        answer = reader.read("ecr", "describe_images", repositoryName=match[1], imageIds=ids)
        for detail in answer.get("imageDetails", []):
            found[image] = detail["imageDigest"]
    return found


def _read_subnets(reader: RecordingReader, models: Iterable[Answer]) -> dict[str, tuple[str, str]]:
    ids = set()
    for model in models:
        ids |= set(model.get("VpcConfig", {}).get("Subnets", []))
    if not ids:
        return {}
    found = reader.read_list("ec2", "describe_subnets", "Subnets", SubnetIds=sorted(ids))
    return {subnet["SubnetId"]: (subnet["VpcId"], subnet["AvailabilityZone"]) for subnet in found}
