"""The data that an update deletes, or that stays behind while an empty resource takes its place."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton_core.findings import Finding, Severity

from ..providers.provider import Deployed
from ..services.resource_schemas import resource_schema, stateful_types
from ..stacks.change import RETAINING
from .trial import Outcome

_KEY, _EMPTIES = "AWS::KMS::Key", "Custom::S3AutoDeleteObjects"
_FATES = {
    **dict.fromkeys(RETAINING, "its data stays in the old one, which no stack contains any more"),
    "Snapshot": "AWS makes a snapshot and deletes its data",
    "AWS::S3::Bucket": "AWS deletes it only if it has no objects",
    _KEY: "what it has encrypted can never be read again",
}
"""What becomes of the data, by policy or type. Other data is deleted."""
_FIX = (
    "copy the data first, or deploy removal_policy=RemovalPolicy.RETAIN for it before this update"
)


def replaced_data_problems(outcome: Outcome) -> Iterator[Finding]:
    """A warning for each resource with data that the update deletes or replaces.

    One that is removed and retained has a warning if the update creates another of its type: that
    is empty.
    """
    before, after = outcome.before.deployed, outcome.after.deployed
    created = {each.request.type for place, each in after.items() if place not in before} - {_KEY}
    left = {each.physical_id for each in outcome.leftovers}
    emptied = {
        each.properties["BucketName"] for each in before.values() if each.request.type == _EMPTIES
    }
    for place, old in before.items():
        new, kind, name = after.get(place), old.request.type, old.physical.id
        policy = new.update_replace_policy if new else old.deletion_policy
        policy = "Retain" if name in left else policy
        is_kept = policy in RETAINING
        is_same = new and new.physical.id == name
        if kind in stateful_types() and not is_same and (new or not is_kept or kind in created):
            fate = _FATES.get(policy) or _FATES.get(
                "" if name in emptied else kind, "its data is deleted"
            )
            message = f"this {kind} {_change(old, new)}; {fate}"
            fix = "copy the data into the new one before anything uses it" if is_kept else _FIX
            yield Finding("rehearse-data-replaced", Severity.WARNING, place[1], message, fix)


def _change(old: Deployed, new: Deployed | None) -> str:
    if new is None:
        return "is removed"
    causes = sorted(
        resource_schema(old.request.type).replacing_changes(old.properties, new.properties)
    )
    return f"is replaced by an empty one because of {' and '.join(causes)}"
