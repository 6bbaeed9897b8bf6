"""What pytest prints when a template differs from its snapshot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TEST = """
import json
from pathlib import Path

from constructs_triton.testing import TritonTemplateExtension


def test_template(snapshot):
    template = json.loads(Path("template.json").read_text())
    assert template == snapshot(extension_class=TritonTemplateExtension)


def test_other_values(snapshot):
    assert ["of", "syrupy"] == snapshot
"""


def template(**sizes: int) -> dict[str, Any]:
    """Return a template of 3,000 lines in which each resource has a size."""
    names = [f"Role{number:03}" for number in range(300)]
    resources = {
        name: {"Properties": {"Size": sizes.get(name, 1), "Tags": ["a", "b"]}} for name in names
    }
    return {"Resources": {**resources, **{f"More{name}": each for name, each in resources.items()}}}


@pytest.mark.parametrize("ci", [{}, {"CI": "1"}], ids=["terminal", "CI"])
def test_every_difference_is_printed(ci: dict[str, str], tmp_path: Path) -> None:
    """Differences far apart are printed with the names of their resources,
    in CI and in a terminal.
    """
    snapshot = tmp_path / "__snapshots__" / "test_shop" / "test_template.json"
    snapshot.parent.mkdir(parents=True)
    snapshot.write_text(json.dumps(template(), indent=2, sort_keys=True) + "\n")
    (tmp_path / "template.json").write_text(json.dumps(template(Role001=8, Role290=9)))
    (tmp_path / "test_shop.py").write_text(TEST)
    plugins = ("-p", "syrupy", "-p", "constructs_triton.testing.plugin")
    environment = {
        name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--show-capture=no", *plugins],
        cwd=tmp_path,
        env={**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "60", **ci},
        check=False,
        capture_output=True,
        text=True,
    )
    _, path, differences = done.stdout.partition(
        "test_template.json: differs in 4 places, listed below"
    )
    assert path, done.stdout
    for place, size in (("Role001", 8), ("Role290", 9), ("MoreRole001", 8), ("MoreRole290", 9)):
        _, heading, rest = differences.partition(f"\nResources/{place}/Properties:\n")
        assert heading, done.stdout
        assert f'\n-         "Size": 1,\n+         "Size": {size},\n' in rest[:300]
    assert "run `pytest --snapshot-update`" in done.stdout
    assert "Snapshot 'test_other_values' does not exist!" in done.stdout
