"""The life of a stack in an unfriendly AWS: created, updated with failures, updated, deleted.

After a successful operation the stack is as declared; after a rollback it is as before. At no
moment does a serving fleet lack a permission or lose instances that scaling added, and nothing in
use is deleted. What fails can be continued, deleted and created again.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from deploy_twice import inventory, put_what_exists_before
from guard_states import STACK, STATES

from cdk_rehearse import Behaviour, SimulatedAccount
from cdk_rehearse.providers import is_custom
from cdk_rehearse.stacks.stack import Stack
from cdk_rehearse.steps import When
from constructs_triton_core.cloud_assembly.assembly import Assembly

Versions = tuple[tuple[Assembly, str], tuple[Assembly, str]]
_FAILURE_RATE = 0.1
_PASSING = (
    "CreationTime",
    "ScalableTargetARN",
    "PolicyARN",
    "ScheduledActionARN",
    "Alarms",
    "RoleARN",
)
_COMPLETE, _ROLLED_BACK = "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"
#: A guard that is added to existing scaling is refused, so no walk goes through a state without it.
_GUARDED = [name for name, state in STATES.items() if state.has_guard]


@dataclass
class Life:
    """One account with the behaviour of a seed."""

    aws: SimulatedAccount
    seed: int
    orders: set[int] = field(default_factory=set)

    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def create(self, stage: Assembly, name: str) -> None:
        """Create a stack. In every third life the first attempt may fail;
        the stack is then deleted.
        """
        if self.chance.random() < 1 / 3:
            status = self.deploy(stage, name, may_fail=True)
            if status == "CREATE_COMPLETE":
                return
            assert status == "ROLLBACK_COMPLETE", status
            self.destroy([stage.stack_name(name)])
        assert self.deploy(stage, name) == "CREATE_COMPLETE", self.reason(stage, name)

    def deploy(self, stage: Assembly, name: str, *, may_fail: bool = False) -> str:
        """Deploy a stack and return its status; a failed rollback is continued."""
        self.aws.behaviour = (
            self._failing(stage, name) if may_fail else Behaviour.unfriendly(self.seed)
        )
        existing = self.aws.stacks.find(stage.stack_name(name))
        seen = 0 if existing is None else len(existing.events)
        stack = self.aws.deploy(stage.directory, name)
        if stack.status == "UPDATE_ROLLBACK_FAILED" and may_fail:
            seen = len(stack.events)
            self.aws.behaviour = Behaviour.unfriendly(self.seed)
            self.aws.deployer.resumed_rollback(stack)()
        self.check(stack, seen)
        return stack.status

    def _failing(self, stage: Assembly, name: str) -> Behaviour:
        """Some changes fail, or a function's response is lost; some rollbacks fail too."""
        behaviour, template = Behaviour.unfriendly(self.seed), stage.template(name)
        if self.chance.random() < 0.2:
            behaviour = replace(behaviour, endpoint_update="fails")
        custom = [each for each, resource in template.resources.items() if is_custom(resource.type)]
        if custom and self.chance.random() < 0.4:
            behaviour = replace(behaviour, failing={self.chance.choice(custom): "after"})
        else:
            behaviour = replace(behaviour, failure_rate=_FAILURE_RATE)
        if self.chance.random() < 0.3:
            restored: When = self.chance.choice(("before", "after"))
            return replace(
                behaviour, failing_restore={self.chance.choice(template.order): restored}
            )
        return behaviour

    def scale(self) -> None:
        """Change the instances of variants with scaling,
        as Application Auto Scaling does on some days.
        """
        scaling, sagemaker = (
            self.aws.client("application-autoscaling"),
            self.aws.client("sagemaker"),
        )
        targets = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
        for target in targets:
            kind, endpoint, _, variant = [*target["ResourceId"].split("/"), "", ""][:4]
            if kind == "endpoint" and self.chance.random() < 0.7:
                count = self.chance.randint(max(target["MinCapacity"], 1), target["MaxCapacity"])
                wanted = {"VariantName": variant, "DesiredInstanceCount": count}
                sagemaker.update_endpoint_weights_and_capacities(
                    EndpointName=endpoint, DesiredWeightsAndCapacities=[wanted]
                )

    def check(self, stack: Stack, seen: int = 0) -> None:
        """Check what holds after every operation."""
        events = stack.events[seen:]
        order = "\n".join(f"{each.logical_id} {each.status}" for each in events)
        self.orders.add(int.from_bytes(hashlib.sha256(order.encode()).digest()[:8]))
        assert self.aws.fleets.losses == []
        assert self.aws.fleets.drops == [], [str(each) for each in self.aws.fleets.drops]
        self.aws.fleets.forget()
        refused = [
            f"{each.logical_id}: {each.reason}" for each in events if each.status == "DELETE_FAILED"
        ]
        assert refused == [], refused
        failed = [
            f"{each.logical_id}: {each.reason}" for each in events if each.status.endswith("FAILED")
        ]
        assert not stack.status.endswith("FAILED"), (stack.status, failed)

    def destroy(self, names: list[str]) -> None:
        """Delete stacks; now and then a deletion fails and is repeated."""
        for name in names:
            self.aws.behaviour = Behaviour.unfriendly(self.seed)
            logical_ids = sorted(self.aws.stack(name).resources)
            if logical_ids and self.chance.random() < 0.3:
                failing = [self.chance.choice(logical_ids)]
                self.aws.behaviour = replace(self.aws.behaviour, failing_delete=failing)
                self.aws.destroy(name)
                self.aws.behaviour = Behaviour.unfriendly(self.seed)
            stack = self.aws.stacks.find(name)
            if stack is None:  # the resource that fails was retained
                continue
            seen = len(stack.events)
            assert self.aws.destroy(name).status == "DELETE_COMPLETE", stack.reason
            self.check(stack, seen)

    def reason(self, stage: Assembly, name: str) -> str:
        return self.aws.stack(stage.stack_name(name)).reason


def live_as_example(stacks: list[Versions], seed: int) -> set[int]:
    """Deploy the stacks of an example and their next version; returns the orders of the events."""
    with account(stacks, seed) as life:
        empty = inventory(life.aws)
        for (stage, name), _ in stacks:
            life.create(stage, name)
        for _, (stage, name) in stacks:
            life.scale()
            before = _state(life.aws)
            if life.deploy(stage, name, may_fail=True) != _COMPLETE:
                assert life.aws.stack(stage.stack_name(name)).status == _ROLLED_BACK
                assert _state(life.aws) == before
        for _, (stage, name) in stacks:
            assert life.deploy(stage, name) == _COMPLETE, life.reason(stage, name)
        life.destroy([stage.stack_name(name) for (stage, name), _ in reversed(stacks)])
        assert inventory(life.aws) == empty
        return life.orders


def live_as_guard(directory: Path, seed: int) -> set[int]:
    """Deploy states of the scaling guard's stack in a random sequence;
    returns the orders of the events.
    """
    chance = random.Random(seed)
    states = chance.choices(_GUARDED, k=3)
    # A process has one account at a time, so the declared scaling is looked up first.
    declared = {
        state: declared_scaling(directory, state) for state in states if STATES[state].fails is None
    }
    with SimulatedAccount() as aws:
        aws.behaviour = Behaviour.unfriendly(seed)
        aws.bootstrap()
        life = Life(aws, seed)
        empty = inventory(aws)
        life.create(Assembly(directory / "small"), STACK)
        for state in states:
            life.scale()
            before = _scaling(aws)
            if (
                life.deploy(Assembly(directory / state), STACK, may_fail=chance.random() < 0.5)
                == _COMPLETE
            ):
                assert _scaling(aws) == declared[state], state
            else:
                assert aws.stack(STACK).status == _ROLLED_BACK
                assert _scaling(aws) == before, state
        life.destroy([STACK])
        assert inventory(aws) == empty
        assert _scaling(aws) == []
        assert (
            len(aws.client("ssm").describe_parameters()["Parameters"]) == 1
        )  # the bootstrap version
        return life.orders


@contextmanager
def account(stacks: list[Versions], seed: int) -> Iterator[Life]:
    """The account that the stacks belong to."""
    ((stage, name), _) = stacks[0]
    account_id, region = stage.environment(name).removeprefix("aws://").split("/")
    place = () if account_id == "unknown-account" else (account_id, region)
    with SimulatedAccount(*place) as aws:
        aws.behaviour = Behaviour.unfriendly(seed)
        aws.bootstrap()
        put_what_exists_before(aws, stage.directory)
        yield Life(aws, seed)


def _state(aws: SimulatedAccount) -> Mapping[str, Any]:
    """What a rollback has to restore."""
    sagemaker = aws.client("sagemaker")
    running = {
        each["EndpointName"]: sagemaker.describe_endpoint(EndpointName=each["EndpointName"])
        for each in sagemaker.list_endpoints()["Endpoints"]
    }
    endpoints = {
        name: (each["EndpointConfigName"], each["ProductionVariants"])
        for name, each in running.items()
    }
    return {"inventory": inventory(aws), "endpoints": endpoints, "scaling": _scaling(aws)}


def _scaling(aws: SimulatedAccount) -> list[str]:
    """Targets, policies and schedules, without values that differ in each run."""
    client = aws.client("application-autoscaling")
    described = [
        *client.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"],
        *client.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"],
        *client.describe_scheduled_actions(ServiceNamespace="sagemaker")["ScheduledActions"],
    ]
    return sorted(_without_endpoint_name(each) for each in described)


def _without_endpoint_name(described: Mapping[str, Any]) -> str:
    kept = {name: value for name, value in described.items() if name not in _PASSING}
    if not any(kept.get("SuspendedState", {}).values()):
        kept.pop(
            "SuspendedState", None
        )  # nothing is suspended, which is also what its absence means
    endpoint_name = described["ResourceId"].split("/")[1]
    return json.dumps(kept, sort_keys=True, default=str).replace(endpoint_name, "ENDPOINT")


def declared_scaling(directory: Path, state: str) -> list[str]:
    """The scaling of a state that is deployed to a calm account."""
    return list(_calm_scaling(directory, state))


@cache
def _calm_scaling(directory: Path, state: str) -> tuple[str, ...]:
    with SimulatedAccount() as aws:
        aws.bootstrap()
        assert aws.deploy(directory / state, STACK).status == "CREATE_COMPLETE"
        return tuple(_scaling(aws))
