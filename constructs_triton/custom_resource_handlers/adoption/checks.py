"""What must be true before an endpoint is adopted. Nothing is changed before.

Each check yields the end of an error message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from ..scaling import call

__all__ = ["is_missing", "missing_parts", "obstacles"]

Described = Mapping[str, Any]


def is_missing(error: ClientError) -> bool:
    """Whether SageMaker reports that a resource does not exist."""
    return error.response["Error"]["Code"] == "ValidationException" and "Could not find" in str(error)


def missing_parts(sagemaker: Any, config_name: str) -> Iterator[str]:
    """The configuration, or models of it, that no longer exist."""
    try:
        config = call(sagemaker.describe_endpoint_config, EndpointConfigName=config_name)
    except ClientError as error:
        if not is_missing(error):
            raise
        yield f"endpoint configuration {config_name}"
        return
    for model in sorted({each["ModelName"] for each in _variants(config) if "ModelName" in each}):
        try:
            call(sagemaker.describe_model, ModelName=model)
        except ClientError as error:
            if not is_missing(error):
                raise
            yield f"model {model}"


def obstacles(
    endpoint: Described, running: Described, wanted: Described, properties: Described
) -> Iterator[str]:
    """Why the update to the configuration ``wanted`` would harm the callers of the endpoint.

    ``endpoint`` and ``running`` are the endpoint and its configuration as they are now.
    """
    new = {each["VariantName"]: each for each in _variants(wanted)}
    keeps_counts = str(properties.get("RetainAllVariantProperties", "")).lower() == "true"
    for variant in _variants(running):
        name = variant["VariantName"]
        if "ServerlessConfig" in variant:
            yield f"variant {name} is serverless; create a new endpoint, and move the callers"
        elif "ModelName" not in variant:
            yield f"variant {name} hosts inference components; create a new endpoint, and move the callers"
        elif name not in new:
            names = ", ".join(new)
            yield (
                f"variant {name} would be removed, with its scaling, alarms and callers that name it; "
                f'set variant_name="{name}", got {names}'
            )
    if not keeps_counts:
        yield from _shrinking(endpoint, new)
    yield from _lost_settings(running, wanted)


def _variants(config: Described) -> list[dict[str, Any]]:
    return [*config["ProductionVariants"], *config.get("ShadowProductionVariants", [])]


def _shrinking(endpoint: Described, new: Mapping[str, Described]) -> Iterator[str]:
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
            f"its storage volumes are encrypted with {running['KmsKeyId']}; set encryption_key to this key, "
            "or to another one"
        )
