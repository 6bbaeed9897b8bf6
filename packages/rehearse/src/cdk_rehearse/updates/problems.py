"""The problems of an update, with a code, a text and a fix each."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from dataclasses import replace

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.findings import Severity

from ..steps import Step
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
        yield _failed_update(outcome, declared)
    yield from reader_problems(sequence)
    yield from undecided_problems(sequence)
    yield from data_problems(sequence)
    yield from _shrinking(sequence, fleets)
    yield from late_log_problems(outcome)
    if not outcome.is_complete:
        return

    if is_deletion:
        yield from leftover_problems("after the deletion", outcome, _PAID)
        return
    yield from leftover_problems("after the update", outcome, PAID_BY_HOUR)
    yield from _stopping(sequence)
    yield from scaling_problems(outcome)


def _failed_update(outcome: Outcome, declared: Container[str]) -> Problem:
    """Return the problem of an update that CloudFormation does not complete."""
    is_collision = _COLLISION.search(outcome.reason)
    code = "rehearse-name-collision" if is_collision else "rehearse-update-fails"
    message = f"the update ends as {outcome.last_status}: {outcome.reason}"
    return _refused(code, _place_of(outcome, declared), message, outcome.last_stack)


def reader_problems(sequence: Sequence, when: str = "") -> Iterator[Problem]:
    """One problem for each endpoint and version whose models can no longer be read."""
    before = sequence.before.readings if sequence.before else ()
    refused_before = set()
    for reading in before:
        if reading.refusal:
            refused_before.add((reading.endpoint, reading.object))

    seen = set()
    number = 0  # of the step, as the rehearsal counts them
    for moment in sequence.outcome.moments:
        if moment.step.action in CHANGES:
            number += 1
        for reading in moment.readings:
            if not reading.refusal or (reading.endpoint, reading.object) in refused_before:
                continue
            version = (reading.endpoint, sequence.is_old(reading))
            if version in seen:
                continue
            seen.add(version)
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
    types = {}
    for place, resource in sequence.outcome.after.resources.items():
        _, logical_id = place
        resource_type, _ = resource
        types[logical_id] = resource_type

    for before, after in sequence.drops():
        is_scaling = types.get(after.moment.subject) in _TARGETS
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
        is_given = any(name in fleets for name in _names_of(sequence, after.endpoint))
        if is_scaling and not is_given:
            found = replace(found, severity=Severity.WARNING)
        yield found


def _names_of(sequence: Sequence, endpoint: str) -> Iterator[str]:
    """The name and the logical IDs of an endpoint."""
    yield endpoint
    for place, resource in sequence.outcome.before.resources.items():
        _, logical_id = place
        _, arn = resource
        if _is_arn_of(arn, endpoint):
            yield logical_id


def _stopping(sequence: Sequence) -> Iterator[Problem]:
    """Yield a problem for each endpoint that does not exist for a time, or any more."""
    if sequence.before is None:
        return
    for name in sequence.before.serving:
        for moment in sequence.outcome.moments:
            if name not in moment.serving:
                yield _stopped(sequence, name, moment.step)
                break


def _stopped(sequence: Sequence, name: str, step: Step) -> Problem:
    """Return the problem of an endpoint that does not exist after a step."""
    place = f"endpoint {name}"
    if name in sequence.outcome.moments[-1].serving:
        return problem(
            "rehearse-serving-stops",
            place,
            f"{step}: the endpoint does not exist until a later step creates it again",
        )

    successor = _successor(sequence, name)
    if successor:
        return problem(
            "rehearse-endpoint-replaced",
            place,
            f"callers of {name} get errors from {step} on; the new endpoint is {successor}",
        )
    return problem(
        "rehearse-serving-stops",
        place,
        f"{step}: the endpoint is deleted, and none takes its place",
        "keep it until its last caller has left",
    )


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
    moments = sequence.outcome.moments
    if moments:
        for name in moments[-1].serving:
            if _is_arn_of(arn, name):
                return name
    return arn.rpartition("/")[2]


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
    if not sequence.outcome.is_complete:
        return

    is_lost = any(reading.refusal for reading in sequence.outcome.moments[-1].readings)
    loss = ", and the cleanup deletes the permissions that new instances of it need"
    yield problem(
        "rehearse-revert-unnoticed",
        logical_id,
        "if SageMaker returns to the old configuration without an error, the stack reports "
        f"success, the old version serves{loss if is_lost else ''}",
        stack=stack,
    )


def leftover_problems(when: str, outcome: Outcome, types: Container[str]) -> Iterator[Problem]:
    """A warning for each resource of these types, which cost money."""
    for left in outcome.leftovers:
        if left.type in types:
            message = f"{when}, this {left.type} remains without a stack and costs money"
            fix = _DATA.get(left.type, "")
            yield problem("rehearse-leftover", left.logical_id, message, fix, stack=left.stack)


def late_log_problems(outcome: Outcome) -> Iterator[Problem]:
    """A warning for each log group that the operation deletes and that
    SageMaker may create again.
    """
    kept = {name for _, name in outcome.after.resources.values()}
    kept |= {left.physical_id for left in outcome.leftovers}
    created_again = outcome.late_log_groups - kept
    for place, resource in outcome.before.resources.items():
        stack, logical_id = place
        resource_type, name = resource
        # A log group with a generated name has another one in the next deployment.
        is_in_the_way = name in created_again and not GENERATED.search(name)
        if resource_type == "AWS::Logs::LogGroup" and is_in_the_way:
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
        yield _refused("rehearse-deletion-fails", place, message, outcome.last_stack)
    yield from late_log_problems(outcome)
    if not outcome.moments:
        return

    seen: set[str] = set()
    for reading in outcome.moments[-1].readings:
        if reading.refusal and reading.endpoint not in seen:
            seen.add(reading.endpoint)
            yield problem(
                "rehearse-retained-needs",
                reading.endpoint,
                "after `cdk destroy`, the retained endpoint cannot start an instance: "
                f"{reading.refusal}",
            )


def _place_of(outcome: Outcome, declared: Container[str]) -> str:
    """The resource that the last operation failed at; the stack if it is about the whole stack."""
    found = _FAILED_AT.match(outcome.reason)
    if found is not None and found[1] in declared:
        return found[1]
    return outcome.last_stack


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
