"""The problems of an update, with a code, a text and a fix each."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import replace

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.findings import Severity

from .analysis import CHANGES, RESTORE, Sequence, since
from .codes import CODES, PAID_BY_HOUR, has_wanted_refusal, refusal_of
from .data_problems import data_problems
from .report import GENERATED, Problem
from .scaling_problems import scaling_problems
from .trial import Outcome
from .undecided import undecided_problems

_FAILED_AT = re.compile(r"(?:The following resource\(s\) failed to delete: \[)?(\w+)(?::|\])")
"""The beginning of a reason that names the resource."""
_COLLISION = re.compile(r"already (exist|export|own)|custom-named resource", re.I)
_DATA = {
    "AWS::KMS::Key": (
        "keep it as long as anything that it has encrypted is needed, and import it into the next "
        "stack with kms.Key.from_key_arn"
    ),
    "AWS::S3::Bucket": (
        "keep it as long as its objects are needed, and import it into the next stack with "
        "s3.Bucket.from_bucket_name"
    ),
}
"""What to do with a resource with data that remains: no advice may lose the data."""
_PAID = (*PAID_BY_HOUR, *_DATA)
_TARGETS = "AWS::ApplicationAutoScaling::ScalableTarget", "Custom::TritonScalableTarget"
_NOT_STATED = "; no document of AWS states this, so AWS may accept the change"


def update_problems(
    sequence: Sequence, declared: Container[str], *, is_deletion: bool, fleets: Container[str]
) -> Iterator[Problem]:
    """The problems of an update without failures. The user has given the sizes of ``fleets``;
    ``declared`` are the logical IDs of both versions.
    """
    outcome = sequence.outcome
    if not outcome.is_complete:
        code = (
            "rehearse-name-collision"
            if _COLLISION.search(outcome.reason)
            else "rehearse-update-fails"
        )
        message = f"the update ends as {outcome.last_status}: {outcome.reason}"
        yield _refused(code, _place_of(outcome, declared), message, list(outcome.status)[-1])
    yield from reader_problems(sequence)
    yield from undecided_problems(sequence)
    yield from data_problems(sequence)
    yield from _shrinking(sequence, fleets)
    yield from late_log_problems(outcome)
    if outcome.is_complete:
        paid = _PAID if is_deletion else PAID_BY_HOUR
        yield from leftover_problems(
            f"after the {'deletion' if is_deletion else 'update'}", outcome, paid
        )
        if not is_deletion:
            yield from _stopping(sequence)
            yield from scaling_problems(outcome)


def reader_problems(sequence: Sequence, when: str = "") -> Iterator[Problem]:
    """One problem for each endpoint and version whose models can no longer be read."""
    before = sequence.before.readings if sequence.before else ()
    known = {(each.endpoint, each.object) for each in before if each.refusal}
    number, seen = 0, set()
    for moment in sequence.outcome.moments:
        number += moment.step.action in CHANGES
        for reading in moment.readings:
            place = (reading.endpoint, sequence.is_old(reading), bool(reading.refusal))
            if not reading.refusal or (reading.endpoint, reading.object) in known or place in seen:
                continue
            seen.add(place)
            start = when or since(number, moment.step)
            yield problem(
                "rehearse-reader-loses-access",
                reading.endpoint,
                f"{start}, a new instance cannot start: {reading.refusal}. It matters when the "
                "endpoint scales out or SageMaker replaces a host; instances that run keep serving",
                RESTORE if moment.step.action == "meanwhile" else "",
            )


def _shrinking(sequence: Sequence, fleets: Container[str]) -> Iterator[Problem]:
    """Fleets that lose instances: a warning if scaling removes those that
    are only assumed to run.
    """
    after_types = {name: kind for (_, name), (kind, _) in sequence.outcome.after.resources.items()}
    for before, after in sequence.drops():
        is_scaling = after_types.get(after.moment.subject) in _TARGETS
        if is_scaling:
            fix = (
                f"set max_capacity (MaxCapacity of the scalable target)={before.count} in this "
                "deployment"
            )
        else:
            fix = (
                f"set initial_instance_count={before.count} in this deployment; if another stack "
                "scales the endpoint, call retain_instance_counts() on it "
                "(RetainAllVariantProperties), so that each update keeps the count"
            )
        found = problem(
            "rehearse-fleet-shrinks",
            f"endpoint {after.endpoint}",
            f"{after.moment}: variant {after.variant} gets {after.count} instances, it has "
            f"{before.count}; the others stop while they are needed",
            fix,
        )
        is_assumed = not any(name in fleets for name in _names_of(sequence, after.endpoint))
        yield replace(found, severity=Severity.WARNING) if is_scaling and is_assumed else found


def _names_of(sequence: Sequence, endpoint: str) -> tuple[str, ...]:
    """The name and the logical IDs of an endpoint."""
    resources = sequence.outcome.before.resources.items()
    return endpoint, *(name for (_, name), (_, each) in resources if _is_arn_of(each, endpoint))


def _stopping(sequence: Sequence) -> Iterator[Problem]:
    """Yield a problem for each endpoint that does not exist for a time, or any more."""
    first = {} if sequence.before is None else sequence.before.serving
    moments = sequence.outcome.moments
    last = moments[-1].serving if moments else first
    for name in first:
        absent = next((each for each in moments if name not in each.serving), None)
        if absent is None:
            continue
        successor = _successor(sequence, name)
        code, fix = "rehearse-serving-stops", ""
        if name in last:
            text = f"{absent.step}: the endpoint does not exist until a later step creates it again"
        elif successor:
            code = "rehearse-endpoint-replaced"
            text = (
                f"callers of {name} get errors from {absent.step} on; "
                f"the new endpoint is {successor}"
            )
        else:
            text = f"{absent.step}: the endpoint is deleted, and none takes its place"
            fix = "keep it until its last caller has left"
        yield problem(code, f"endpoint {name}", text, fix)


def _successor(sequence: Sequence, name: str) -> str:
    """Return the endpoint that takes the place of another one, or all new endpoints."""
    before = sequence.outcome.before.resources
    after = sequence.outcome.after.resources
    for place, (_, identifier) in before.items():
        if _is_arn_of(identifier, name) and place in after:
            _, successor = after[place]
            return _endpoint_name(sequence, successor)

    new = []
    for place, (resource_type, identifier) in after.items():
        if resource_type in ENDPOINT_TYPES and place not in before:
            new.append(_endpoint_name(sequence, identifier))
    return ", ".join(new)


def _is_arn_of(identifier: str, endpoint: str) -> bool:
    """Whether an identifier is the ARN of an endpoint, which has its name in lower case."""
    return identifier.lower().endswith(f":endpoint/{endpoint.lower()}")


def _endpoint_name(sequence: Sequence, arn: str) -> str:
    """The name of an endpoint as it was given, if it serves at the end; else that in its ARN."""
    last = sequence.outcome.moments[-1:]
    served = [name for moment in last for name in moment.serving if _is_arn_of(arn, name)]
    return served[0] if served else arn.rpartition("/")[2]


def failure_problems(sequence: Sequence, logical_id: str, stack: str) -> Iterator[Problem]:
    """The problems after a failure of one step."""
    outcome = sequence.outcome
    status = outcome.last_status
    has_failed = status in ("ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED")
    if has_failed and not has_wanted_refusal(outcome.reason):
        message = f"if the step fails, the rollback ends as {status}: {outcome.reason}"
        found = _refused("rehearse-rollback-fails", logical_id, message, stack)
        fix = refusal_of(message).rollback_fix or CODES[found.code].fix
        yield replace(found, hint=fix)
    yield from reader_problems(sequence, "if the step fails, after its rollback")
    yield from data_problems(sequence, "if the step fails, after its rollback")
    yield from leftover_problems("if a step fails", outcome, _PAID)


def revert_problems(sequence: Sequence, logical_id: str, stack: str) -> Iterator[Problem]:
    """A warning if the stack does not notice that SageMaker returned to the old configuration."""
    if sequence.outcome.is_complete:
        lost = any(each.refusal for each in sequence.outcome.moments[-1].readings)
        text = (
            ", and the cleanup deletes the permissions that new instances of it need"
            if lost
            else ""
        )
        message = (
            "if SageMaker returns to the old configuration without an error, "
            "the stack reports success"
        )
        yield problem(
            "rehearse-revert-unnoticed",
            logical_id,
            f"{message}, the old version serves{text}",
            stack=stack,
        )


def leftover_problems(when: str, outcome: Outcome, types: Container[str]) -> Iterator[Problem]:
    """A warning for each resource of these types, which cost money."""
    for each in outcome.leftovers:
        if each.type in types:
            message = f"{when}, this {each.type} remains without a stack and costs money"
            fix = _DATA.get(each.type, "")
            yield problem("rehearse-leftover", each.logical_id, message, fix, stack=each.stack)


def late_log_problems(outcome: Outcome) -> Iterator[Problem]:
    """A warning for each log group that the operation deletes and that
    SageMaker may create again.
    """
    kept = {name for _, name in outcome.after.resources.values()}
    kept |= {each.physical_id for each in outcome.leftovers}
    for (stack, logical_id), (kind, name) in outcome.before.resources.items():
        is_late = name in outcome.late_log_groups - kept and not GENERATED.search(name)
        if kind == "AWS::Logs::LogGroup" and is_late:
            yield problem(
                "rehearse-log-group-returns",
                logical_id,
                f"SageMaker may create {name} again, for events that arrive after the deletion; "
                "the next deployment then fails because the log group exists",
                stack=stack,
            )


def deletion_problems(sequence: Sequence, declared: Container[str]) -> Iterator[Problem]:
    """The problems of deleting the new version later."""
    outcome = sequence.outcome
    if not outcome.is_complete and not refusal_of(outcome.reason).is_wanted:
        message = f"`cdk destroy` ends as {outcome.last_status}: {outcome.reason}"
        place = _place_of(outcome, declared)
        stack = list(outcome.status)[-1]
        yield _refused("rehearse-deletion-fails", place, message, stack)
    yield from late_log_problems(outcome)
    seen: set[str] = set()
    for reading in outcome.moments[-1].readings if outcome.moments else ():
        if reading.refusal and reading.endpoint not in seen:
            seen.add(reading.endpoint)
            message = "after `cdk destroy`, the retained endpoint cannot start an instance"
            yield problem(
                "rehearse-retained-needs", reading.endpoint, f"{message}: {reading.refusal}"
            )


def _place_of(outcome: Outcome, declared: Container[str]) -> str:
    """The resource that the last operation failed at; the stack if it is about the whole stack."""
    found = _FAILED_AT.match(outcome.reason)
    logical_id = "" if found is None else found[1]
    return logical_id if logical_id in declared else list(outcome.status)[-1]


def problem(code: str, place: str, message: str, fix: str = "", *, stack: str = "") -> Problem:
    """Return a problem with the severity of its code, and by default with its fix."""
    known = CODES[code]
    return Problem(code, known.severity, place, message, fix or known.fix, stack=stack)


def _refused(code: str, place: str, message: str, stack: str) -> Problem:
    """The problem of a refusal; a warning if it is only inferred."""
    refusal = refusal_of(message)
    if refusal.basis != "inferred":
        return problem(code, place, message, refusal.fix, stack=stack)
    found = problem(code, place, message + _NOT_STATED, refusal.fix, stack=stack)
    return replace(found, severity=Severity.WARNING)
