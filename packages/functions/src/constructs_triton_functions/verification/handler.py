"""Entry point of the function that sends recorded requests to an endpoint after a deployment.

A wrong response fails the deployment, so that CloudFormation rolls it back. While it rolls back,
nothing is sent: the requests of the old state must not make the rollback fail.

The requests are sent one after the other. One that is throttled, or whose model is still loading,
is sent up to ten times with pauses; other errors are final.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from ..response import CustomResourceError, Event, Response, handle_request
from ..retries import call_with_retries, make_client, read_object
from .comparison import differences

_LIMIT_SECONDS = 12 * 60
"""How long the requests may take together. The function's timeout is longer."""
_ATTEMPTS = 10
_PAUSE_SECONDS = 15.0
_TEMPORARY = {
    "ThrottlingException",
    "ModelNotReadyException",
    "ServiceUnavailable",
    "InternalDependencyException",
}
_SHOWN = 5


def handler(event: Event, context: Any) -> None:
    """Handle one request of CloudFormation and send the response."""
    handle_request(event, context, _verify)


def _verify(event: Event, physical_id: str) -> Response:
    if event["RequestType"] == "Delete":
        return Response(physical_id)
    if not _is_rolling_back(event["StackId"]):
        _expect_equal(event["ResourceProperties"])
    return Response(event.get("PhysicalResourceId") or event["LogicalResourceId"])


def _is_rolling_back(stack_id: str) -> bool:
    cloudformation = make_client("cloudformation")
    answer = call_with_retries(
        lambda: cloudformation.describe_stacks(StackName=stack_id), _is_denied
    )
    return "ROLLBACK" in answer["Stacks"][0]["StackStatus"]


def _expect_equal(properties: Mapping[str, Any]) -> None:
    found = list(_differences(properties))
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise CustomResourceError(
            f"endpoint {properties['EndpointName']}: responses differ from the recorded ones: "
            f"{'; '.join(found[:_SHOWN])}{more}; compare with `constructs-triton verify`, then fix "
            "the model or record the requests again"
        )


def _differences(properties: Mapping[str, Any]) -> Iterator[str]:
    deadline = time.monotonic() + _LIMIT_SECONDS
    runtime = _runtime()
    for request in _requests(properties):
        for variant in properties["Variants"]:
            name = f"request {request['name']}" + (
                f" to {variant}" if len(properties["Variants"]) > 1 else ""
            )
            options = {"TargetVariant": variant} if len(properties["Variants"]) > 1 else {}
            target = request.get("target_model")
            if target is not None:
                options["TargetModel"] = properties["TargetModels"].get(target, target)
            answer = _invoke(runtime, properties["EndpointName"], request, options, deadline)
            if isinstance(answer, str):
                yield f"{name}: {answer}"
                continue
            body, content_type = answer
            yield from (
                f"{name}: {each}" for each in differences(body, content_type, request["expected"])
            )


def _requests(properties: Mapping[str, Any]) -> list[dict[str, Any]]:
    s3 = make_client("s3")
    body, _ = call_with_retries(
        lambda: read_object(s3, Bucket=properties["RequestsBucket"], Key=properties["RequestsKey"]),
        _is_denied,
    )
    requests: list[dict[str, Any]] = json.loads(body)["requests"]
    return requests


def _runtime() -> Any:
    # One attempt of the SDK: the retries here have pauses in which a model can load.
    config = Config(read_timeout=70, connect_timeout=5, retries={"total_max_attempts": 1})
    make: Any = boto3.client
    return make("sagemaker-runtime", config=config)


def _invoke(
    runtime: Any,
    endpoint: str,
    request: Mapping[str, Any],
    options: Mapping[str, str],
    deadline: float,
) -> tuple[bytes, str] | str:
    """Return the body of the response and its content type, or the reason why there is none."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            answer = call_with_retries(
                lambda: runtime.invoke_endpoint(
                    EndpointName=endpoint,
                    ContentType=request["content_type"],
                    Body=base64.b64decode(request["body"]),
                    **options,
                ),
                _is_denied,
            )
            return answer["Body"].read(), answer.get("ContentType", "")
        except ClientError as error:
            is_final = error.response["Error"]["Code"] not in _TEMPORARY or attempt == _ATTEMPTS
            if is_final or time.monotonic() + _PAUSE_SECONDS > deadline:
                return _reason(error)
        except Exception as error:  # a broken connection is a failed request, not a failed function
            return f"{type(error).__name__}: {error}"
        time.sleep(_PAUSE_SECONDS)
    raise AssertionError("the last attempt returns")


def _reason(error: ClientError) -> str:
    response: Any = error.response
    message = response.get("OriginalMessage") or response["Error"].get("Message", "")
    return f"{response['Error']['Code']}: {message}"


def _is_denied(error: ClientError) -> bool:
    """The stack has created the function's policy seconds ago."""
    return error.response["Error"]["Code"] in ("AccessDeniedException", "AccessDenied")
