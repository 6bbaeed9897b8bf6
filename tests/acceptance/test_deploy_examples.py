"""Each app of the project is deployed twice and destroyed on a loopback AWS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from deploy_twice import (
    deployable_stacks,
    live_through_deployments,
    put_what_exists_before,
)
from parts import APPS

from cdk_rehearse import SimulatedAccount
from constructs_triton_core.cloud_assembly.assembly import Assembly

BUDGET_MINUTES = 3

ANYWHERE = "aws://unknown-account/unknown-region"
STAGING, PRODUCTION = "aws://111111111111/eu-west-1", "aws://222222222222/eu-west-1"
#: Where an app's stacks belong, if they are bound to an environment.
BOUND = {"pipelines_stage": [STAGING, PRODUCTION]}
CASES = sorted((where, name) for name in APPS for where in BOUND.get(name, [ANYWHERE]))


@pytest.fixture(scope="module")
def assemblies(example_apps: Path) -> Path:
    """Every app, synthesized."""
    return example_apps / "before" / "assemblies"


@pytest.fixture(scope="module")
def account_in() -> Iterator[Callable[[str], SimulatedAccount]]:
    """Starts the account of an environment and ends the previous one:
    a process has one at a time.
    """
    current: dict[str, SimulatedAccount] = {}
    with ExitStack() as running:

        def account_in(environment: str) -> SimulatedAccount:
            if environment not in current:
                current.clear()
                running.close()
                place = (
                    () if environment == ANYWHERE else environment.removeprefix("aws://").split("/")
                )
                current[environment] = running.enter_context(SimulatedAccount(*place))
                current[environment].bootstrap()
            return current[environment]

        yield account_in


def stacks_in(assembly: Assembly, environment: str) -> list[tuple[Assembly, str]]:
    """The stacks that belong to an environment."""
    return [
        each for each in deployable_stacks(assembly) if each[0].environment(each[1]) == environment
    ]


@pytest.mark.parametrize(("environment", "name"), CASES, ids=[" ".join(each) for each in CASES])
def test_app_is_deployed_twice_and_destroyed(
    account_in: Callable[[str], SimulatedAccount], environment: str, name: str, assemblies: Path
) -> None:
    """The app deploys, a second deployment changes nothing, and destroy deletes everything."""
    aws = account_in(environment)
    put_what_exists_before(aws, assemblies / name)
    stacks = stacks_in(Assembly(assemblies / name), environment)
    assert stacks != []
    live_through_deployments(aws, stacks)


def test_every_stack_is_deployed(assemblies: Path) -> None:
    """Every stack of every app is deployed by these tests, in one of its environments."""
    for name in APPS:
        stacks = list(deployable_stacks(Assembly(assemblies / name)))
        deployed = [
            each
            for where in BOUND.get(name, [ANYWHERE])
            for each in stacks_in(Assembly(assemblies / name), where)
        ]
        assert len(stacks) == len(deployed) > 0
