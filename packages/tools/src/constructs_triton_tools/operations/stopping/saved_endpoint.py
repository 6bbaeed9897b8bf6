"""The file of a stopped endpoint: the requests that create the endpoint and its scaling again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.regular_files import read_json
from constructs_triton_core.untrusted.written_files import write_whole

#: ``stopping`` and ``starting`` are written before the first change in AWS, the others after the
#: last one.
STOPPING = "stopping"
STOPPED = "stopped"
STARTING = "starting"
STARTED = "started"
_PHASES = (STOPPING, STOPPED, STARTING, STARTED)
_OPERATIONS = {
    "create_endpoint": ("sagemaker", "CreateEndpoint"),
    "capacities": ("sagemaker", "UpdateEndpointWeightsAndCapacities"),
    "scalable_targets": ("application-autoscaling", "RegisterScalableTarget"),
    "scaling_policies": ("application-autoscaling", "PutScalingPolicy"),
    "scheduled_actions": ("application-autoscaling", "PutScheduledAction"),
}
Request = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SavedEndpoint:
    """An endpoint as it was when it was stopped.

    Args:
        phase: What happened last: ``stopping``, ``stopped``, ``starting`` or ``started``.
        region: Region of the endpoint.
        stack: CloudFormation stack of the endpoint; ``None`` if there is none.
        create_endpoint: Request of ``CreateEndpoint``.
        capacities: Request of ``UpdateEndpointWeightsAndCapacities``, with every production
            variant.
        scalable_targets: Requests of ``RegisterScalableTarget``.
        scaling_policies: Requests of ``PutScalingPolicy``.
        scheduled_actions: Requests of ``PutScheduledAction``.
        step_policy_alarms: Names of the alarms that call each step scaling policy, by the policy's
            old ARN.
    """

    phase: str
    region: str
    stack: str | None
    create_endpoint: Request
    capacities: Request
    scalable_targets: Sequence[Request]
    scaling_policies: Sequence[Request]
    scheduled_actions: Sequence[Request]
    step_policy_alarms: Mapping[str, Sequence[str]]

    @property
    def name(self) -> str:
        """Name of the endpoint."""
        return str(self.create_endpoint["EndpointName"])

    @property
    def endpoint_config(self) -> str:
        """Name of the endpoint's configuration."""
        return str(self.create_endpoint["EndpointConfigName"])

    def require(self, path: Path, name: str, region: str) -> None:
        """Check that the file is the one of an endpoint."""
        if self.name != name:
            raise InvalidValueError(
                f"{path}: is the file of endpoint {self.name}, "
                f"got {name}; choose another file with --file"
            )
        if self.region != region:
            raise InvalidValueError(
                f"{path}: endpoint {name} is in {self.region}, "
                f"got {region}; add --region {self.region}"
            )


def write_saved(path: Path, saved: SavedEndpoint) -> None:
    """Replace the file. A failure leaves the old file as it was."""
    # The endpoint is deleted next, so the file must survive a power failure.
    write_whole(path, json.dumps(asdict(saved), indent=2) + "\n", is_synced=True)


def read_saved(path: Path) -> SavedEndpoint:
    """Read a file and check that AWS's operations accept its requests."""
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise InvalidValueError(
            f"{path}: does not exist; "
            "give the file that `constructs-triton stop` wrote, with --file"
        ) from None
    except ValueError as error:
        raise _not_a_file_of_ours(path, str(error)) from None
    names = {field.name for field in fields(SavedEndpoint)}
    if not isinstance(content, dict) or content.keys() != names:
        raise _not_a_file_of_ours(
            path, f"must be an object with the members {', '.join(sorted(names))}"
        )
    problem = next(_problems(content), None)
    if problem:
        raise _not_a_file_of_ours(path, problem)
    return SavedEndpoint(**content)


def _not_a_file_of_ours(path: Path, problem: str) -> InvalidValueError:
    return InvalidValueError(
        f"{path}: {problem}; give a file that `constructs-triton stop` wrote, with --file"
    )


def _problems(content: Mapping[str, Any]) -> Iterator[str]:
    if content["phase"] not in _PHASES:
        yield f"phase: must be one of {', '.join(_PHASES)}, got {content['phase']!r}"
    if not isinstance(content["region"], str):
        yield f"region: must be a string, got {content['region']!r}"
    if not isinstance(content["stack"], str | None):
        yield f"stack: must be a string or null, got {content['stack']!r}"
    alarms = content["step_policy_alarms"]
    if not isinstance(alarms, dict) or not all(
        isinstance(alarm, list) for alarm in alarms.values()
    ):
        yield "step_policy_alarms: must be an object of arrays"
    for member in _OPERATIONS:
        yield from _problems_of_requests(member, content[member])


@cache
def _service_models() -> dict[str, Any]:
    from botocore.session import get_session

    session = get_session()
    return {service: session.get_service_model(service) for service, _ in _OPERATIONS.values()}


def _problems_of_requests(member: str, value: Any) -> Iterator[str]:
    """Compare requests with botocore's service model, before the first of them is sent."""
    from botocore.exceptions import ParamValidationError
    from botocore.validate import validate_parameters

    is_list = member not in ("create_endpoint", "capacities")
    if is_list and not isinstance(value, list):
        yield f"{member}: must be an array"
        return
    service, operation = _OPERATIONS[member]
    shape = _service_models()[service].operation_model(operation).input_shape
    for index, request in enumerate(value if is_list else [value]):
        where = f"{member}[{index}]" if is_list else member
        try:
            validate_parameters(request, shape)
        except ParamValidationError as error:
            yield f"{where}: {' '.join(str(error).split())}"
