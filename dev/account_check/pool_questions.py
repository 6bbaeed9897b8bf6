"""How an account answers the question about instance pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from .account import Account

_STACK = "TritonAccountCheckPooled"
_NAME = "constructs-triton-account-check"


def pooled(account: Account) -> str:
    """Reorder the pools of a scaled variant, and create configurations with pools
    and one property more.
    """
    created = account.deploy(_STACK, 1)
    if not created.is_created:
        return f"create {created}"
    reordered = account.deploy(_STACK, 2)
    config = account.client("sagemaker").describe_endpoint_config(
        EndpointConfigName=account.endpoint(_STACK)["EndpointConfigName"]
    )
    (variant,) = config["ProductionVariants"]
    timeout = variant.get("VariantInstanceProvisionTimeoutInSeconds", "not shown")
    answers = [f"{name} {_try(account, case)}" for name, case in _cases(variant).items()]
    answers.append(f"multi-model {_try_multi_model(account, variant)}")
    return (
        f"create {created}; another order while scaled {reordered}; default provision timeout "
        f"{timeout}; {'; '.join(answers)}; metrics by instance type {_has_metrics(account)}"
    )


def _cases(variant: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Configurations by what they try. Each has the running variant, with a change."""
    own = {name: variant[name] for name in ("VariantName", "ModelName", "InitialInstanceCount")}
    first, second = variant["InstancePools"]
    both = {**own, "InstancePools": [first, second]}
    bucket = f"s3://{_NAME}"
    capture = {
        "EnableCapture": True,
        "InitialSamplingPercentage": 1,
        "DestinationS3Uri": bucket,
        "CaptureOptions": [{"CaptureMode": "Input"}],
    }
    other = {**both, "VariantName": "Other"}
    same_type = {**second, "InstanceType": first["InstanceType"]}
    same_priority = {**second, "Priority": first["Priority"]}
    return {
        "one pool": _variants({**own, "InstancePools": [first]}),
        "one type twice": _variants({**own, "InstancePools": [first, same_type]}),
        "equal priorities": _variants({**own, "InstancePools": [first, same_priority]}),
        "volume size": _variants({**both, "VolumeSizeInGB": 40}),
        "core dumps": _variants({**both, "CoreDumpConfig": {"DestinationS3Uri": bucket}}),
        "SSM access": _variants({**both, "EnableSSMAccess": True}),
        "data capture": {**_variants(both), "DataCaptureConfig": capture},
        "two variants": _variants(both, other),
        "shadow variant": {**_variants(both), "ShadowProductionVariants": [other]},
    }


def _variants(*variants: Mapping[str, Any]) -> dict[str, Any]:
    return {"ProductionVariants": list(variants)}


def _try(account: Account, config: Mapping[str, Any]) -> str:
    sagemaker = account.client("sagemaker")
    try:
        sagemaker.create_endpoint_config(EndpointConfigName=_NAME, **config)
    except ClientError as error:
        return f"refused ({error.response['Error']['Message']})"
    sagemaker.delete_endpoint_config(EndpointConfigName=_NAME)
    return "accepted"


def _try_multi_model(account: Account, variant: Mapping[str, Any]) -> str:
    sagemaker = account.client("sagemaker")
    model = sagemaker.describe_model(ModelName=variant["ModelName"])
    container = model["PrimaryContainer"]
    folder = container["ModelDataUrl"].rpartition("/")[0]
    many = {"Image": container["Image"], "Mode": "MultiModel", "ModelDataUrl": f"{folder}/"}
    try:
        sagemaker.create_model(
            ModelName=_NAME, PrimaryContainer=many, ExecutionRoleArn=model["ExecutionRoleArn"]
        )
    except ClientError as error:
        return f"not tried ({error.response['Error']['Message']})"
    own = {name: variant[name] for name in ("VariantName", "InitialInstanceCount", "InstancePools")}
    answer = _try(account, _variants({**own, "ModelName": _NAME}))
    sagemaker.delete_model(ModelName=_NAME)
    return answer


def _has_metrics(account: Account) -> str:
    wanted = [
        {"Name": "EndpointName", "Value": account.output(_STACK, "Name")},
        {"Name": "InstanceType"},
    ]
    client = account.client("cloudwatch")

    def names() -> list[str]:
        return sorted(
            {each["MetricName"] for each in client.list_metrics(Dimensions=wanted)["Metrics"]}
        )

    account.wait(lambda: bool(names()))
    return ", ".join(names()) or "none"
