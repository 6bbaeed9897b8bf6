"""The life of a repository whose encryption key changes, in an unfriendly AWS."""

from __future__ import annotations

from pathlib import Path

from deploy_twice import inventory
from keys_app import STACK, KeyState, synthesize
from seeded_life import Life

from cdk_rehearse import Behaviour, SimulatedAccount
from constructs_triton_core.cloud_assembly.assembly import Assembly

_STATES = {
    f"{key}-{label}": KeyState(key, label=label) for key in ("K1", "K2", None) for label in (1, 2)
}
_OPERATIONS = 4


def synthesize_keys(directory: Path) -> Path:
    """Write the assembly of each state: three encryption keys, one of them none,
    and two contents.
    """
    for name, state in _STATES.items():
        synthesize(directory, name, state)
    return directory


def live_with_keys(directory: Path, seed: int) -> set[int]:
    """Deploy states in a random sequence, destroy and create again;
    returns the orders of the events.
    """
    with SimulatedAccount() as aws:
        aws.behaviour = Behaviour.unfriendly(seed)
        aws.bootstrap()
        life, empty = Life(aws, seed), _everything(aws)
        state = _deploy_first(life, directory)
        for _ in range(_OPERATIONS):
            if life.chance.random() < 0.2:
                life.destroy([STACK])
                assert _everything(aws) == empty
                state = _deploy_first(life, directory)
            else:
                state = _update(life, directory, state)
        life.destroy([STACK])
        assert _everything(aws) == empty
        return life.orders


def _deploy_first(life: Life, directory: Path) -> str:
    state = life.chance.choice(list(_STATES))
    life.create(Assembly(directory / state), STACK)
    assert set(_keys_of_objects(life.aws).values()) == {_STATES[state].key}
    return state


def _update(life: Life, directory: Path, before: str) -> str:
    """Deploy another state; returns the state that the stack is in."""
    state = life.chance.choice([each for each in _STATES if each != before])
    old = _keys_of_objects(life.aws)
    status = life.deploy(Assembly(directory / state), STACK, may_fail=life.chance.random() < 0.6)
    now = _keys_of_objects(life.aws)
    if status == "UPDATE_COMPLETE":
        assert set(now.values()) == {_STATES[state].key}, (before, state, now)
        return state
    assert status == "UPDATE_ROLLBACK_COMPLETE", status
    assert {key: now.get(key) for key in old} == old, (before, state)
    return before


def _keys_of_objects(aws: SimulatedAccount) -> dict[str, str | None]:
    """The logical id of the KMS key of each object."""
    stack = aws.stack(STACK)
    names = {
        each.physical.attributes["Arn"]: name[:2]
        for name, each in stack.resources.items()
        if each.request.type == "AWS::KMS::Key"
    }
    found = aws.access.s3_needs.bucket(stack.output_values["Bucket"]).keys
    return {key: names.get(each.kms_key_id) for key, each in found.items()}


def _everything(aws: SimulatedAccount) -> dict[str, set[str]]:
    buckets = {each["Name"] for each in aws.client("s3").list_buckets()["Buckets"]}
    return {**inventory(aws), "Buckets": buckets}
