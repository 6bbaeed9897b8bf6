"""The problems of roles that use encrypted data: requests, responses, captured
data, topics, volumes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from constructs_triton_core.facts.encrypted_data import ENCRYPTED_DATA
from constructs_triton_core.findings import Severity

from ..endpoints.data_uses import ALARMS, EVENTS, NOTICES, SCHEDULES
from ..endpoints.encrypted_data import DataReading, Use
from .analysis import CHANGES, RESTORE, Sequence, since
from .recording import Moment
from .report import Problem

_CODE = "rehearse-data-loses-access"
_PREVIOUS_CODE = "rehearse-previous-key-removed"
_FIXES = json.loads(Path(__file__).with_suffix(".json").read_text())
"""For each kind of data, the option that keeps its previous keys, and how long it needs them."""
_Place = tuple[Use, bool]
"""A use without its key, and whether it concerns what was written before the update."""


@dataclass
class _Loss:
    """The first refusal of a use, its step, and whether it lasts to the end."""

    reading: DataReading
    since: str
    lasts: bool = True


def data_problems(sequence: Sequence, when: str = "") -> Iterator[Problem]:
    """Yield a problem for each role that can no longer use data; the worst of each kind of data
    first.

    It is a warning if the role can use it again at the end of the update, or if only data under a
    previous key is concerned: there may be none. ``when`` replaces the step. What was so before the
    update comes last, as a warning: the update does not cause it, but new data is lost.
    """
    refused_before = _refused(sequence.before)
    new_losses = []
    former_losses = []
    for place, loss in _losses(sequence).items():
        if place not in refused_before:
            new_losses.append(loss)
        elif loss.lasts and _is_known_to_fail(sequence, loss.reading):
            former_losses.append(loss)

    for loss in new_losses:
        if _matters(sequence, loss):
            yield _problem(sequence, loss, when, is_new=True)
    for loss in former_losses:
        yield _problem(sequence, loss, "before and after the update", is_new=False)


def _matters(sequence: Sequence, loss: _Loss) -> bool:
    """Whether a loss that may end with the update has an effect."""
    use = loss.reading.use
    if loss.lasts:
        return True
    if use.data in (EVENTS, NOTICES, SCHEDULES):
        return False  # they are used hours later, and no request waits for them
    # With the caller, or with what it calls, the permission has no use any more.
    return use.is_own or not _is_deleted(sequence, use)


def _problem(sequence: Sequence, loss: _Loss, when: str, *, is_new: bool) -> Problem:
    """Return the problem of a loss; ``is_new`` is whether the update causes it."""
    use = loss.reading.use
    is_previous = use.has_previous_key
    # Others may be meant to lose it, unless they lose only the key.
    is_sure = use.is_own or loss.reading.refusal.startswith("kms:")
    is_error = loss.lasts and is_sure and is_new and not is_previous
    return Problem(
        _PREVIOUS_CODE if is_previous else _CODE,
        Severity.ERROR if is_error else Severity.WARNING,
        _where(use),
        _message(sequence, loss, when),
        _fix_of_previous_key(use) if is_previous else _fix(sequence, loss.reading),
    )


def _where(use: Use) -> str:
    """The place of a problem: of requests, callers write them and the endpoint reads them."""
    of_callers = " of callers" if use.action == "writes" and not use.is_own else ""
    return f"endpoint {use.endpoint}, {use.data}{of_callers}" if use.endpoint else use.place


def _is_known_to_fail(sequence: Sequence, reading: DataReading) -> bool:
    """Whether the execution role cannot use new data,
    and a stack has the policies that could allow it.
    """
    use = reading.use
    owner = use.key if reading.refusal.startswith("kms:") else use.place.partition("/")[0]
    name = owner.removeprefix("arn:aws:s3:::").rpartition("/")[2]
    resources = sequence.outcome.after.resources.values()
    is_created = any(physical_id == name for _, physical_id in resources)
    return use.is_own and not (reading.waits or use.has_previous_key) and is_created


def _is_deleted(sequence: Sequence, use: Use) -> bool:
    """Whether the operation deletes the endpoint, or the role that uses its data."""
    last = sequence.outcome.moments[-1]
    if use.endpoint and use.endpoint not in last.serving:
        return True

    role = use.role.rpartition("/")[2]
    before = {physical_id for _, physical_id in sequence.outcome.before.resources.values()}
    after = {physical_id for _, physical_id in sequence.outcome.after.resources.values()}
    return role in before and role not in after


def _refused(moment: Moment | None) -> set[_Place]:
    """Return the uses of data that are refused at a moment."""
    if moment is None:
        return set()
    return {_place(reading) for reading in moment.data if reading.refusal}


def _place(reading: DataReading) -> _Place:
    return replace(reading.use, key=""), reading.waits


def _losses(sequence: Sequence) -> Mapping[_Place, _Loss]:
    """The refusals after each step: first those that last, and of these what was written before."""
    found: dict[_Place, _Loss] = {}
    number = 0
    for moment in sequence.outcome.moments:
        number += moment.step.action in CHANGES
        for reading in moment.data:
            if reading.refusal and _place(reading) not in found:
                found[_place(reading)] = _Loss(reading, since(number, moment.step))
    last = _refused(sequence.outcome.moments[-1]) if found else set()
    for place, loss in found.items():
        loss.lasts = place in last
    return dict(
        sorted(found.items(), key=lambda item: (not item[1].lasts, not item[1].reading.waits))
    )


def _message(sequence: Sequence, loss: _Loss, when: str) -> str:
    """Return since when a role may not use data, and what refuses it."""
    use = loss.reading.use
    since = when or (loss.since if loss.lasts else f"{loss.since}, for a part of the update")
    who = f"role {_name(sequence, use.role)}" if use.role.startswith("arn:") else use.role
    if use.has_previous_key:
        key = f"under the previous key {_name(sequence, use.key)}"
        return f"{since}, {who} may not read {use.data} {key}: {loss.reading.refusal}"
    before = " from before the update" if loss.reading.waits else ""
    what = "encrypt" if use.data == "storage volumes" else use.action.removesuffix("s")
    key = f", under key {_name(sequence, use.key)}" if use.key else ""
    return f"{since}, {who} may not {what} {use.data}{before}{key}: {loss.reading.refusal}"


def _fix(sequence: Sequence, reading: DataReading) -> str:
    """Return how to give a role the use of data again."""
    use = reading.use
    if reading.moment.action == "meanwhile":
        return RESTORE
    if not use.role.startswith("arn:"):
        return _fix_of_service(reading)
    is_of_key = reading.refusal.startswith("kms:")
    if not is_of_key or _has_kept_key(sequence, use) or use.data not in _FIXES:
        in_key = ", and for the account or the role in the policy of the key" if is_of_key else ""
        return (
            f"allow the action in a policy of the role and in its permissions boundary{in_key}, "
            "and remove what denies it there or in the policy of the bucket or topic"
        )
    if not use.is_own and use.data in ("captured data", "core dumps"):
        return "keep the permission for the old key, with old_key.grant_decrypt(role)"
    option = f"{_FIXES[use.data]['option']}(previous_encryption_keys=[...])"
    if reading.waits and not any(_keys_of(sequence.outcome.moments[-1], use)):
        return (
            f"put the old key into {option}, and remove it when nothing under it is needed any more"
        )
    return (
        f"deploy first with the new key in {option}, and in the next deployment use the new key "
        "and put the old one into this list; remove it when nothing under it is needed any more"
    )


def _fix_of_service(reading: DataReading) -> str:
    """Allow a service in the policy of the key or of the topic; it has no role."""
    use = reading.use
    principal = f'iam.ServicePrincipal("{use.role}")'
    if use.key.startswith("alias/aws/"):
        thing = "topic" if use.key.endswith("/sns") else "queue"
        return f"give the {thing} a key of your own, because AWS sets the policy of this one"
    if reading.refusal.startswith("kms:"):
        return (
            "allow it in the policy of the key: "
            f"key.grant_encrypt_decrypt({principal}), and remove what denies it there"
        )
    if use.data == EVENTS:
        is_queue = "sqs:" in reading.refusal
        thing = "queue" if is_queue else "topic"
        grant = "grant_send_messages" if is_queue else "grant_publish"
        return (
            f"add {thing}.{grant}({principal}) where the {thing} is created, because the CDK "
            f"cannot change the policy of an imported {thing}, and remove what denies it"
        )
    return (
        "any policy of a topic replaces the default one, which allows this; "
        f"add topic.grant_publish({principal}), and remove what denies it"
    )


def _fix_of_previous_key(use: Use) -> str:
    """Keep the key until nothing under it is needed; only the user knows whether this is so."""
    assert use.data != ALARMS  # they have no key
    if use.data in ("captured data", "core dumps"):
        keep = "keep the permission for the old key, with old_key.grant_decrypt(role),"
    else:
        keep = f"keep the key in {_FIXES[use.data]['option']}(previous_encryption_keys=[...])"
    return (
        f"{keep} until {_FIXES[use.data]['needed_until']}, and ignore this warning then. Lifetime: "
        f"{ENCRYPTED_DATA[use.data].lifetime}. "
        "`aws s3api head-object` prints the key of an object as SSEKMSKeyId"
    )


def _has_kept_key(sequence: Sequence, use: Use) -> bool:
    """Whether the same data has this key before and after the update,
    so that only policies changed.
    """
    if use.key not in _keys_of(sequence.outcome.moments[-1], use):
        return False
    return sequence.before is None or use.key in _keys_of(sequence.before, use)


def _keys_of(moment: Moment, use: Use) -> set[str]:
    """The keys that new data of this kind has at a moment, in the same place."""
    keys = set()
    for reading in moment.data:
        present = reading.use
        if not reading.waits and (present.data, present.place) == (use.data, use.place):
            keys.add(present.key)
    return keys


def _name(sequence: Sequence, arn: str) -> str:
    """The logical ID of a key or a role; its physical ID if no stack of the rehearsal has it."""
    if arn.startswith("alias/"):
        return arn  # a key of AWS
    wanted = arn.rpartition("/")[2]
    for state in (sequence.outcome.after, sequence.outcome.before):
        for (_, logical_id), (_, identifier) in state.resources.items():
            if identifier == wanted:
                return logical_id
    return wanted
