"""``verify_responses`` on a loopback AWS whose endpoints answer as the test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from moto.sagemakerruntime.responses import SageMakerRuntimeResponse
from verification_app import STACK, synthesize

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.stacks.stack import Stack
from constructs_triton_client.wire import decode_request, encode_response

BUDGET_MINUTES = 1


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(tmp_path_factory.mktemp("assemblies"))


class Models:
    """Answers in place of the containers: adds a constant to ``x``."""

    def __init__(self) -> None:
        self.constant = 1.0
        self.calls: list[tuple[str, str | None]] = []

    def answer(self, response: Any) -> Any:
        endpoint = response.path.split("/")[2]
        self.calls.append((endpoint, response.headers.get("X-Amzn-SageMaker-Target-Model")))
        request = decode_request(response.body, response.headers["Content-Type"])
        encoded = encode_response({"y": request.inputs["x"] + np.float32(self.constant)})
        return 200, {"Content-Type": encoded.content_type}, encoded.body


def _answering(models: Models) -> Callable[[Any], Any]:
    # A function, which moto finds among the methods of its class.
    def invoke_endpoint(response: Any) -> Any:
        return models.answer(response)

    return invoke_endpoint


@pytest.fixture(scope="module")
def models() -> Models:
    return Models()


@pytest.fixture(scope="module")
def aws(models: Models) -> Iterator[SimulatedAccount]:
    with (
        mock.patch.object(SageMakerRuntimeResponse, "use_raw_body", True),
        mock.patch.object(SageMakerRuntimeResponse, "invoke_endpoint", _answering(models)),
        SimulatedAccount() as account,
    ):
        account.bootstrap()
        yield account


@pytest.fixture(scope="module")
def deploy(aws: SimulatedAccount, assemblies: Path) -> Callable[[str], Stack]:
    return lambda state: aws.deploy(assemblies / state, STACK)


def test_responses_are_verified_and_a_wrong_one_rolls_back(
    deploy: Callable[[str], Stack], models: Models
) -> None:
    """Equal responses pass; a wrong one fails the update with the output;
    the rollback sends nothing.
    """
    stack = deploy("first")
    assert stack.status == "CREATE_COMPLETE", stack.reason
    assert {endpoint for endpoint, _ in models.calls} == {"single", "many"}
    (target,) = {target for endpoint, target in models.calls if endpoint == "many"}
    assert target is not None
    assert target.startswith("alpha-")
    models.calls.clear()
    models.constant = 9.0
    stack = deploy("second")
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    reasons = " ".join(event.reason for event in stack.events)
    assert (
        "request ones: output y: 4 of 4 values differ, the first at 0: must be 3.0, got 10.0"
        in reasons
    )
    assert len(models.calls) <= 2
    models.constant = 2.0
    assert deploy("second").status == "UPDATE_COMPLETE"
