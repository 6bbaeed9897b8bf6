"""``verify_update`` on an AWS whose UpdateEndpoint silently returns to the old configuration."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from moto.sagemaker.responses import SageMakerResponse
from stack_view import StackView
from update_check_app import synthesize

from cdk_rehearse import SimulatedAccount

BUDGET_MINUTES = 1
pytestmark = [pytest.mark.usefixtures("budget")]

STACK = "Checked"
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def assemblies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(tmp_path_factory.mktemp("assemblies"))


@pytest.fixture
def deploy(aws: SimulatedAccount, assemblies: Path) -> Callable[[str], StackView]:
    """Deploys states to a new stack."""
    name = f"Checked{next(_NUMBERS)}"

    def deploy(state: str) -> StackView:
        aws.deploy(assemblies / state, STACK, stack_name=name)
        return StackView(aws, name)

    return deploy


@contextmanager
def updates_that_return() -> Iterator[None]:
    """The first update succeeds for its caller, and leaves the endpoint on the old configuration."""
    update: Callable[[Any], Any] = SageMakerResponse.update_endpoint  # type: ignore[attr-defined] # of loopback
    returned: list[bool] = []

    def update_and_return(response: Any) -> Any:
        endpoints = response.sagemaker_backend.endpoints
        before = {name: each.endpoint_config_name for name, each in endpoints.items()}
        answer = update(response)
        if not returned:
            returned.append(True)
            for name, config in before.items():
                endpoints[name].endpoint_config_name = config
        return answer

    with mock.patch.object(SageMakerResponse, "update_endpoint", update_and_return):
        yield


def config_in_use_exists(view: StackView) -> bool:
    return view.exists("config", f"endpoint-config/{view.endpoint('Name')['EndpointConfigName']}")


def test_update_is_verified(deploy: Callable[[str], StackView]) -> None:
    """An update that SageMaker keeps passes, back and forth, and deleting the stack leaves only the log."""
    view = deploy("first")
    assert view.stack.status == "CREATE_COMPLETE", view.stack.reason
    configs = [view.endpoint("Name")["EndpointConfigName"]]
    for state in ("second", "first"):
        assert deploy(state).stack.status == "UPDATE_COMPLETE", view.stack.reason
        configs.append(view.endpoint("Name")["EndpointConfigName"])
    assert len(set(configs)) == 3
    assert view.aws.destroy(view.name).status == "DELETE_COMPLETE"
    assert view.leftovers() == {"log-group"}


def test_update_that_silently_returns_fails(deploy: Callable[[str], StackView]) -> None:
    """CloudFormation rolls back, says why, and keeps the configuration that the endpoint runs."""
    view = deploy("first")
    before = view.endpoint("Name")["EndpointConfigName"]
    with updates_that_return():
        deploy("second")
    assert view.stack.status == "UPDATE_ROLLBACK_COMPLETE", view.stack.reason
    assert f"got {before} (InService); SageMaker did not keep the update" in view.stack.reason
    assert view.endpoint("Name")["EndpointConfigName"] == before
    assert config_in_use_exists(view)
    assert deploy("second").stack.status == "UPDATE_COMPLETE"
    assert view.endpoint("Name")["EndpointConfigName"] != before


def test_without_the_check_the_deployment_counts_as_a_success(deploy: Callable[[str], StackView]) -> None:
    """Without the check, the cleanup tries to delete the configuration in use, which the account rejects."""
    view = deploy("first_unverified")
    with updates_that_return():
        deploy("second_unverified")
    assert view.stack.status == "UPDATE_COMPLETE"
    rejected = [event for event in view.stack.events if event.status == "DELETE_FAILED"]
    assert {event.type for event in rejected} >= {"AWS::SageMaker::EndpointConfig"}
