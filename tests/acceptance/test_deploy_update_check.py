"""``verify_update`` on an AWS whose UpdateEndpoint silently returns to the old configuration."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from stack_view import StackView
from update_check_app import synthesize

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.behaviour import CALM

BUDGET_MINUTES = 1

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


def test_update_is_verified(deploy: Callable[[str], StackView]) -> None:
    """An update that SageMaker keeps passes, back and forth,
    and deleting the stack leaves only the log.
    """
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
    view.aws.behaviour = replace(CALM, endpoint_update="reverts")
    deploy("second")
    view.aws.behaviour = CALM
    assert view.stack.status == "UPDATE_ROLLBACK_COMPLETE", view.stack.reason
    assert f"got {before} (InService); SageMaker did not keep the update" in view.stack.reason
    assert view.endpoint("Name")["EndpointConfigName"] == before
    assert view.exists("config", f"endpoint-config/{before}")
    assert deploy("second").stack.status == "UPDATE_COMPLETE"
    assert view.endpoint("Name")["EndpointConfigName"] != before
