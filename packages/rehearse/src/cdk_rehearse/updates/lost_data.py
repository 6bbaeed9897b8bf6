"""The problems of data that an update deletes, may delete, or leaves where nothing uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from constructs_triton_core.findings import Severity

from .codes import CODES
from .data_change import DataChange, DataChanges, Kind
from .report import Problem

__all__ = ["DATA_CODES", "LOSES_DATA", "lost_data_problems"]

#: The codes of data that is no longer where it was after the update.
LOSES_DATA = ("rehearse-data-lost", "rehearse-data-replaced")
#: The codes of all problems of this module.
DATA_CODES = (
    *LOSES_DATA,
    "rehearse-data-may-be-lost",
    "rehearse-data-unprotected",
    "rehearse-custom-resource-replaced",
)

_KEY = "AWS::KMS::Key"
_RETAIN = (
    "copy the data first, or deploy removal_policy=RemovalPolicy.RETAIN for it before this update"
)
_ACCEPT = f"{_RETAIN}; if the data is not needed, acknowledge this problem"
_COPY = "copy the data into the new one before anything uses it"


def lost_data_problems(found: DataChanges) -> Iterator[Problem]:
    """Yield a problem for each change of data: first the errors, then the warnings."""
    problems = [_FINDERS[change.kind](change) for change in found.changes]
    yield from sorted(problems, key=lambda problem: problem.severity is not Severity.ERROR)


def _gone(change: DataChange) -> Problem:
    """The problem of a resource that is removed or replaced."""
    what = "is removed"
    if change.kind == "replaced":
        what = f"is replaced by an empty one because of {' and '.join(change.causes)}"
    message = f"this {change.type} {what}; {_fate(change)}"

    if change.fate == "lost":
        return _problem("rehearse-data-lost", change, message, _ACCEPT)
    fix = _COPY if change.fate == "kept" else _RETAIN
    return _problem("rehearse-data-replaced", change, message, fix)


def _fate(change: DataChange) -> str:
    """What becomes of the data, in words."""
    if change.type == _KEY and change.fate == "lost":
        return "what it has encrypted can never be read again"
    return {
        "lost": "its data is deleted",
        "kept": "its data stays in the old one, which no stack contains any more",
        "snapshot": "AWS makes a snapshot and deletes its data",
        "kept if not empty": "AWS deletes it only if it is empty",
        "unknown": "whether its data is deleted depends on a value that only AWS knows",
    }[change.fate]


def _emptied(change: DataChange) -> Problem:
    """Return the problem of a resource whose data its CDK function deletes."""
    message = (
        f"this {change.type} stays and is emptied: the update removes the custom resource that "
        "empties it at its deletion, whose function then does so"
    )
    fix = (
        "deploy once with a newer aws-cdk-lib, which sets the tag aws-cdk:auto-delete-..., and "
        "without this change; or copy the data first"
    )
    return _problem("rehearse-data-lost", change, message, fix)


def _may_be_replaced(change: DataChange) -> Problem:
    """Return the problem of a resource that AWS may replace by an empty one."""
    message = (
        f"this {change.type} may be replaced by an empty one because of "
        f"{' and '.join(change.causes)}; in that case, {_fate(change)}"
    )
    fix = (
        'look up the property in the CloudFormation template reference, under "Update requires", '
        "or create a change set, which shows whether AWS replaces it; make a backup first"
    )
    return _problem("rehearse-data-may-be-lost", change, message, fix)


def _may_be_removed(change: DataChange) -> Problem:
    message = (
        f"this {change.type} is removed, unless a transform of the new template adds it; "
        f"if it is removed, {_fate(change)}"
    )
    fix = "create a change set, which shows the resources that the transform adds"
    return _problem("rehearse-data-may-be-lost", change, message, fix)


def _may_be_emptied(change: DataChange) -> Problem:
    message = (
        f"the function of this deployment deletes every object under {change.causes[0]}, also "
        "those that it did not deploy"
    )
    fix = "deploy retain_on_delete=True for it before this update, or move the other objects first"
    return _problem("rehearse-data-may-be-lost", change, message, fix)


def _expires(change: DataChange) -> Problem:
    message = f"{change.causes[0]} becomes shorter, so AWS deletes the data that is older"
    fix = "copy what is needed first, or keep the longer time"
    return _problem("rehearse-data-may-be-lost", change, message, fix)


def _unprotected(change: DataChange) -> Problem:
    """Return the problem of a resource whose data nothing keeps any more."""
    message = (
        f"{' and '.join(change.causes)} of this {change.type} no longer keep its data: "
        "a later removal or replacement, or `cdk destroy`, deletes it"
    )
    if len(change.causes) == 1:
        message = message.replace(" keep ", " keeps ")
    return _problem("rehearse-data-unprotected", change, message)


def _new_id(change: DataChange) -> Problem:
    before, after, deletes = change.causes
    message = (
        f"the physical ID of this custom resource changes from {before} to {after}, so "
        f"CloudFormation deletes the old one: its function {deletes}"
    )
    return _problem("rehearse-custom-resource-replaced", change, message)


def _moved(change: DataChange) -> Problem:
    """Return the problem of a custom resource whose deletion undoes what the new one did."""
    name, deletes = change.causes
    message = (
        f"the update creates {name}, which is about the same, and then deletes this custom "
        f"resource: its function {deletes}"
    )
    fix = "keep the construct ID, or deploy once without it before you add the new one"
    return _problem("rehearse-custom-resource-replaced", change, message, fix)


_FINDERS: Mapping[Kind, Callable[[DataChange], Problem]] = {
    "removed": _gone,
    "may be removed": _may_be_removed,
    "replaced": _gone,
    "emptied": _emptied,
    "may be replaced": _may_be_replaced,
    "may be emptied": _may_be_emptied,
    "expires": _expires,
    "unprotected": _unprotected,
    "new id": _new_id,
    "moved": _moved,
}


def _problem(code: str, change: DataChange, message: str, fix: str = "") -> Problem:
    """Return a problem about data, with the severity and the fix of its code."""
    known = CODES[code]
    return Problem(
        code,
        known.severity,
        change.logical_id,
        message,
        fix or known.fix,
        stack=change.stack,
    )
