"""The problems of an update, with a code, a text and a fix each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.facts.failures import fix_of
from constructs_triton_core.findings import Finding, Severity

from .analysis import CHANGES, RESTORE, Sequence, since
from .data_problems import data_problems
from .report import Leftover
from .trial import Outcome

_COLLISION = re.compile(r"already exist|custom-named resource|Cannot create already", re.I)
_PAID = (
    "AWS::SageMaker::Endpoint",
    "AWS::SageMaker::InferenceComponent",
    "AWS::S3::Bucket",
    "AWS::KMS::Key",
    "AWS::EC2::NatGateway",
    "AWS::EC2::VPCEndpoint",
)
_GENERATED = re.compile(r"-[A-Z0-9]{12}$")
"""The end of a name that CloudFormation generates; the next deployment has another one."""
_KEEP = (
    "keep for one more deployment what allows it, in the policies of the role, the bucket and the key; keep "
    "a key that changes in TritonModelRepository(previous_encryption_keys=[...])"
)
_SCALED = "must be deregistered as scalable targets"
_FIXES = {
    _SCALED: fix_of("scaled-variant-update"),
    "InsufficientInstanceCapacity": fix_of("insufficient-capacity"),
    "account-level service limit": fix_of("quota-instances"),
    "not enough hardware resources on the instances": "raise max_instance_count of the endpoint, so that new "
    "copies start beside those that serve, or deploy when fewer copies run",
    r"[Ee]xport \S+ .*as it is in use by": "keep the export for one more deployment, with "
    "Stack.export_value, and remove it in the next one",
}
"""The fix for each reason of a failed update."""
_INTERFACES = "has a dependent object: a network interface of endpoint"
_INTERFACES_FIX = "create the network in another stack, and retain security groups of this one too"


def update_problems(sequence: Sequence, *, is_deletion: bool) -> Iterator[Finding]:
    """The problems of an update without failures."""
    outcome = sequence.outcome
    if not outcome.is_complete:
        yield _refused(outcome)
    yield from reader_problems(sequence)
    yield from data_problems(sequence)
    yield from _shrinking(sequence)
    yield from late_log_problems(outcome)
    if outcome.is_complete and not is_deletion:
        yield from _stopping(sequence)


def _refused(outcome: Outcome) -> Finding:
    name, status = list(outcome.status)[-1], outcome.last_status
    message = f"the update ends as {status}: {outcome.reason}"
    if _COLLISION.search(outcome.reason):
        fix = "give the resource another name, or remove the one that has the name in a deployment before"
        return _error("rehearse-name-collision", name, message, fix)
    fixes = (fix for pattern, fix in _FIXES.items() if re.search(pattern, outcome.reason))
    fix = next(fixes, "change what the reason names, and rehearse again")
    return _error("rehearse-update-fails", name, message, fix)


def reader_problems(sequence: Sequence, when: str = "") -> Iterator[Finding]:
    """One problem for each endpoint and version whose models can no longer be read."""
    known = _refused_before(sequence)
    number, seen = 0, set()
    for moment in sequence.outcome.moments:
        number += moment.step.action in CHANGES
        for reading in moment.readings:
            place = (reading.endpoint, sequence.is_old(reading), bool(reading.refusal))
            if not reading.refusal or (reading.endpoint, reading.object) in known or place in seen:
                continue
            seen.add(place)
            start = when or since(number, moment.step)
            yield _error(
                "rehearse-reader-loses-access",
                reading.endpoint,
                f"{start}, a new instance cannot start: {reading.refusal}. It matters when the endpoint "
                "scales out or SageMaker replaces a host; instances that run keep serving",
                RESTORE if moment.step.action == "meanwhile" else _KEEP,
            )


def _refused_before(sequence: Sequence) -> set[tuple[str, str]]:
    before = sequence.before
    return {(each.endpoint, each.object) for each in (before.readings if before else ()) if each.refusal}


def _shrinking(sequence: Sequence) -> Iterator[Finding]:
    for before, after in sequence.drops():
        yield _error(
            "rehearse-fleet-shrinks",
            f"endpoint {after.endpoint}",
            f"{after.moment}: variant {after.variant} gets {after.count} instances, it has {before.count}; "
            "the others stop while they are needed",
            f"set initial_instance_count={before.count} in this deployment",
        )


def _stopping(sequence: Sequence) -> Iterator[Finding]:
    first = {} if sequence.before is None else sequence.before.serving
    moments = sequence.outcome.moments
    last = moments[-1].serving if moments else first
    for name in first:
        absent = next((each for each in moments if name not in each.serving), None)
        if absent is None:
            continue
        successor = _successor(sequence, name)
        code = "rehearse-serving-stops"
        if name in last:
            text = f"{absent.step}: the endpoint does not exist until a later step creates it again"
            fix = "keep its construct ID and its name"
        elif successor:
            code = "rehearse-endpoint-replaced"
            text = f"callers of {name} get errors from {absent.step} on; the new endpoint is {successor}"
            fix = "keep endpoint_name and the construct ID as they are, or move the callers before"
        else:
            text = f"{absent.step}: the endpoint is deleted, and none takes its place"
            fix = "keep it until its last caller has left"
        yield _error(code, f"endpoint {name}", text, fix)


def _successor(sequence: Sequence, name: str) -> str:
    before, after = sequence.outcome.before.resources, sequence.outcome.after.resources
    for place, (_, identifier) in before.items():
        if identifier.endswith(f":endpoint/{name}") and place in after:
            return after[place][1].rpartition("/")[2]
    new = [
        identifier.rpartition("/")[2]
        for place, (kind, identifier) in after.items()
        if kind in ENDPOINT_TYPES and place not in before
    ]
    return ", ".join(new)


def failure_problems(sequence: Sequence, logical_id: str) -> Iterator[Finding]:
    """The problems after a failure of one step."""
    outcome = sequence.outcome
    status = outcome.last_status
    if status in ("ROLLBACK_FAILED", "UPDATE_ROLLBACK_FAILED"):
        message = f"if the step fails, the rollback ends as {status}: {outcome.reason}"
        fix = "fix the reason, then run `npx cdk rollback`; CloudFormation accepts no update before"
        if _SCALED in outcome.reason:
            fix = (
                "deploy the change of the variant first, with endpoint.retain_instance_counts() in place of "
                "its scaling, and add the scaling in the next deployment"
            )
        yield _error("rehearse-rollback-fails", logical_id, message, fix)
    yield from reader_problems(sequence, "if the step fails, after its rollback")
    yield from data_problems(sequence, "if the step fails, after its rollback")
    yield from leftover_problems("if a step fails", outcome.leftovers)


def revert_problems(sequence: Sequence, logical_id: str) -> Iterator[Finding]:
    """A warning if the stack does not notice that SageMaker returned to the old configuration."""
    if sequence.outcome.is_complete:
        lost = any(each.refusal for each in sequence.outcome.moments[-1].readings)
        text = ", and the cleanup deletes the permissions that new instances of it need" if lost else ""
        yield Finding(
            "rehearse-revert-unnoticed",
            Severity.WARNING,
            logical_id,
            "if SageMaker returns to the old configuration without an error, the stack reports success, "
            f"the old version serves{text}",
            "set verify_update=True on the endpoint",
        )


def leftover_problems(when: str, leftovers: Iterable[Leftover]) -> Iterator[Finding]:
    """A warning for each resource that costs money."""
    for each in leftovers:
        if each.type in _PAID:
            yield Finding(
                "rehearse-leftover",
                Severity.WARNING,
                each.logical_id,
                f"{when}, this {each.type} remains without a stack and costs money",
                "delete it by hand afterwards, or set its removal_policy to RemovalPolicy.DESTROY",
            )


def late_log_problems(outcome: Outcome) -> Iterator[Finding]:
    """A warning for each log group that the operation deletes and that SageMaker may create again."""
    kept = {name for _, name in outcome.after.resources.values()} | {
        each.physical_id for each in outcome.leftovers
    }
    for (_, logical_id), (kind, name) in outcome.before.resources.items():
        is_late = name in outcome.late_log_groups - kept and not _GENERATED.search(name)
        if kind == "AWS::Logs::LogGroup" and is_late:
            yield Finding(
                "rehearse-log-group-returns",
                Severity.WARNING,
                logical_id,
                f"SageMaker may create {name} again, for events that arrive after the deletion; the next "
                "deployment then fails because the log group exists",
                "set log_retention on the endpoint or component in place of your own log group, or deny its "
                "role logs:CreateLogGroup for this group",
            )


def deletion_problems(sequence: Sequence) -> Iterator[Finding]:
    """The problems of deleting the new version later."""
    outcome = sequence.outcome
    if not outcome.is_complete:
        yield _error(
            "rehearse-deletion-fails",
            list(outcome.status)[-1],
            f"`cdk destroy` ends as {outcome.last_status}: {outcome.reason}",
            _INTERFACES_FIX
            if _INTERFACES in outcome.reason
            else "remove what the reason names first, or retain the resource",
        )
    yield from late_log_problems(outcome)
    seen: set[str] = set()
    for reading in outcome.moments[-1].readings if outcome.moments else ():
        if reading.refusal and reading.endpoint not in seen:
            seen.add(reading.endpoint)
            yield _error(
                "rehearse-retained-needs",
                reading.endpoint,
                f"after `cdk destroy`, the retained endpoint cannot start an instance: {reading.refusal}",
                "retain the model repository and the role too (removal_policy=RemovalPolicy.RETAIN)",
            )


def _error(code: str, place: str, message: str, hint: str) -> Finding:
    return Finding(code, Severity.ERROR, place, message, hint)
