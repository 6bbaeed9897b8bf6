"""Rehearsals of ``examples/pipelines_stage``, whose stages are in two accounts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from programs import PROJECT, synthesize_app

from cdk_rehearse import rehearse
from constructs_triton.cli import main

BUDGET_MINUTES = 1
STAGING, PRODUCTION = "aws://111111111111/eu-west-1", "aws://222222222222/eu-west-1"


@pytest.fixture(scope="module")
def synthesized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stages") / "cdk.out"
    synthesize_app(PROJECT / "examples" / "pipelines_stage" / "app.py", folder, is_validated=False)
    return folder


def test_workflow_passes_on_unchanged_stages(
    synthesized: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command of the workflow that ``project new`` writes finds nothing to
    change in both accounts.
    """
    assert main(["rehearse", str(synthesized), str(synthesized)]) == 0
    text = capsys.readouterr().out
    assert "0 resources changed" in text
    assert "0 errors, 0 warnings." in text
    for place, count in ((STAGING, 1), (PRODUCTION, 4)):
        assert f"digits ({place}): {count} before" in text


def test_edit_of_one_stage_is_reported_for_its_account(synthesized: Path, tmp_path: Path) -> None:
    """Another name in production is a problem of callers there, and no step concerns staging."""
    edited = shutil.copytree(synthesized, tmp_path / "cdk.out")
    (template,) = (edited / "assembly-Pipeline-Production").glob("*.template.json")
    template.write_text(
        template.read_text().replace('"EndpointName": "digits"', '"EndpointName": "numbers"')
    )
    found = rehearse(synthesized, edited, failures="none", orders=1)
    assert {each.stack for each in found.steps} == {"Production-Digits"}
    assert [(each.code, each.path) for each in found.problems] == [
        ("rehearse-endpoint-replaced", f"endpoint digits ({PRODUCTION})")
    ]
