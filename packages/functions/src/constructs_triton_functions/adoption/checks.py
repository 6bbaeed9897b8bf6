"""What must be true before an endpoint is adopted. Nothing is changed before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from ..scaling import call

_STACK_TAG = "aws:cloudformation:stack-name"
Described = Mapping[str, Any]


def is_missing(error: ClientError) -> bool:
    """Whether SageMaker reports that a resource does not exist."""
    return error.response["Error"]["Code"] == "ValidationException" and "Could not find" in str(
        error
    )


def missing_parts(sagemaker: Any, config_name: str) -> list[str]:
    """The configuration, or models of it, that no longer exist."""
    config = _found(sagemaker.describe_endpoint_config, EndpointConfigName=config_name)
    if config is None:
        return [f"endpoint configuration {config_name}"]
    models = sorted({each["ModelName"] for each in _variants(config) if "ModelName" in each})
    return [
        f"model {each}"
        for each in models
        if _found(sagemaker.describe_model, ModelName=each) is None
    ]


def _found(describe: Any, **name: str) -> Any:
    try:
        return call(describe, **name)
    except ClientError as error:
        if is_missing(error):
            return None
        raise


def obstacles(
    sagemaker: Any, endpoint: Described, tags: Mapping[str, str], properties: Described
) -> Iterator[str]:
    """Why a stack may not update an endpoint: each is the end of an error message."""
    if _STACK_TAG in tags:
        yield (
            f"belongs to stack {tags[_STACK_TAG]}, which would delete it; change the model in that "
            "stack, or keep the endpoint with RemovalPolicy.RETAIN "
            "and remove it from that stack first"
        )
    elif endpoint["EndpointStatus"] != "InService":
        yield f"must be in service, got {endpoint['EndpointStatus']}; repair it first"
    elif gone := missing_parts(sagemaker, endpoint["EndpointConfigName"]):
        yield (
            f"{' and '.join(gone)} of the running endpoint no longer exist, so a failed deployment "
            "could not return to them; create them again with the same names, "
            "or create a new endpoint"
        )
    else:
        names = endpoint["EndpointConfigName"], properties["EndpointConfigName"]
        describe = sagemaker.describe_endpoint_config
        running, wanted = (call(describe, EndpointConfigName=each) for each in names)
        keeps_counts = str(properties.get("RetainAllVariantProperties", "")).lower() == "true"
        yield from _lost_variants(running, wanted)
        yield from () if keeps_counts else _shrinking(endpoint, wanted)
        yield from _lost_settings(running, wanted)


def _variants(config: Described) -> list[dict[str, Any]]:
    return [*config["ProductionVariants"], *config.get("ShadowProductionVariants", [])]


def _lost_variants(running: Described, wanted: Described) -> Iterator[str]:
    new = [each["VariantName"] for each in _variants(wanted)]
    for variant in _variants(running):
        name = variant["VariantName"]
        if "ServerlessConfig" in variant:
            yield f"variant {name} is serverless; create a new endpoint, and move the callers"
        elif "ModelName" not in variant:
            yield (
                f"variant {name} hosts inference components; "
                "create a new endpoint, and move the callers"
            )
        elif name not in new:
            yield (
                f"variant {name} would be removed, with its scaling, alarms and callers that name "
                f'it; set variant_name="{name}", got {", ".join(new)}'
            )


def _shrinking(endpoint: Described, wanted: Described) -> Iterator[str]:
    new = {each["VariantName"]: each for each in _variants(wanted)}
    for variant in endpoint["ProductionVariants"]:
        name, count = variant["VariantName"], int(variant.get("DesiredInstanceCount", 0))
        initial = int(new.get(name, {}).get("InitialInstanceCount", count))
        if initial < count:
            yield (
                f"variant {name} has {count} instances and would have {initial}; set "
                f"initial_instance_count={count}, or call retain_instance_counts() on the construct"
            )


def _lost_settings(running: Described, wanted: Described) -> Iterator[str]:
    is_async, becomes_async = ("AsyncInferenceConfig" in each for each in (running, wanted))
    if is_async != becomes_async:
        kind = "an asynchronous" if is_async else "a real-time"
        fix = "set async_inference" if is_async else "remove async_inference"
        yield f"it is {kind} endpoint, and its callers would need another API call; {fix}"
    if "KmsKeyId" in running and "KmsKeyId" not in wanted:
        yield (
            f"its storage volumes are encrypted with {running['KmsKeyId']}; set encryption_key to "
            "this key, or to another one"
        )
