"""The project of ``constructs-triton project new``, in the environment of our tests."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import constructs_triton
from constructs_triton.testing import assert_no_replacement, stable_template

TEMPLATE = Path(constructs_triton.__file__).parent / "cli" / "project" / "template"


def test_snapshot_of_a_new_project_is_current() -> None:
    """The recorded template is the one that its app has now.

    After a change that is wanted: run pytest --snapshot-update in a new project and copy the file.
    """
    app = runpy.run_path(str(TEMPLATE / "app.py"))["build_app"]()
    recorded = TEMPLATE / "tests" / "__snapshots__" / "test_stack" / "test_template.json"
    stack = app.node.find_child("Endpoint")
    assert stable_template(stack) == json.loads(recorded.read_text())
    assert_no_replacement(recorded, stack)
