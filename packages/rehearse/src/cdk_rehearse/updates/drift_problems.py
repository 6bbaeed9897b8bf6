"""What an update does to what was changed in AWS outside of CloudFormation.

Source: CloudFormation User Guide, "Detect unmanaged configuration changes to stacks and resources
with drift detection": an update applies the differences between two templates. So it keeps what was
changed by hand, unless the property changes in the template too, and it fails where it changes a
resource that was deleted.
"""

from __future__ import annotations

from collections.abc import Iterator

from .problems import problem
from .report import Problem, RehearsedStep
from .versions import Drift, Request

__all__ = ["drift_problems"]

_REPLACED = ("replace", "create")
_MOST_SHOWN = 3


def drift_problems(request: Request, steps: tuple[RehearsedStep, ...]) -> Iterator[Problem]:
    """Yield a warning for each resource of OLD that differs in AWS from its template."""
    actions = {step.logical_id: step.action for step in steps if not step.is_cleanup}
    for drift in request.old.drifts:
        text = _text(drift, actions.get(drift.logical_id, ""))
        stack = request.old.stacks[0].name
        yield problem("rehearse-drifted", drift.logical_id, text, stack=stack)


def _text(drift: Drift, action: str) -> str:
    if not drift.differences:
        if action in _REPLACED:
            return f"this {drift.type} was deleted in AWS; this update creates it again"
        end = "this update changes it, and fails" if action else "this update does not notice"
        return f"this {drift.type} was deleted in AWS; {end}"

    shown = [
        f"{path} is {actual}, and {expected} in the template"
        for path, expected, actual in drift.differences[:_MOST_SHOWN]
    ]
    others = len(drift.differences) - len(shown)
    if others:
        shown.append(f"and {others} more")
    end = "this update keeps that unless it changes the same property"
    if action in _REPLACED:
        end = "this update creates the resource again as the template has it"
    return f"was changed in AWS: {'; '.join(shown)}; {end}"
