"""The updates of the examples, each a change that a next deployment brings or takes back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from app_changes import CHANGES, changed
from example_apps import CAPABILITIES, run_app
from stack_update import Grant, lost_grants

#: Together they have all kinds of permissions, and every change concerns one of them.
FULLEST = ("inference_components", "kms", "multi_model")
OTHERS = [name for name in CAPABILITIES if name not in FULLEST]

Update = tuple[str | None, str | None]
UPDATES: list[Update] = [
    *((change, None) for change in CHANGES),
    *((None, change) for change in CHANGES),
    ("image in ECR", "image in another ECR repository"),
    ("image in another ECR repository", "image in ECR"),
]


@cache
def templates(name: str, change: str | None) -> Mapping[str, Any]:
    """The templates of an example after a change, by stack."""
    with TemporaryDirectory() as directory, changed(change, Path(directory)):
        app = run_app(name, Path(directory) / "cdk.out", is_validated=False)
        return {stack.display_name: stack.template for stack in app.synth().stacks_recursively}


def grants_lost_by(name: str, update: Update) -> dict[str, set[Grant]]:
    """What serving roles lose before the cleanup phase, by stack."""
    before, after = (templates(name, change) for change in update)
    lost = {
        stack: lost_grants(template, after[stack])
        for stack, template in before.items()
        if stack in after
    }
    return {stack: grants for stack, grants in lost.items() if grants}


def title(update: Update) -> str:
    """The id of an update's test."""
    return f"{update[0] or 'example'} -> {update[1] or 'example'}".replace(" ", "_")
