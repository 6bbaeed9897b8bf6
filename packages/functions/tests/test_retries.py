"""Throttling: each call of the functions that update endpoints is repeated by the SDK."""

from __future__ import annotations

import io
import time
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from constructs_triton_functions import retries, scaling

ENDPOINT = {"EndpointName": "digits"}
VARIANT = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/digits/variant/blue",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
PARAMETER = {"Name": "/digits"}
TAGS = {"ResourceArn": "arn:aws:sagemaker:us-east-1:123456789012:endpoint/digits"}
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("sagemaker", "describe_endpoint", ENDPOINT),
    ("sagemaker", "describe_endpoint_config", {"EndpointConfigName": "c"}),
    ("sagemaker", "update_endpoint", {**ENDPOINT, "EndpointConfigName": "c"}),
    ("sagemaker", "list_tags", TAGS),
    ("sagemaker", "add_tags", {**TAGS, "Tags": [{"Key": "a", "Value": "b"}]}),
    ("sagemaker", "delete_tags", {**TAGS, "TagKeys": ["a"]}),
    ("application-autoscaling", "describe_scalable_targets", {"ServiceNamespace": "sagemaker"}),
    ("application-autoscaling", "describe_scaling_policies", VARIANT),
    ("application-autoscaling", "describe_scheduled_actions", VARIANT),
    ("application-autoscaling", "register_scalable_target", VARIANT),
    ("application-autoscaling", "deregister_scalable_target", VARIANT),
    ("application-autoscaling", "put_scaling_policy", {**VARIANT, "PolicyName": "p"}),
    ("application-autoscaling", "delete_scaling_policy", {**VARIANT, "PolicyName": "p"}),
    ("application-autoscaling", "put_scheduled_action", {**VARIANT, "ScheduledActionName": "a"}),
    ("application-autoscaling", "delete_scheduled_action", {**VARIANT, "ScheduledActionName": "a"}),
    ("ssm", "get_parameter", PARAMETER),
    ("ssm", "put_parameter", {**PARAMETER, "Value": "v"}),
    ("ssm", "delete_parameter", PARAMETER),
    ("cloudformation", "describe_stacks", {"StackName": "s"}),
    ("cloudformation", "list_stack_resources", {"StackName": "s"}),
    ("lambda", "invoke", {"FunctionName": "f"}),
]
#: How the services say that there were too many requests, and that another one is at work.
THROTTLED = {
    "cloudformation": (400, "Throttling"),
    "lambda": (429, "TooManyRequestsException"),
}
BUSY = {"ssm": "TooManyUpdates", "application-autoscaling": "ConcurrentUpdateException"}


def answer(request: Any, service: str, status: int, code: str) -> AWSResponse:
    """An answer of a service in its protocol; without a code, an empty one."""
    headers = HTTPHeaders()
    body = f'{{"__type": "{code}", "message": "Rate exceeded"}}' if code else "{}"
    if service == "cloudformation":
        error = f"<Error><Code>{code}</Code><Message>Rate exceeded</Message></Error>"
        results = "<DescribeStacksResult/><ListStackResourcesResult/>"
        body = f"<ErrorResponse>{error}</ErrorResponse>" if code else f"<R>{results}</R>"
    if code:
        headers["x-amzn-errortype"] = code
    raw = SimpleNamespace(stream=lambda: iter([body.encode()]), read=io.BytesIO(body.encode()).read)
    return AWSResponse(request.url, status, headers, raw)


def client_with_faults(service: str, times: int, status: int, code: str, seen: list[Any]) -> Any:
    """A client whose first calls get an error."""
    client = retries.make_client(service)

    def intercept(request: Any, **_: object) -> AWSResponse:
        seen.append(request)
        fails = len(seen) <= times
        return answer(request, service, status if fails else 200, code if fails else "")

    client.meta.events.register("before-send", intercept)
    return client


@pytest.mark.parametrize(("service", "operation", "request_"), CALLS)
def test_throttled_call_succeeds(
    service: str, operation: str, request_: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven refusals in a row, with growing pauses, do not fail a deployment."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    seen: list[Any] = []
    status, code = THROTTLED.get(service, (400, "ThrottlingException"))
    client = client_with_faults(service, 7, status, code, seen)
    getattr(client, operation)(**request_)
    assert (len(seen), len(pauses)) == (8, 7)


@pytest.mark.parametrize("service", BUSY)
def test_call_waits_for_another_one(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lambda may deliver an event twice, and the second run writes at the same time."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    seen: list[Any] = []
    client = client_with_faults(service, 2, 400, BUSY[service], seen)
    if service == "ssm":
        scaling.call(client.put_parameter, **PARAMETER, Value="v", Overwrite=True)
    else:
        scaling.call(client.register_scalable_target, **VARIANT)
    assert len(seen) == 3
