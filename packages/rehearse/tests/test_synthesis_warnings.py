"""Warnings of a synthesis in a rehearsal."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sns as sns

from cdk_rehearse import rehearse
from cdk_rehearse.cli.text import report_lines

pytestmark = pytest.mark.e2e


def synthesize(folder: Path, *warnings: str) -> Path:
    """Write an app of one stage, whose warnings ``cdk synth --quiet`` does not print."""
    app = cdk.App(outdir=str(folder), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(cdk.Stage(app, "Prod"), "Shop")
    for name in ("News", "Orders"):
        topic = sns.Topic(stack, name)
        for text in warnings:
            cdk.Annotations.of(topic).add_warning_v2(f"shop:{text}", f"{text}: is doubtful")
    app.synth()
    return folder


def test_rehearsal_shows_the_warnings_that_the_update_adds(tmp_path: Path) -> None:
    """Each new warning of the synthesis is listed once, with its constructs and its ID, and none
    counts as a problem of the rehearsal.
    """
    old = synthesize(tmp_path / "old", "one")
    new = synthesize(tmp_path / "new", "one", "two")
    found = rehearse(old, new, failures="none", orders=1)
    assert found.synthesis_warnings == (
        "Prod/Shop/News, Prod/Shop/Orders: two: is doubtful (shop:two)",
    )
    lines = list(report_lines(found))
    assert (
        "  synth warns     Prod/Shop/News, Prod/Shop/Orders: two: is doubtful (shop:two)" in lines
    )
    assert lines[-1] == "0 errors, 0 warnings."
