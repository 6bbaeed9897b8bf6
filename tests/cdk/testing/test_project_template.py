"""The project of ``constructs-triton project new``, in the environment of our tests."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from constructs_triton.cli import main
from constructs_triton.testing import assert_no_replacement, stable_template


@pytest.mark.parametrize(
    "options",
    [[], ["--example", "digits"], ["--example", "multi-model"]],
    ids=["template", "digits", "multi-model"],
)
def test_snapshot_of_a_new_project_is_current(options: list[str], tmp_path: Path) -> None:
    """The recorded template is the one that its app has now.

    After a change that is wanted: run pytest --snapshot-update in a new project and copy the file.
    """
    project = tmp_path / "triton-project"
    assert main(["project", "new", str(project), *options]) == 0
    app = runpy.run_path(str(project / "app.py"))["build_app"]()
    recorded = project / "tests" / "__snapshots__" / "test_stack" / "test_template.json"
    stack = app.node.find_child("Endpoint")
    assert stable_template(stack) == json.loads(recorded.read_text())
    assert_no_replacement(recorded, stack)
