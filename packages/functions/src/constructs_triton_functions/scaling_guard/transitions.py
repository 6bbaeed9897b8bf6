"""Which request of CloudFormation makes the guard do what.

CloudFormation rolls back a custom resource in one of two ways: it sends an Update with the old
properties, or, when the physical id changed, no Update at all. A request may also arrive twice, or
late. The table lists all requests on which the guard acts. Every other request is answered without
doing anything. The diagram in ``dev/project/scaling_guard.md`` shows the same rules.
"""

from __future__ import annotations

from enum import StrEnum

from . import GATE_TYPE, SWEEPER_TYPE


class Phase(StrEnum):
    """What the stack is doing."""

    UPDATE = "update"
    ROLLBACK = "rollback"
    AFTER_ROLLBACK = "after rollback"
    AFTER_SUCCESS = "after success"
    """The cleanup after an update, or the deletion of the stack."""

    @classmethod
    def of(cls, stack_status: str) -> Phase:
        """The phase in which a stack has this status."""
        if stack_status == "UPDATE_IN_PROGRESS":
            return cls.UPDATE
        if stack_status == "UPDATE_ROLLBACK_IN_PROGRESS":
            return cls.ROLLBACK
        is_rolled_back = stack_status.startswith("UPDATE_ROLLBACK")
        return cls.AFTER_ROLLBACK if is_rolled_back else cls.AFTER_SUCCESS


class Action(StrEnum):
    """What the guard does."""

    BEGIN = "begin"
    """Start an empty record. A record of an earlier deployment is overwritten."""
    DEREGISTER = "deregister"
    """Save the variants that would make SageMaker reject the endpoint's update,
    then deregister them.
    """
    DEREGISTER_AGAIN = "deregister again"
    """Deregister what would make SageMaker reject the endpoint's rollback, without saving it."""
    REJECT = "reject"
    """Fail, because the record of this deployment is missing."""
    RESTORE = "restore"
    """Register what was saved and is missing, then delete the record."""
    FORGET = "forget"
    """Delete the record."""


Trigger = tuple[str, str, Phase, bool]
"""Type of the resource, request type, phase, and whether the record belongs to the request.

A record belongs to the Update of the sweeper that started it, and to requests with that sweeper's
new id.
"""

ACTIONS: dict[Trigger, Action] = {
    (SWEEPER_TYPE, "Update", Phase.UPDATE, False): Action.BEGIN,
    (GATE_TYPE, "Update", Phase.UPDATE, True): Action.DEREGISTER,
    (GATE_TYPE, "Update", Phase.UPDATE, False): Action.REJECT,
    # With the record's id it would be the request of the update, delivered late.
    (GATE_TYPE, "Update", Phase.ROLLBACK, False): Action.DEREGISTER_AGAIN,
    (SWEEPER_TYPE, "Delete", Phase.AFTER_ROLLBACK, True): Action.RESTORE,
    (SWEEPER_TYPE, "Delete", Phase.AFTER_SUCCESS, True): Action.FORGET,
    (SWEEPER_TYPE, "Delete", Phase.AFTER_SUCCESS, False): Action.FORGET,
}
