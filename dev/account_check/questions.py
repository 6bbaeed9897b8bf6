"""The questions, and how an account answers each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .account import Account
from .component_questions import component_configs, component_inside, component_updates
from .import_question import imported
from .operation_questions import published, stopped
from .pool_questions import pooled

_PREFIX = "TritonAccountCheck"
_INPUT = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1.0]}


@dataclass(frozen=True)
class Question:
    """A question, its stack, and how many instances run for how many minutes at most."""

    number: int
    text: str
    stack: str
    instances: int
    minutes: int
    ask: Callable[[Account], str]
    instance_type: str = "ml.m5.large"


def returned(account: Account) -> str:
    """Update to a model that cannot start, and look at the configuration that
    the endpoint then has.
    """
    stack = f"{_PREFIX}Returned"
    created = account.deploy(stack, 1)
    if not created.is_created:
        return f"create {created}"
    before = account.endpoint(stack)["EndpointConfigName"]
    updated = account.deploy(stack, 2)
    endpoint = account.endpoint(stack)
    running = endpoint["EndpointConfigName"]
    config = "the old" if running == before else "the new"
    existence = "exists" if account.config_exists(running) else "does not exist any more"
    return (
        f"create {created}; update {updated}; endpoint {endpoint['EndpointStatus']} with {config} "
        f"configuration, which {existence}; FailureReason: {endpoint.get('FailureReason', 'none')}"
    )


def missing_alarm(account: Account) -> str:
    """Create an endpoint with a rollback alarm that does not exist."""
    return f"create {account.deploy(f'{_PREFIX}MissingAlarm', 1)}"


def unchanged(account: Account) -> str:
    """Add scaling, and then an alarm, to an endpoint whose configuration does not change."""
    stack = f"{_PREFIX}Unchanged"
    created = account.deploy(stack, 1)
    results = [f"create {created}"]
    if not created.is_created:
        return results[0]
    for what, release in (("scaling", 2), ("rollback alarm", 3)):
        before = account.endpoint(stack)
        updated = account.deploy(stack, release)
        after = account.endpoint(stack)
        is_modified = before["LastModifiedTime"] != after["LastModifiedTime"]
        results.append(
            f"{what} {updated}, endpoint {'modified' if is_modified else 'not modified'}"
        )
    return "; ".join(results)


def retained(account: Account) -> str:
    """Add and remove a variant beside a scaled one, and update an endpoint that has no instance."""
    stack = f"{_PREFIX}Retained"
    created = account.deploy(stack, 1)
    results = [f"create {created}"]
    if not created.is_created:
        return results[0]
    queue = account.output(stack, "QueueName")
    account.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName=queue,
        DesiredWeightsAndCapacities=[{"VariantName": "AllTraffic", "DesiredInstanceCount": 0}],
    )
    account.wait(lambda: account.endpoint(stack, "QueueName")["EndpointStatus"] == "InService")
    for what, release in (("variant added", 2), ("variant removed", 3)):
        updated = account.deploy(stack, release)
        fleets, asynchronous = (
            _counts(account, stack, name) for name in ("FleetsName", "QueueName")
        )
        results.append(f"{what} {updated}, instances {fleets}, asynchronous {asynchronous}")
    return "; ".join(results)


def accelerated(account: Account) -> str:
    """Call a model on a GPU of type g4dn, and look for its metric of concurrent requests."""
    stack = f"{_PREFIX}Accelerated"
    created = account.deploy(stack, 1)
    if not created.is_created:
        return f"create {created}"
    endpoint = account.endpoint(stack)
    variants = account.client("sagemaker").describe_endpoint_config(
        EndpointConfigName=endpoint["EndpointConfigName"]
    )["ProductionVariants"]
    invoked = _invoke(account, endpoint["EndpointName"], account.output(stack, "TargetModel"))
    has_metric = account.wait(lambda: _has_metric(account, endpoint["EndpointName"]))
    return (
        f"create {created} with inference AMI "
        f"{variants[0].get('InferenceAmiVersion', 'of SageMaker')}; invocation {invoked}; "
        f"ConcurrentRequestsPerModel {'published' if has_metric else 'not published'}"
    )


def _counts(account: Account, stack: str, output: str) -> str:
    variants = account.endpoint(stack, output)["ProductionVariants"]
    return ", ".join(
        f"{each['VariantName']} {each.get('CurrentInstanceCount')}" for each in variants
    )


def _invoke(account: Account, endpoint_name: str, target_model: str) -> str:
    runtime = account.client("sagemaker-runtime")
    try:
        for _ in range(20):
            runtime.invoke_endpoint(
                EndpointName=endpoint_name,
                TargetModel=target_model,
                ContentType="application/json",
                Body=json.dumps({"inputs": [_INPUT]}).encode(),
            )
    except runtime.exceptions.ClientError as error:
        return f"failed: {error}"
    return "succeeded"


def _has_metric(account: Account, endpoint_name: str) -> bool:
    wanted: dict[str, Any] = {"Name": "EndpointName", "Value": endpoint_name}
    found = account.client("cloudwatch").list_metrics(
        MetricName="ConcurrentRequestsPerModel", Dimensions=[wanted]
    )
    return bool(found["Metrics"])


QUESTIONS = (
    Question(
        1,
        "Does CloudFormation report success when SageMaker "
        "returns an endpoint to its old configuration?",
        f"{_PREFIX}Returned",
        instances=2,
        minutes=60,
        ask=returned,
    ),
    Question(
        2,
        "Can an endpoint be created with a rollback alarm that does not exist yet?",
        f"{_PREFIX}MissingAlarm",
        instances=1,
        minutes=20,
        ask=missing_alarm,
    ),
    Question(
        3,
        "Is an endpoint deployed again when scaling or alarms change without a new configuration?",
        f"{_PREFIX}Unchanged",
        instances=2,
        minutes=45,
        ask=unchanged,
    ),
    Question(
        4,
        "Do instance counts, also 0, survive an update that adds or removes variants?",
        f"{_PREFIX}Retained",
        instances=5,
        minutes=60,
        ask=retained,
    ),
    Question(
        5,
        "Does the inference AMI for CUDA 13 start on g4dn, and is ConcurrentRequestsPerModel "
        "published for multi-model endpoints?",
        f"{_PREFIX}Accelerated",
        instances=1,
        minutes=45,
        ask=accelerated,
        instance_type="ml.g4dn.xlarge",
    ),
    Question(
        6,
        "Does a component's update work with one copy, and does it keep the copies that were "
        "added? May the deployment settings change alone, may it be deleted while its copies "
        "change, and which ARN must a caller be allowed, in which letters?",
        f"{_PREFIX}ComponentUpdates",
        instances=3,
        minutes=90,
        ask=component_updates,
    ),
    Question(
        7,
        "Which properties does SageMaker accept on the configuration of an endpoint with "
        "components, in this Region?",
        f"{_PREFIX}ComponentConfigs",
        instances=0,
        minutes=10,
        ask=component_configs,
    ),
    Question(
        8,
        "What does a component's container find (shared memory, GPUs, ports), what are its log "
        "streams and metric dimensions called, and how much memory can a copy reserve?",
        f"{_PREFIX}ComponentInside",
        instances=1,
        minutes=90,
        ask=component_inside,
        instance_type="ml.g4dn.12xlarge",
    ),
    Question(
        9,
        "Which endpoint configurations with instance pools does SageMaker accept, in this Region, "
        "and does a scaled variant refuse another order of the list?",
        f"{_PREFIX}Pooled",
        instances=2,
        minutes=45,
        ask=pooled,
    ),
    Question(
        10,
        "Does drift detection report a stopped endpoint, do an update of its stack and the "
        "rollback fail, what succeeds after the start, and are the scaling policies, the "
        "deployment configuration and the instance count as before?",
        f"{_PREFIX}Stopped",
        instances=4,
        minutes=75,
        ask=stopped,
    ),
    Question(
        11,
        "Does CloudWatch read the metrics of container_metrics from the log, in this Region, and "
        "is a policy on queue time accepted?",
        f"{_PREFIX}Published",
        instances=1,
        minutes=30,
        ask=published,
    ),
    Question(
        12,
        "Can CloudFormation import an endpoint that was created outside of it?",
        f"{_PREFIX}Imported",
        instances=2,
        minutes=30,
        ask=imported,
    ),
)
