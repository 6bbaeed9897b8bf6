"""What AWS observes of endpoints over time and the simulated account does not: failures, updates,
activities.

A test sets what the account has observed. Each is checked against botocore's service model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import botocore.session
from botocore.model import Shape

from cdk_rehearse.moto_account import application_autoscaling, sagemaker
from cdk_rehearse.moto_account.calls import Call


@dataclass
class Observed:
    """Members of DescribeEndpoint by endpoint, and scaling activities by resource ID,
    newest first.
    """

    endpoints: dict[str, dict[str, Any]] = field(default_factory=dict)
    activities: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @contextmanager
    def answered(self) -> Iterator[Observed]:
        """Answer with what was observed, while the context is open."""
        with (
            sagemaker.DESCRIBE_ENDPOINT.answered_by(self._describe),
            application_autoscaling.DESCRIBE_SCALING_ACTIVITIES.replaced_by(
                lambda response: self._activities(json.loads(response.body))
            ),
        ):
            yield self

    def _describe(self, call: Call) -> Mapping[str, Any]:
        observed = self.endpoints.get(call.members["EndpointName"], {})
        return {**call.simulated(), **_checked("sagemaker", "DescribeEndpoint", observed)}

    def _activities(self, wanted: dict[str, Any]) -> str:
        found = self.activities.get(wanted["ResourceId"], [])[: wanted.get("MaxResults", 50)]
        answer = {"ScalingActivities": found}
        checked = _checked("application-autoscaling", "DescribeScalingActivities", answer)
        return json.dumps(checked, default=lambda moment: moment.timestamp())


def _checked(service: str, operation: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer if the service's model has all of its members."""
    shape = (
        botocore.session.get_session()
        .get_service_model(service)
        .operation_model(operation)
        .output_shape
    )
    assert shape is not None
    _expect_known(answer, shape, operation)
    return answer


def _expect_known(value: Any, shape: Shape, path: str) -> None:
    shape_: Any = shape
    if shape.type_name == "structure":
        assert value.keys() <= shape_.members.keys(), (
            f"{path}: {value.keys() - shape_.members.keys()}"
        )
        for name, each in value.items():
            _expect_known(each, shape_.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for each in value:
            _expect_known(each, shape_.member, f"{path}[]")
    elif shape.type_name == "string" and shape_.enum:
        assert value in shape_.enum, f"{path}: {value} is none of {shape_.enum}"
