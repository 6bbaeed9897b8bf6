"""The states and transitions in the page are those of the code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from guard_account import Account, KilledError
from guard_stack import Behaviour, SimulatedStack
from test_guard_simulation import ACCOUNTS, STATES, account, deploy_at_random, deployed, template_of

from constructs_triton_functions.scaling_guard import GATE_TYPE, SWEEPER_TYPE, guard
from constructs_triton_functions.scaling_guard.transitions import ACTIONS, Action, Phase

__all__ = ["account"]

GUIDE = Path(__file__).resolve().parents[4] / "dev" / "project" / "scaling_guard.md"
RESOURCES = {"sweeper": SWEEPER_TYPE, "gate": GATE_TYPE}
RECORDS = {"own": (True,), "other or none": (False,), "any": (True, False)}
Transition = tuple[str, str, str]


def state_of(account: Account) -> str:
    if not account.parameters:
        return "Idle"
    (record,) = account.parameters.values()
    return "Deregistered" if json.loads(record)["Saved"] else "Begun"


@pytest.fixture
def seen(account: Account, monkeypatch: pytest.MonkeyPatch) -> set[Transition]:
    """The transitions of the actions that succeed.

    An action that fails must not change the state.
    """
    transitions: set[Transition] = set()

    def observed(action: Action, carry_out: Callable[..., None]) -> Callable[..., None]:
        def run(*arguments: Any) -> None:
            before = state_of(ACCOUNTS[-1])
            try:
                carry_out(*arguments)
            except KilledError:
                raise
            except Exception:
                if state_of(ACCOUNTS[-1]) != before:
                    transitions.add((before, f"{action} fails", state_of(ACCOUNTS[-1])))
                raise
            transitions.add((before, action.value, state_of(ACCOUNTS[-1])))

        return run

    actions = {
        action: observed(action, carry_out) for action, carry_out in guard._CARRY_OUT.items()
    }
    monkeypatch.setattr(guard, "_CARRY_OUT", actions)
    return transitions


def listed() -> Iterator[Transition]:
    """The transitions in the page's table: a row for each state,
    and a column for each state after it.
    """
    (table,) = re.findall(r"^\| from \|.*\n\|[-|]+\n((?:\|.*\n)+)", GUIDE.read_text(), re.MULTILINE)
    for row in table.splitlines():
        before, *columns = [cell.strip() for cell in row.strip("|").split("|")]
        for after, actions in zip(("Idle", "Begun", "Deregistered"), columns, strict=True):
            yield from ((before, action, after) for action in actions.split(", ") if action)


def test_page_lists_the_transitions_that_occur(seen: set[Transition]) -> None:
    """The simulation goes through exactly the transitions that the page lists."""
    for seed in range(150):
        deploy_at_random(seed)
    lose_cleanup(deployed("small", 0))
    lose_record(deployed("small", 0))
    assert seen == set(listed())


def lose_cleanup(simulated: SimulatedStack) -> None:
    """Roll back a deployment without the cleanup that restores scaling, and deploy again."""
    change = template_of(STATES["large blue"])
    assert not simulated.deploy(change, Behaviour("blueTarget", loses_cleanup=True))
    assert simulated.deploy(change)


def lose_record(simulated: SimulatedStack) -> None:
    """Deploy a change, and delete the record after the sweeper's update."""

    def observe(event: Mapping[str, Any], deliver: Callable[[], None]) -> None:
        if event["ResourceType"] == GATE_TYPE:
            simulated.account.parameters.clear()
        deliver()

    simulated.observe = observe
    before = simulated.account.scaling()
    # No call fails: the gate itself rejects the request.
    assert not simulated.deploy(
        template_of(STATES["large blue"]), Behaviour("Gate", fails_at_call=99)
    )
    assert simulated.account.scaling() == before


def test_table_lists_the_requests_that_cause_an_action() -> None:
    """The guide's table and the code's table have the same rows."""
    rows = re.findall(
        r"^\| (sweeper|gate) \| (\w+) \| ([\w ]+) \| ([\w ]+) \| ([\w ]+) \|$",
        GUIDE.read_text(),
        re.M,
    )
    listed = {
        (RESOURCES[resource], request, Phase(phase), is_own): Action(action)
        for resource, request, phase, record, action in rows
        for is_own in RECORDS[record]
    }
    assert listed == ACTIONS


def test_every_action_is_explained() -> None:
    """The guide says what each action does."""
    text = GUIDE.read_text()
    assert not [action for action in Action if f"\n| {action} | " not in text]
