"""Entry point of the function that updates an endpoint which existed before the stack.

``Custom::TritonAdoptedEndpoint`` takes the place and the properties of
``AWS::SageMaker::Endpoint``:

create
    Checks that the update harms no caller, and records what the endpoint is now. Then it calls
    ``UpdateEndpoint`` and waits. Nothing is changed before all checks have passed.
update
    Calls ``UpdateEndpoint`` if the configuration changes, and waits. It fails if SageMaker did not
    keep the update, so that CloudFormation rolls back. A rollback is an update to the old
    configuration.
delete
    Never deletes the endpoint. It returns it to the configuration that it had before, with its
    scaling and tags: after a deployment that failed, or with ``RemovalPolicy.DESTROY``.
    CloudFormation deletes the configuration of the stack after that. An endpoint that was given a
    third configuration by hand keeps it.

An update may take longer than a function may run, so the function invokes itself for the rest. Each
step is safe to repeat.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError

from ..continuation import continue_in_another_run
from ..response import CustomResourceError, Event, Response, handle_request
from ..scaling import Scaling, call
from .checks import is_missing, missing_parts, obstacles
from .claims import Claim, Claims
from .update import KEEP_COUNTS, Adopted

_RESERVED_SECONDS = 60.0
"""Kept of a run's time, to invoke the function again or to send the response."""
_TOO_LATE = (
    "is still being updated after 45 minutes, and CloudFormation waits for an hour; "
    "shorten the waits of deployment"
)


def handler(event: Event, context: Any) -> None:
    """Handle one request of CloudFormation: send the response, or continue in another run."""
    handle_request(event, context, lambda event, physical_id: _handle(event, context, physical_id))


def _handle(event: Event, context: Any, physical_id: str) -> Response | None:
    name = event["ResourceProperties"]["EndpointName"]
    state = event.get("Continuation") or {"StartedAt": time.time(), "Sent": ""}
    adopted = Adopted(name, lambda: _is_time_up(context), state["Sent"])
    try:
        if _STEPS[event["RequestType"]](event, adopted):
            return _response(event, adopted, physical_id)
        state = {**state, "Sent": adopted.sent}
        continue_in_another_run(event, context, state, state["StartedAt"], _TOO_LATE)
    except CustomResourceError as error:
        raise CustomResourceError(f"endpoint {name}: {error}") from error
    return None


def _is_time_up(context: Any) -> bool:
    return bool(context.get_remaining_time_in_millis() / 1000 < _RESERVED_SECONDS)


def _response(event: Event, adopted: Adopted, physical_id: str) -> Response:
    if event["RequestType"] == "Delete":
        return Response(physical_id)
    arn = adopted.describe()["EndpointArn"]
    data = {
        "EndpointName": adopted.name,
        "EndpointArn": arn,
        "PreviousPolicies": _policies(event, adopted),
    }
    # The ARN has the name in lower case; scaling is registered by the name as it is.
    return Response(f"{arn.rpartition('/')[0]}/{adopted.name}", data)


def _policies(event: Event, adopted: Adopted) -> str:
    """The policies that those of the stack replace;
    empty if another construct of the stack had it before.
    """
    claims = Claims(adopted.name).read()
    if not claims or not claims[0].is_of(event):
        return ""
    found = claims[0].scaling
    return json.dumps(
        [[each["ResourceId"], one["PolicyName"]] for each in found for one in each["Policies"]]
    )


# Create.


def _adopt(event: Event, adopted: Adopted) -> bool:
    properties, claims = event["ResourceProperties"], Claims(adopted.name)
    found = claims.read_for(event["StackId"])
    if not any(each.is_of(event) for each in found):
        endpoint = _existing(adopted)
        if endpoint is None:
            return False
        found = claims.add(_claim(event, adopted, endpoint), event)
    claim = next(each for each in found if each.is_of(event))
    config = properties["EndpointConfigName"]
    try:
        is_done = adopted.bring_to(config, properties, deregisters=True)
    except Exception:
        adopted.restore_scaling(claim.scaling, claim.endpoint_config_name)
        raise
    if is_done:
        adopted.restore_scaling(claim.scaling, config)
        _set_tags(adopted, _tags_of(properties), {})
    return is_done


def _existing(adopted: Adopted) -> dict[str, Any] | None:
    try:
        return adopted.settled()
    except ClientError as error:
        if not is_missing(error):
            raise
        raise CustomResourceError(
            "does not exist in this account and Region; correct endpoint_name, or remove "
            "adopt_existing to create it"
        ) from error


def _claim(event: Event, adopted: Adopted, endpoint: Mapping[str, Any]) -> Claim:
    """Check that the endpoint can be adopted, and return what it is now."""
    properties, running = event["ResourceProperties"], endpoint["EndpointConfigName"]
    tags = _tags_of(call(adopted.sagemaker.list_tags, ResourceArn=endpoint["EndpointArn"]))
    found = list(obstacles(adopted.sagemaker, endpoint, tags, properties))
    if found:
        raise CustomResourceError(f"{'; '.join(found)}. Nothing was changed")
    scaling = Scaling()
    saved = [scaling.describe(each) for each in adopted.variant_ids(running)]
    return Claim(
        event["StackId"],
        event["LogicalResourceId"],
        endpoint_config_name=running,
        scaling=[each for each in saved if each is not None],
        tags={name: value for name, value in tags.items() if not name.startswith("aws:")},
    ).asking_for(properties["EndpointConfigName"])


# Update.


def _update(event: Event, adopted: Adopted) -> bool:
    properties, old = event["ResourceProperties"], event["OldResourceProperties"]
    if old["EndpointName"] != adopted.name:
        raise CustomResourceError(
            f"takes the place of {old['EndpointName']}, which would be left without its stack; "
            "keep endpoint_name, and add a construct with another id for this endpoint"
        )
    claims = Claims(adopted.name)
    found = claims.read_for(event["StackId"])
    config = properties["EndpointConfigName"]
    asked = [each.asking_for(config) if each.is_of(event) else each for each in found]
    if asked != found:
        claims.write(asked)
    if not adopted.bring_to(config, properties):
        return False
    previous = {name: value for each in asked[:1] for name, value in each.tags.items()}
    before = _tags_of(old)
    kept = {name: value for name, value in previous.items() if name in before}
    _set_tags(adopted, {**kept, **_tags_of(properties)}, before)
    return True


# Delete.


def _release(event: Event, adopted: Adopted) -> bool:
    claims = Claims(adopted.name)
    found = claims.read()
    numbers = [number for number, each in enumerate(found) if each.is_of(event)]
    if not numbers:
        return True  # its creation failed before it changed anything
    mine = found.pop(numbers[0])
    if numbers[0] < len(found):
        # Another construct of the stack has adopted the endpoint since, and returns to what this
        # one found.
        successor = found[numbers[0]]
        found[numbers[0]] = replace(
            mine, logical_id=successor.logical_id, configs=successor.configs
        )
    elif not _return(event, adopted, mine):
        return False
    claims.write(found)
    return True


def _return(event: Event, adopted: Adopted, claim: Claim) -> bool:
    """Return the endpoint to its previous state, unless it was deleted or changed by hand."""
    try:
        endpoint = adopted.settled()
    except ClientError as error:
        if is_missing(error):
            return True
        raise
    if endpoint is None:
        return False
    config = endpoint["EndpointConfigName"]
    if config in claim.configs:
        config = claim.endpoint_config_name
        _expect_returnable(adopted, config)
        if not adopted.bring_to(config, KEEP_COUNTS, deregisters=True):
            return False
    adopted.restore_scaling(claim.scaling, config)
    _set_tags(adopted, claim.tags, _tags_of(event["ResourceProperties"]))
    return True


def _expect_returnable(adopted: Adopted, config: str) -> None:
    gone = missing_parts(adopted.sagemaker, config)
    if gone:
        raise CustomResourceError(
            f"cannot return to what it was before the stack, because {' and '.join(gone)} no "
            "longer exist. Create them again with the same names, or delete the endpoint with `aws "
            f"sagemaker delete-endpoint --endpoint-name {adopted.name}`, "
            "then delete the stack again"
        )


# Tags.


def _tags_of(properties: Mapping[str, Any]) -> dict[str, str]:
    return {each["Key"]: each["Value"] for each in properties.get("Tags") or []}


def _set_tags(adopted: Adopted, wanted: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Set tags, and remove those of ``before`` that are not wanted any more; others stay."""
    arn = adopted.describe()["EndpointArn"]
    removed = sorted(before.keys() - wanted.keys())
    if removed:
        call(adopted.sagemaker.delete_tags, ResourceArn=arn, TagKeys=removed)
    if wanted:
        tags = [{"Key": name, "Value": value} for name, value in wanted.items()]
        call(adopted.sagemaker.add_tags, ResourceArn=arn, Tags=tags)


_STEPS: dict[str, Callable[[Event, Adopted], bool]] = {
    "Create": _adopt,
    "Update": _update,
    "Delete": _release,
}
