"""The guard in a simulated stack: failures anywhere, both modes of rollback,
repeated and late requests.
"""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from guard_account import ENDPOINT, Account
from guard_stack import Behaviour, Resource, SimulatedStack, Template, target_id

from constructs_triton_functions import endpoint_state, scaling
from constructs_triton_functions.scaling_guard import (
    GATE_TYPE,
    POLICY_TYPE,
    SWEEPER_TYPE,
    TARGET_TYPE,
    record,
    stack,
)

SEEDS = range(600)
SMALL, LARGE = "ml.g5.xlarge", "ml.g5.12xlarge"


@dataclass(frozen=True)
class State:
    """What a template declares. ``scaled`` maps variants to the names of their policies."""

    instance_types: Mapping[str, str]
    scaled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_capacity: int = 4
    schedules: tuple[str, ...] = ("night",)
    version: int = 0
    """Changes resources that have nothing to do with scaling."""


_SMALL = State({"blue": SMALL, "green": SMALL}, {"blue": ("gpu", "calls"), "green": ("gpu",)})
STATES = {
    "small": _SMALL,
    "large blue": replace(_SMALL, instance_types={"blue": LARGE, "green": SMALL}, max_capacity=9),
    "both large": replace(_SMALL, instance_types={"blue": LARGE, "green": LARGE}, schedules=()),
    "blue only": State({"blue": SMALL}, {"blue": ("gpu", "calls")}),
    "large green unscaled": State({"blue": SMALL, "green": LARGE}, {"blue": ("gpu",)}),
    "other names": State({"red": LARGE, "blue": LARGE}, {"red": ("gpu",), "blue": ("calls",)}),
    "unscaled": State({"blue": SMALL, "green": SMALL}),
}


def template_of(state: State) -> Template:
    """The resources of a stack with one guarded endpoint, and two others that may fail."""
    guarded = {"EndpointLogicalId": "Endpoint", "InstanceTypes": dict(state.instance_types)}
    resources = {
        "Sweeper": Resource(SWEEPER_TYPE, guarded),
        "Gate": Resource(GATE_TYPE, {**guarded, "SweeperId": {"Ref": "Sweeper"}}, ("Sweeper",)),
        "Endpoint": Resource("Endpoint", {"InstanceTypes": dict(state.instance_types)}, ("Gate",)),
        "Alone": Resource("Other", {"Version": state.version}),
        "Later": Resource("Other", {"Version": state.version}, ("Endpoint",)),
    }
    for variant, policies in state.scaled.items():
        instance_type = {"InstanceType": state.instance_types[variant]}
        resources[f"{variant}Target"] = Resource(
            TARGET_TYPE, _target(variant, state) | instance_type, ("Endpoint",)
        )
        for policy in policies:
            properties = _policy(variant, policy) | instance_type
            resources[f"{variant}{policy}"] = Resource(
                POLICY_TYPE, properties, (f"{variant}Target",)
            )
    return resources


def _target(variant: str, state: State) -> dict[str, Any]:
    night = {
        "Schedule": "cron(0 1 * * ? *)",
        "ScalableTargetAction": {"MinCapacity": "1", "MaxCapacity": "2"},
    }
    return {
        "ResourceId": f"endpoint/{ENDPOINT}/variant/{variant}",
        "MinCapacity": "1",
        "MaxCapacity": str(state.max_capacity),
        "ScheduledActions": [{"ScheduledActionName": name, **night} for name in state.schedules],
    }


def _policy(variant: str, name: str) -> dict[str, Any]:
    return {
        "ScalingTargetId": target_id(variant),
        "PolicyName": name,
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": {"TargetValue": "60"},
    }


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    account = Account()
    for module in (record, scaling, stack, endpoint_state):
        monkeypatch.setattr(
            module, "make_client", lambda service, **_: ACCOUNTS[-1].client(service)
        )
    logging.disable(logging.CRITICAL)
    ACCOUNTS.append(account)
    yield account
    ACCOUNTS.clear()
    logging.disable(logging.NOTSET)


ACCOUNTS: list[Account] = []
"""The account that the function's clients reach is the last one."""


def deployed(state: str, seed: int) -> SimulatedStack:
    """A stack in one of the states, in an account of its own."""
    ACCOUNTS.append(Account())
    simulated = SimulatedStack(ACCOUNTS[-1], random.Random(seed))
    assert simulated.deploy(template_of(STATES[state]))
    return simulated


def declared(state: State) -> Any:
    """The scaling that a state declares, as an undisturbed deployment of only
    this state registers it.
    """
    name = next(each for each, known in STATES.items() if replace(state, version=0) == known)
    if name not in DECLARED:
        DECLARED[name] = deployed(name, 0).account.scaling()
        ACCOUNTS.pop()
    return DECLARED[name]


DECLARED: dict[str, Any] = {}


def check_deployment(simulated: SimulatedStack, state: State, behaviour: Behaviour) -> bool:
    """Deploy, and check the scaling afterwards."""
    before, types = simulated.account.scaling(), dict(simulated.account.instance_types)
    succeeded = simulated.deploy(template_of(state), behaviour)
    assert simulated.account.scaling() == (declared(state) if succeeded else before), behaviour
    assert simulated.account.instance_types == (state.instance_types if succeeded else types)
    # A sweeper whose update failed may leave an empty record, which the next deployment overwrites.
    assert all('"Saved":[]' in each for each in simulated.account.parameters.values()), behaviour
    return succeeded


@pytest.mark.parametrize("rollback_updates_replaced", [True, False])
def test_every_failure_of_every_update(account: Account, rollback_updates_replaced: bool) -> None:
    """For each pair of states and each resource that fails: as declared, or as before."""
    outcomes = []
    for number, (old, new) in enumerate(itertools.permutations(STATES, 2)):
        for failing in (None, *template_of(STATES[new])):
            behaviour = Behaviour(failing, 2, rollback_updates_replaced=rollback_updates_replaced)
            simulated = deployed(old, number)
            outcomes.append(check_deployment(simulated, replace(STATES[new], version=1), behaviour))
            ACCOUNTS.pop()
    assert outcomes.count(True) > 40
    assert outcomes.count(False) > 200


def any_behaviour(chance: random.Random, template: Template) -> Behaviour:
    return Behaviour(
        fails=chance.choice([None, *template]),
        fails_at_call=chance.randrange(18),
        is_killed=chance.random() < 0.3,
        rollback_updates_replaced=chance.random() < 0.5,
        repeats=chance.choice([0, 0.4, 1]),
        cancels=chance.random() < 0.5,
    )


def deploy_at_random(seed: int) -> SimulatedStack:
    """Four deployments in a row, of random states and with random faults."""
    chance = random.Random(seed)
    simulated = deployed(chance.choice(list(STATES)), seed)
    for version in range(1, 5):
        state = replace(STATES[chance.choice(list(STATES))], version=version)
        check_deployment(simulated, state, any_behaviour(chance, template_of(state)))
    return simulated


@pytest.mark.parametrize("hundred", range(0, len(SEEDS), 100))
def test_random_deployments(account: Account, hundred: int) -> None:
    """Whatever goes wrong, scaling is as declared after success, and as before after a rollback."""
    for seed in SEEDS[hundred : hundred + 100]:
        try:
            deploy_at_random(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: deploy_at_random({seed}) replays it") from error


@pytest.mark.parametrize("later", ["large blue", "large green unscaled"])
def test_record_of_an_earlier_deployment_is_not_restored(account: Account, later: str) -> None:
    """A record that a lost cleanup left is ignored when a later deployment is rolled back."""
    for failing, mode in itertools.product(template_of(STATES[later]), (True, False)):
        simulated = deployed("small", 1)
        lost = Behaviour("blueTarget", loses_cleanup=True)
        assert not simulated.deploy(template_of(STATES["large blue"]), lost)
        assert "variant/blue" in "".join(simulated.account.parameters.values())
        assert simulated.deploy(template_of(replace(STATES["unscaled"], version=1)))
        assert simulated.account.scaling() == ({}, {}, {})
        behaviour = Behaviour(failing, rollback_updates_replaced=mode)
        assert not simulated.deploy(template_of(replace(STATES[later], version=2)), behaviour)
        assert simulated.account.scaling() == ({}, {}, {}), behaviour
