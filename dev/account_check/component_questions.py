"""How an account answers the questions about inference components."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from .account import Account

_BODY = json.dumps(
    {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1.0]}]}
).encode()


def component_updates(account: Account) -> str:
    """Update a component with one copy and with two, its deployment alone,
    and delete it while it scales.
    """
    stack = "TritonAccountCheckComponentUpdates"
    results = [f"create {account.deploy(stack, 1)}"]
    if "CREATE_COMPLETE" not in results[0]:
        return results[0]
    callers = [
        f"{name} ARN alone {_call(account, stack, name)}" for name in ("Endpoint", "Component")
    ]
    results += [f"one copy {account.deploy(stack, 2)}", *callers, _letters(account, stack)]
    _set_copies(account, stack, 2)
    updated = account.deploy(stack, 3)
    copies = _component(account, stack)["RuntimeConfig"]
    results.append(f"two copies {updated}, then {copies['DesiredCopyCount']} wanted")
    results.append(f"deployment settings alone {_change_deployment(account, stack)}")
    _set_copies(account, stack, 1, is_awaited=False)
    try:
        account.destroy(stack)
    except RuntimeError:
        # The component cannot be deleted before its copies have changed.
        account.wait(lambda: _component(account, stack)["InferenceComponentStatus"] == "InService")
        return "; ".join([*results, "deletion while copies change failed"])
    return "; ".join([*results, "deletion while copies change succeeded"])


def component_configs(account: Account) -> str:
    """Create endpoint configurations without a model, each with one property more."""
    stack = "TritonAccountCheckComponentConfigs"
    created = account.deploy(stack, 1)
    if not created.is_created:
        return f"create {created}"
    role, bucket = account.output(stack, "RoleArn"), "s3://constructs-triton-account-check"
    variant = {
        "VariantName": "AllTraffic",
        "InstanceType": "ml.m5.large",
        "InitialInstanceCount": 1,
    }
    scaling = {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 1}
    capture = {
        "EnableCapture": True,
        "InitialSamplingPercentage": 1,
        "DestinationS3Uri": bucket,
        "CaptureOptions": [{"CaptureMode": "Input"}],
    }
    second = {**variant, "VariantName": "Second"}
    cases: Mapping[str, dict[str, Any]] = {
        "minimum of 0": {"ProductionVariants": [{**variant, "ManagedInstanceScaling": scaling}]},
        "data capture": {"DataCaptureConfig": capture},
        "asynchronous": {"AsyncInferenceConfig": {"OutputConfig": {"S3OutputPath": bucket}}},
        "two variants": {"ProductionVariants": [variant, second]},
        "shadow variant": {"ShadowProductionVariants": [second]},
        "variant weight": {"ProductionVariants": [{**variant, "InitialVariantWeight": 1}]},
        "variant timeout": {
            "ProductionVariants": [{**variant, "ContainerStartupHealthCheckTimeoutInSeconds": 600}]
        },
    }
    answers = [
        f"{name} {_try_config(account, role, variant, case)}" for name, case in cases.items()
    ]
    return f"create {created}; {'; '.join(answers)}"


def component_inside(account: Account) -> str:
    """Call a model that reports what it finds, and read the names of logs and metrics."""
    stack = "TritonAccountCheckComponentInside"
    created = account.deploy(stack, 1)
    if not created.is_created:
        return f"create {created}"
    said = _invoke(account.client("sagemaker-runtime"), account, stack)
    logs = account.client("logs")
    group = account.output(stack, "LogGroup")
    account.wait(lambda: bool(_streams(logs, group)) and bool(_dimensions(account, stack)))
    return (
        f"create {created}; {said}; log streams {_streams(logs, group) or 'none'}; dimensions of "
        f"GPUUtilizationNormalized {_dimensions(account, stack) or 'none'}; "
        f"memory {_largest_memory(account, stack)}"
    )


def _try_config(account: Account, role: str, variant: dict[str, Any], case: dict[str, Any]) -> str:
    name = "constructs-triton-account-check"
    sagemaker = account.client("sagemaker")
    given = {"ProductionVariants": [variant], **case}
    try:
        sagemaker.create_endpoint_config(EndpointConfigName=name, ExecutionRoleArn=role, **given)
    except ClientError as error:
        return f"refused ({error.response['Error']['Message']})"
    sagemaker.delete_endpoint_config(EndpointConfigName=name)
    return "accepted"


def _call(account: Account, stack: str, caller: str) -> str:
    """Whether a role that may call only one of the two ARNs gets an answer."""
    given = account.client("sts").assume_role(
        RoleArn=account.output(stack, f"{caller}CallerArn"), RoleSessionName="account-check"
    )["Credentials"]
    runtime = account.client_with("sagemaker-runtime", given)
    return "allowed" if "AccessDenied" not in _invoke(runtime, account, stack) else "denied"


def _invoke(runtime: Any, account: Account, stack: str) -> str:
    try:
        answer = runtime.invoke_endpoint(
            EndpointName=account.output(stack, "Name"),
            InferenceComponentName=account.output(stack, "Component"),
            ContentType="application/json",
            Body=_BODY,
        )["Body"].read()
    except ClientError as error:
        return f"invocation failed: {error}"
    try:
        return str(json.loads(answer)["outputs"][0]["data"][0])
    except (ValueError, KeyError, TypeError):
        return "invocation succeeded"


def _letters(account: Account, stack: str) -> str:
    """Whether the ARN of a component, whose name has capital letters, keeps them."""
    (listed,) = account.client("sagemaker").list_inference_components(
        EndpointNameEquals=account.output(stack, "Name")
    )["InferenceComponents"]
    name, arn = listed["InferenceComponentName"], listed["InferenceComponentArn"]
    if name == name.lower():
        return f"ARN of {name} says nothing: it has no capital letters"
    return f"ARN {'keeps capital letters' if arn.endswith(f'/{name}') else 'is in lower case'}"


def _component(account: Account, stack: str) -> dict[str, Any]:
    described: dict[str, Any] = account.client("sagemaker").describe_inference_component(
        InferenceComponentName=account.output(stack, "Component")
    )
    return described


def _set_copies(account: Account, stack: str, count: int, *, is_awaited: bool = True) -> None:
    account.client("sagemaker").update_inference_component_runtime_config(
        InferenceComponentName=account.output(stack, "Component"),
        DesiredRuntimeConfig={"CopyCount": count},
    )
    if is_awaited:
        account.wait(lambda: _component(account, stack)["InferenceComponentStatus"] == "InService")


def _change_deployment(account: Account, stack: str) -> str:
    policy = {
        "MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 50},
        "WaitIntervalInSeconds": 120,
    }
    try:
        account.client("sagemaker").update_inference_component(
            InferenceComponentName=account.output(stack, "Component"),
            DeploymentConfig={"RollingUpdatePolicy": policy},
        )
    except ClientError as error:
        return f"refused ({error.response['Error']['Message']})"
    account.wait(lambda: _component(account, stack)["InferenceComponentStatus"] == "InService")
    return "accepted"


def _largest_memory(account: Account, stack: str) -> str:
    """The largest share of the memory of the instance that one copy may reserve,
    of four that are tried.
    """
    described = _component(account, stack)
    specification = {"ModelName": described["Specification"]["ModelName"]}
    memory_mib = 192 * 1024
    for percent in (90, 75, 50, 25):
        needs = {
            "MinMemoryRequiredInMb": memory_mib * percent // 100,
            "NumberOfAcceleratorDevicesRequired": 1,
        }
        name = f"constructs-triton-account-check-{percent}"
        if _is_created(
            account, described, name, {**specification, "ComputeResourceRequirements": needs}
        ):
            return f"{percent} percent can be reserved"
    return "less than 25 percent can be reserved"


def _is_created(
    account: Account, beside: dict[str, Any], name: str, specification: dict[str, Any]
) -> bool:
    sagemaker = account.client("sagemaker")
    try:
        sagemaker.create_inference_component(
            InferenceComponentName=name,
            EndpointName=beside["EndpointName"],
            VariantName=beside["VariantName"],
            Specification=specification,
            RuntimeConfig={"CopyCount": 1},
        )
    except ClientError:
        return False

    def status() -> str:
        found = sagemaker.describe_inference_component(InferenceComponentName=name)
        return str(found["InferenceComponentStatus"])

    account.wait(lambda: status() != "Creating")
    is_created = status() == "InService"
    sagemaker.delete_inference_component(InferenceComponentName=name)
    account.wait(lambda: not _exists(sagemaker, name))
    return is_created


def _exists(sagemaker: Any, name: str) -> bool:
    try:
        sagemaker.describe_inference_component(InferenceComponentName=name)
    except ClientError:
        return False
    return True


def _streams(logs: Any, group: str) -> list[str]:
    try:
        found = logs.describe_log_streams(logGroupName=group)["logStreams"]
    except ClientError:
        return []
    return [str(each["logStreamName"]) for each in found]


def _dimensions(account: Account, stack: str) -> list[str]:
    wanted = {"Name": "InferenceComponentName", "Value": account.output(stack, "Component")}
    found = account.client("cloudwatch").list_metrics(
        MetricName="GPUUtilizationNormalized", Dimensions=[wanted]
    )["Metrics"]
    return sorted({each["Name"] for metric in found for each in metric["Dimensions"]})
