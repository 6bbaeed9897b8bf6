"""The operations on a stack: create, update, delete, and their rollbacks.

Resources are created one after the other in the order of their dependencies; CloudFormation would
create independent ones at the same time. A replacement is created immediately. What it replaces is
deleted in the cleanup phase, after every other change has succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from constructs_triton_core.cloud_assembly.template import Template

from ..errors import FAILURES, StackError
from ..providers import is_custom
from ..providers.provider import Deployed
from ..steps import Action, Step
from .change import RETAINING, Change, order
from .engine import Engine, failing
from .exports import expect_deletable
from .service_rules import expect_accepted
from .stack import Stack

_NOT_UPDATABLE = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED", "DELETE_FAILED")


@dataclass
class Deployer(Engine):
    """Carries out operations on the stacks of one simulated account."""

    _unfinished: dict[str, _Unfinished] = field(default_factory=dict)
    """The updates of nested stacks whose parents are still being updated,
    by the ID of the stack.
    """

    def deploy(self, stack: Stack, template: Template, given: Mapping[str, str]) -> None:
        """Create or update a stack; its status shows the result. A failure is rolled back."""
        self.expect_updatable(stack)
        template = template.with_parameters(given)
        if stack.resources:
            self._update(stack, template, dict(given))
        else:
            self._create(stack, template, dict(given))

    def expect_updatable(self, stack: Stack) -> None:
        """Raise ``StackError`` in a state after which CloudFormation accepts no update."""
        if stack.status in _NOT_UPDATABLE:
            raise StackError(f"Stack:{stack.id} is in {stack.status} state and can not be updated.")

    def resumed_rollback(self, stack: Stack) -> Callable[[], None]:
        """Return what resumes the failed rollback of an update, as ``cdk rollback`` does."""
        if stack.status != "UPDATE_ROLLBACK_FAILED" or stack.roll_back is None:
            raise StackError(
                f"Stack:{stack.id} is in {stack.status} state and can not be rolled back."
            )
        return stack.roll_back

    def update_nested(self, stack: Stack, template: Template, given: Mapping[str, str]) -> None:
        """Update a nested stack. What it replaces is deleted with what its parent replaces."""
        self.expect_updatable(stack)
        before = replace(stack, resources=dict(stack.resources))
        stack.enter("UPDATE_IN_PROGRESS", "User Initiated")
        change = Change(self, stack, template.with_parameters(given))
        try:
            change.run(dict(given))
        except FAILURES as error:
            self._restore(stack, before, change, str(error))
            raise StackError(
                f"Embedded stack {stack.id} was not successfully updated: {error}"
            ) from error
        self._unfinished[stack.id] = _Unfinished(
            finish=lambda: self._clean_up(stack, "UPDATE_COMPLETE", change.superseded),
            undo=lambda: self._restore(stack, before, change, "The parent stack is rolled back"),
        )

    def undo_nested(self, stack: Stack) -> bool:
        """Undo the update of a nested stack in a rollback of its parent;
        return whether there was one.
        """
        unfinished = self._unfinished.pop(stack.id, None)
        if unfinished is not None:
            unfinished.undo()
        return unfinished is not None

    def delete(self, stack: Stack) -> None:
        """Delete what is not retained, in reverse order;
        stops at a resource that cannot be deleted.
        """
        before = stack.status
        self._enter(stack, "start", "DELETE_IN_PROGRESS", "User Initiated")
        try:
            expect_deletable(self.stacks, stack)
        except StackError as error:
            self._enter(stack, "end", before, str(error))
            return
        for deployed in self._backwards(stack):
            logical_id = deployed.request.logical_id
            try:
                self._remove(stack, deployed, retain=deployed.deletion_policy in RETAINING)
            except StackError as error:
                reason = f"The following resource(s) failed to delete: [{logical_id}]. {error}"
                self._enter(stack, "end", "DELETE_FAILED", reason)
                return
            del stack.resources[logical_id]
        stack.outputs = []
        self._enter(stack, "end", "DELETE_COMPLETE")

    def _enter(self, stack: Stack, action: Action, status: str, reason: str = "") -> None:
        stack.enter(status, reason)
        self.inspect(Step(action, status))

    def _create(self, stack: Stack, template: Template, given: dict[str, str]) -> None:
        """Create a stack, and roll back if it fails."""
        self._enter(stack, "start", "CREATE_IN_PROGRESS", "User Initiated")
        change = Change(self, stack, template)
        try:
            change.run(given)
        except FAILURES as error:
            self._enter(stack, "rollback", "ROLLBACK_IN_PROGRESS", str(error))
            self._roll_back_create(stack, str(error))
            return
        self._enter(stack, "end", "CREATE_COMPLETE")

    def _roll_back_create(self, stack: Stack, reason: str) -> None:
        """Delete what a failed creation created, unless it is retained."""
        status = "ROLLBACK_COMPLETE"
        for deployed in self._backwards(stack):
            try:
                self._remove(stack, deployed, retain=deployed.is_kept_after_create)
            except StackError as error:
                status, reason = (
                    "ROLLBACK_FAILED",
                    f"{reason}. {deployed.request.logical_id}: {error}",
                )
                continue
            del stack.resources[deployed.request.logical_id]
        self._enter(stack, "end", status, reason)

    def _update(self, stack: Stack, template: Template, given: dict[str, str]) -> None:
        """Update a stack, and roll back if it fails."""
        before = replace(stack, resources=dict(stack.resources))
        self._enter(stack, "start", "UPDATE_IN_PROGRESS", "User Initiated")
        change = Change(self, stack, template)
        try:
            change.run(given)
        except FAILURES as error:
            self._restore(stack, before, change, str(error))
            return
        self._clean_up(stack, "UPDATE_COMPLETE", change.superseded)

    def _restore(self, stack: Stack, before: Stack, change: Change, reason: str) -> None:
        """Roll back an update: changed resources get their old properties, new ones are deleted."""
        self._enter(stack, "rollback", "UPDATE_ROLLBACK_IN_PROGRESS", reason)
        try:
            for logical_id in order(before.template, self.behaviour, "rollback"):
                old = before.resources.get(logical_id)
                # A rollback that failed later has restored some already.
                is_restored = old is stack.resources.get(logical_id)
                if old is not None and logical_id in change.touched and not is_restored:
                    self._put_back(stack, old, change.failed)
        except StackError as error:
            stack.roll_back = lambda: self._restore(stack, before, change, reason)
            self._enter(stack, "end", "UPDATE_ROLLBACK_FAILED", str(error))
            return
        stack.template = before.template
        stack.given = before.given
        stack.parameters = before.parameters
        stack.resources = dict(before.resources)
        stack.outputs = before.outputs
        # UpdateStack keeps what it created and the template retains, unless RetainExceptOnCreate is
        # set. No document says so of the new half of a replacement, to which DeletionPolicy does
        # not apply.
        created = []
        for resource in reversed(change.created):
            is_replacement = resource.request.logical_id in before.resources
            is_kept = resource.is_kept_after_create and not is_replacement
            created.append((resource, is_kept))
        self._clean_up(stack, "UPDATE_ROLLBACK_COMPLETE", created)
        stack.reason = reason

    def _put_back(self, stack: Stack, old: Deployed, failed: str) -> None:
        """Restore the old physical resource, or change the resource back in place.

        What ``failed`` may be unchanged.
        """
        logical_id = old.request.logical_id
        now = stack.resources[logical_id]
        kind = old.request.type
        physical_id = old.physical.id
        is_in_place = now.physical.id == physical_id
        is_updated = is_in_place or (
            is_custom(kind) and self.behaviour.updates_replaced_on_rollback
        )
        stack.record(logical_id, kind, physical_id, "UPDATE_IN_PROGRESS")
        try:
            with failing(self.behaviour.failing_restore.get(logical_id)):
                if is_in_place and logical_id != failed:
                    # A service refuses a change back as it refuses any other update.
                    expect_accepted("update", old.request, now)
                if is_updated:
                    self.providers.of(kind).update(now, old.request)
        except StackError as error:
            stack.record(logical_id, kind, physical_id, "UPDATE_FAILED", str(error))
            raise
        stack.resources[logical_id] = old
        stack.record(logical_id, kind, physical_id, "UPDATE_COMPLETE")
        self.inspect(Step("restore", logical_id, stack.path))

    def _clean_up(self, stack: Stack, status: str, removals: list[tuple[Deployed, bool]]) -> None:
        """Delete resources that the stack no longer has;
        a failure is recorded and changes nothing else.
        """
        self.begin_cleanup()
        for deployed in stack.resources.values():
            if (nested := self._unfinished.pop(deployed.physical.id, None)) is not None:
                nested.finish()
        if removals:
            stack.enter(f"{status}_CLEANUP_IN_PROGRESS")
        for deployed, retain in removals:
            try:
                self._remove(stack, deployed, retain=retain)
            except StackError:
                continue  # noted in the events, as CloudFormation does
        self._enter(stack, "end", status)

    def _remove(self, stack: Stack, deployed: Deployed, *, retain: bool) -> None:
        """Delete a resource, or note that it is retained."""
        request = deployed.request
        physical_id = deployed.physical.id
        self.stacks.identifiers.add(deployed, stack_id="")
        if retain:
            stack.record(request.logical_id, request.type, physical_id, "DELETE_SKIPPED")
            return
        stack.record(request.logical_id, request.type, physical_id, "DELETE_IN_PROGRESS")
        try:
            with failing("before" if request.logical_id in self.behaviour.failing_delete else None):
                expect_accepted("delete", request)
                self.providers.of(request.type).delete(deployed)
        except StackError as error:
            stack.record(request.logical_id, request.type, physical_id, "DELETE_FAILED", str(error))
            raise
        self.stacks.identifiers.remove(deployed)
        stack.record(request.logical_id, request.type, physical_id, "DELETE_COMPLETE")
        self.inspect(Step("delete", request.logical_id, stack.path))

    def _backwards(self, stack: Stack) -> list[Deployed]:
        """The stack's resources, each before the resources that it depends on."""
        backwards = order(stack.template, self.behaviour, "delete", is_reversed=True)
        places = {logical_id: place for place, logical_id in enumerate(backwards)}
        last = len(places)
        return sorted(
            stack.resources.values(),
            key=lambda resource: places.get(resource.request.logical_id, last),
        )


@dataclass(frozen=True)
class _Unfinished:
    finish: Callable[[], None]
    undo: Callable[[], None]
