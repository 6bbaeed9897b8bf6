"""A small model of CloudFormation: updates of one stack, their rollbacks and cleanups.

Independent resources are updated in random order. In a rollback, a custom resource whose physical
id changed gets an Update with the old properties, or none. Requests are delivered twice or late.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock

from guard_account import ENDPOINT, Account, KilledError, UpdateRejectedError, failure

from constructs_triton_functions import response as responses
from constructs_triton_functions.scaling import DIMENSION, NAMESPACE
from constructs_triton_functions.scaling_guard import (
    GATE_TYPE,
    POLICY_TYPE,
    SWEEPER_TYPE,
    TARGET_TYPE,
    handler,
)

STACK_ID = "arn:aws:cloudformation:us-east-1:123456789012:stack/Guarded/uuid"
GUARD_TYPES = (SWEEPER_TYPE, GATE_TYPE)
CUSTOM_TYPES = (*GUARD_TYPES, TARGET_TYPE, POLICY_TYPE)


class StepFailedError(Exception):
    """A resource could not be created, updated or deleted."""


@dataclass(frozen=True)
class Resource:
    """A resource of a template. ``properties`` may refer to others: ``{"Ref": logical id}``."""

    type: str
    properties: Mapping[str, Any]
    depends_on: tuple[str, ...] = ()


Template = Mapping[str, Resource]


@dataclass(frozen=True)
class Deployed:
    """A resource of the stack."""

    type: str
    physical_id: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Behaviour:
    """What goes wrong in one operation. Default: nothing."""

    fails: str | None = None
    """Logical id of the resource that fails."""
    fails_at_call: int = 0
    """Number of the call of a custom resource's function that fails."""
    is_killed: bool = False
    """The function of the sweeper or the gate ends without a response at that call."""
    rollback_updates_replaced: bool = True
    """Whether a rollback sends an Update to a custom resource whose physical id changed."""
    repeats: float = 0.0
    """Probability that a request is delivered twice, the second time possibly late."""
    cancels: bool = False
    """The first request of the guard that is not finished at the failure arrives
    during the rollback.
    """
    loses_cleanup: bool = False
    """No request of the cleanup reaches the sweeper."""


@dataclass
class SimulatedStack:
    """One stack in one account."""

    account: Account
    random: random.Random
    observe: Callable[[Mapping[str, Any], Callable[[], None]], None] = lambda _, deliver: deliver()
    """Is called for each delivery."""
    template: Template = field(default_factory=dict)
    resources: dict[str, Deployed] = field(default_factory=dict)
    _behaviour: Behaviour = Behaviour()
    _late: list[Mapping[str, Any]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def deploy(self, template: Template, behaviour: Behaviour | None = None) -> bool:
        """Update the stack; returns whether the update succeeded or was rolled back."""
        self._behaviour = behaviour or Behaviour()
        before, self.account.status = dict(self.resources), "UPDATE_IN_PROGRESS"
        touched: list[str] = []
        created: list[tuple[str, Deployed]] = []
        try:
            for logical_id in self._order(template):
                self._put(logical_id, template[logical_id], touched, created)
        except StepFailedError:
            self._cancel(template, touched)
            self._roll_back(before, touched)
            self._clean_up("UPDATE_ROLLBACK_COMPLETE", template, created)
            return False
        superseded = [
            (name, each)
            for name, each in before.items()
            if self._is_superseded(name, each, template)
        ]
        self.resources = {name: each for name, each in self.resources.items() if name in template}
        old_template, self.template = self.template, template
        self._clean_up("UPDATE_COMPLETE", old_template, superseded)
        return True

    def _is_superseded(self, name: str, before: Deployed, template: Template) -> bool:
        return name not in template or self.resources[name].physical_id != before.physical_id

    def _order(self, template: Template) -> list[str]:
        """A random order in which each resource comes after those it depends on."""
        left, order = dict(template), []
        while left:
            ready = [name for name, each in left.items() if not set(each.depends_on) & left.keys()]
            order.append(self.random.choice(ready))
            del left[order[-1]]
        return order

    def _put(
        self, name: str, resource: Resource, touched: list[str], created: list[tuple[str, Deployed]]
    ) -> None:
        current = self.resources.get(name)
        wanted = self._resolve(resource.properties)
        if current is not None and current.properties == wanted:
            return
        if current is not None:
            touched.append(name)
        try:
            physical_id = self._carry_out(name, resource.type, wanted, current, is_forward=True)
        except StepFailedError:
            failed = Deployed(
                resource.type, f"{name}-failed" if current is None else current.physical_id, wanted
            )
            if current is None:
                created.append((name, failed))
            else:
                self.resources[name] = failed
            raise
        self.resources[name] = Deployed(resource.type, physical_id, wanted)
        if current is None or current.physical_id != physical_id:
            created.append((name, self.resources[name]))

    def _resolve(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: self.resources[value["Ref"]].physical_id
            if isinstance(value, dict) and "Ref" in value
            else value
            for name, value in properties.items()
        }

    def _carry_out(
        self,
        name: str,
        type: str,
        properties: Mapping[str, Any],
        current: Deployed | None,
        *,
        is_forward: bool = False,
    ) -> str:
        self._deliver_late(share=0.3)
        fails = is_forward and self._behaviour.fails == name
        if type in CUSTOM_TYPES:
            event = self._event(
                "Create" if current is None else "Update", name, type, properties, current
            )
            return self._deliver(event, fails=fails)
        if fails:
            raise StepFailedError(name)
        if type == "Endpoint":
            try:
                self.account.update_endpoint(properties["InstanceTypes"])
            except UpdateRejectedError as error:
                raise StepFailedError(str(error)) from error
        return name

    def _roll_back(self, before: Mapping[str, Deployed], touched: list[str]) -> None:
        self.account.status = "UPDATE_ROLLBACK_IN_PROGRESS"
        for name in self._order(self.template):
            if name in touched:
                old, now = before[name], self.resources[name]
                is_replaced = old.physical_id != now.physical_id
                if not is_replaced or self._behaviour.rollback_updates_replaced:
                    assert self._carry_out(name, old.type, old.properties, now) == old.physical_id
        self.resources = dict(before)

    def _cancel(self, template: Template, touched: list[str]) -> None:
        """CloudFormation does not wait for a function that runs when another resource fails."""
        for name in ("Sweeper", "Gate") if self._behaviour.cancels else ():
            current = self.resources.get(name)
            wanted = self._resolve(template[name].properties)
            if current is None or name in touched or current.properties == wanted:
                continue
            if self._behaviour.fails in template[name].depends_on:
                return
            touched.append(name)
            self._late.append(self._event("Update", name, template[name].type, wanted, current))
            self.resources[name] = Deployed(current.type, current.physical_id, wanted)
            return

    def _clean_up(
        self, status: str, template: Template, removed: list[tuple[str, Deployed]]
    ) -> None:
        self.account.status = f"{status}_CLEANUP_IN_PROGRESS"
        order = {name: place for place, name in enumerate(self._order(template))}
        for name, deployed in sorted(removed, key=lambda each: order[each[0]], reverse=True):
            self._deliver_late(share=0.3)
            if deployed.type in CUSTOM_TYPES and not (
                name == "Sweeper" and self._behaviour.loses_cleanup
            ):
                self._deliver(
                    self._event("Delete", name, deployed.type, deployed.properties, deployed)
                )
        self.account.status = status
        self._deliver_late(share=1)

    # Requests.

    def _event(
        self,
        request: str,
        name: str,
        type: str,
        properties: Mapping[str, Any],
        current: Deployed | None,
    ) -> Mapping[str, Any]:
        event = {
            "RequestType": request,
            "RequestId": f"request-{next(self._numbers)}",
            "ResponseURL": "https://response",
            "StackId": STACK_ID,
            "LogicalResourceId": name,
            "ResourceType": type,
            "ResourceProperties": dict(properties),
        }
        if current is not None:
            event["PhysicalResourceId"] = current.physical_id
        if request == "Update" and current is not None:
            event["OldResourceProperties"] = dict(current.properties)
        return event

    def _deliver(self, event: Mapping[str, Any], *, fails: bool = False) -> str:
        """Deliver a request once or twice; CloudFormation takes the first response."""
        if fails:
            is_killed = self._behaviour.is_killed and event["ResourceType"] in GUARD_TYPES
            self.account.fails_at = self._behaviour.fails_at_call
            self.account.failure = KilledError() if is_killed else failure("InternalServiceFault")
        status, physical_id = self._call(event)
        is_injected = fails and self.account.fails_at is None
        self.account.fails_at = self.account.failure = None
        if (
            event["ResourceType"] in GUARD_TYPES
            and self.random.random() < self._behaviour.repeats / 2
        ):
            self._late.append(event)
        elif status == "SUCCESS" and self.random.random() < self._behaviour.repeats:
            self._call(event)
        if status != "SUCCESS":
            assert fails, (
                f"{event['RequestType']} {event['LogicalResourceId']} failed: {physical_id}"
            )
            raise StepFailedError(event["LogicalResourceId"])
        if (
            fails and not is_injected and event["ResourceType"] in GUARD_TYPES
        ):  # the response was lost
            raise StepFailedError(event["LogicalResourceId"])
        return physical_id

    def _deliver_late(self, share: float) -> None:
        for event in [each for each in self._late if self.random.random() < share]:
            self._late.remove(event)
            self._call(event)

    def _call(self, event: Mapping[str, Any]) -> tuple[str, str]:
        answers: list[dict[str, Any]] = []

        def deliver() -> None:
            answer = mock.patch.object(
                responses, "_put", lambda _, body: answers.append(json.loads(body))
            )
            try:
                with answer:
                    handler.handler(event, SimpleNamespace(log_stream_name="log"))
            except KilledError:
                answers.append({"Status": "FAILED", "Reason": "killed"})

        self.observe(event, deliver)
        (answer,) = answers
        is_failed = answer["Status"] != "SUCCESS"
        return answer["Status"], answer.get("Reason", "") if is_failed else answer[
            "PhysicalResourceId"
        ]


def target_id(variant: str) -> str:
    """The physical id of a variant's scalable target."""
    return f"endpoint/{ENDPOINT}/variant/{variant}|{DIMENSION}|{NAMESPACE}"
