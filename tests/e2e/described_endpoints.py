"""What AWS describes of an endpoint: a mapping of paths to values,
without names and times of creation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cdk_rehearse import SimulatedAccount

_CREATED = frozenset(
    [
        *("EndpointArn", "EndpointConfigArn", "EndpointConfigName", "ModelArn", "ModelName"),
        *("CreationTime", "LastModifiedTime", "ResponseMetadata", "ModelNameOverride", "Alarms"),
        *(
            "InferenceComponentArn",
            "PolicyARN",
            "ScalableTargetARN",
            "RoleARN",
            "ScheduledActionARN",
        ),
    ]
)
_NAMES = (
    "VariantName",
    "PolicyName",
    "InferenceComponentName",
    "ScheduledActionName",
    "ResourceId",
)


def describe(aws: SimulatedAccount, name: str) -> dict[str, Any]:
    """Return all answers about an endpoint as paths and values."""
    sagemaker, scaling = aws.client("sagemaker"), aws.client("application-autoscaling")
    endpoint = sagemaker.describe_endpoint(EndpointName=name)
    config = sagemaker.describe_endpoint_config(EndpointConfigName=endpoint["EndpointConfigName"])
    endpoint.pop("AsyncInferenceConfig", None)  # that of the configuration
    found = {"DescribeEndpoint": endpoint, "DescribeEndpointConfig": config}
    variants = [*config["ProductionVariants"], *config.get("ShadowProductionVariants", [])]
    listed = sagemaker.list_inference_components(EndpointNameEquals=name)["InferenceComponents"]
    components = [
        _component_in_service(sagemaker, each["InferenceComponentName"]) for each in listed
    ]
    models = [each["ModelName"] for each in variants if "ModelName" in each]
    models += [each["Specification"]["ModelName"] for each in components]
    answers = [sagemaker.describe_model(ModelName=model) for model in models]
    found |= {
        f"DescribeInferenceComponent[{each['InferenceComponentName']}]": each for each in components
    }
    found |= {f"DescribeModel[{number}]": each for number, each in enumerate(answers)}
    for member, operation in (
        ("ScalableTargets", scaling.describe_scalable_targets),
        ("ScalingPolicies", scaling.describe_scaling_policies),
        ("ScheduledActions", scaling.describe_scheduled_actions),
    ):
        listed = operation(ServiceNamespace="sagemaker")[member]
        found[f"Describe{member}"] = [each for each in listed if f"/{name}/" in each["ResourceId"]]
    arns = [
        endpoint["EndpointArn"],
        config["EndpointConfigArn"],
        *(each["ModelArn"] for each in answers),
    ]
    for arn in arns:
        tags = sagemaker.list_tags(ResourceArn=arn)["Tags"]
        own = {each["Key"]: each["Value"] for each in tags if not each["Key"].startswith("aws:")}
        found[f"ListTags[{arn.split(':')[5].partition('/')[0]}]"] = sorted(own.items())
    return dict(_paths("", found))


def _component_in_service(sagemaker: Any, name: str) -> dict[str, Any]:
    """Each call is a step of a creation in the simulated account."""
    while True:
        found: dict[str, Any] = sagemaker.describe_inference_component(InferenceComponentName=name)
        if found["InferenceComponentStatus"] == "InService":
            return found


def changed_paths(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """Return the paths whose values differ, without the number of the model.

    ``False`` is like no value.
    """
    paths = before.keys() | after.keys()
    changed = {path for path in paths if (before.get(path) or None) != (after.get(path) or None)}
    return {re.sub(r"^DescribeModel\[\d+\]", "DescribeModel", path) for path in changed}


def _paths(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name not in _CREATED:
                yield from _paths(f"{prefix}.{name}" if prefix else name, part)
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for number, part in enumerate(value):
            name = next((part[each] for each in _NAMES if each in part), number)
            yield from _paths(f"{prefix}[{name}]", part)
    else:
        yield prefix, value
