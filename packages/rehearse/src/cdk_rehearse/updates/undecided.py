"""What a policy outside of the stacks may allow, and none of the stacks does.

Source: IAM user guide, "Policy evaluation logic": in one account, the policy of a role or that of
the resource allows an action. The policy of a bucket that no stack creates is not known.
"""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton_core.findings import Severity

from ..services.service_api import Undecided
from .analysis import Sequence
from .report import Problem

__all__ = ["undecided_problems"]


def undecided_problems(sequence: Sequence) -> Iterator[Problem]:
    """Yield a warning for the first action of each role on each resource outside of the stacks."""
    before = sequence.before.readings if sequence.before else ()
    read = {reading.object for reading in before}
    seen = set()
    for question in sorted(sequence.outcome.undecided):
        place = _bucket(question.resource)
        if (question.role_arn, place) in seen:
            continue
        seen.add((question.role_arn, place))
        is_read = any(name.startswith(_beginning(question.resource)) for name in read)
        code = "rehearse-reader-loses-access" if is_read else "rehearse-update-may-fail"
        yield _warning(code, _name_of(sequence, question), question)


def _warning(code: str, name: str, question: Undecided) -> Problem:
    """Return a warning about a permission that only a policy outside may give."""
    role = question.role_arn.rpartition("/")[2]
    return Problem(
        code,
        Severity.WARNING,
        name,
        f"no policy of the stacks allows the role {role} {question.action} on {question.resource}; "
        "it is outside of the stacks, and its own policy may allow this",
        f"allow {question.action} in a policy of the role, or make sure that the policy of the "
        "resource does",
    )


def _beginning(resource: str) -> str:
    """The beginning of the name that instances use: of an object, or of an image."""
    parts = resource.split(":", 5)
    if parts[2] != "ecr":
        return resource.replace("arn:aws:s3:::", "s3://")
    repository = parts[5].removeprefix("repository/")
    return f"{parts[4]}.dkr.ecr.{parts[3]}.amazonaws.com/{repository}"


def _bucket(resource: str) -> str:
    """The bucket of an object; any other resource itself."""
    return resource.partition("/")[0] if resource.startswith("arn:aws:s3:::") else resource


def _name_of(sequence: Sequence, question: Undecided) -> str:
    """The logical ID of a role, or its name if no stack has it."""
    role = question.role_arn.rpartition("/")[2]
    for (_, logical_id), (kind, name) in sequence.outcome.after.resources.items():
        if kind == "AWS::IAM::Role" and name == role:
            return logical_id
    return role
