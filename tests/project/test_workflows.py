"""The workflow files call the Makefile, with no more permissions than they need;
the forms are complete.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from members import members_of

PROJECT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(
    {*(PROJECT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")}
    - {PROJECT / ".github/ISSUE_TEMPLATE/config.yml"}
)
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_runs_only_targets_of_the_makefile(workflow: Path) -> None:
    """Each command is a target, so that everyone can run what the workflow runs."""
    commands = re.findall(r"^ +- run: (.+)$", workflow.read_text(), re.MULTILINE)
    assert [
        each for each in commands if not each.startswith("make ") or each.split()[1] not in TARGETS
    ] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_may_only_read(workflow: Path) -> None:
    """Jobs may read the content; only those that publish may write,
    and they run no code of the project.
    """
    text = workflow.read_text()
    assert "\npermissions:\n  contents: read\n" in text
    assert "contents: write" not in text
    for job in re.split(r"\n  (?=\w+:\n)", text.partition("\njobs:\n")[2]):
        assert ": write" not in job or "- run:" not in job
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


def test_release_publishes_every_package() -> None:
    """Each package is uploaded and published, after those that it requires."""
    text = (PROJECT / ".github" / "workflows" / "release.yml").read_text()
    names = [member.name for member in members_of()]
    uploaded = re.findall(r"^ +name: ([\w-]+)\n +path: dist/(\w+)-\*$", text, re.MULTILINE)
    assert uploaded == [(name, name.replace("-", "_")) for name in names]
    (published,) = re.findall(r"^ +project: \[(.+)\]$", text, re.MULTILINE)
    assert published.split(", ") == names
    assert "max-parallel: 1" in text


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_their_commit(workflow: Path) -> None:
    """A tag or a branch of an action can be moved to other code;
    the version is beside the commit.
    """
    used = re.findall(r"^ +(?:- )?uses: (?!\./)(.+)$", workflow.read_text(), re.MULTILINE)
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[0-9.]+")
    assert [each for each in used if pinned.fullmatch(each) is None] == []


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_form_asks_for_what_happened(form: Path) -> None:
    """Each form for issues has a name, a description and a required field,
    and every field has a label.
    """
    content = yaml.safe_load(form.read_text())
    assert content["name"]
    assert content["description"]
    fields = [each for each in content["body"] if each["type"] != "markdown"]
    assert all(each["attributes"]["label"] for each in fields)
    assert any(each.get("validations", {}).get("required") for each in fields)
    assert len({each["id"] for each in fields}) == len(fields)


def test_pull_request_names_only_targets_of_the_makefile() -> None:
    """The list of a pull request has commands that exist."""
    text = (PROJECT / ".github" / "PULL_REQUEST_TEMPLATE.md").read_text()
    named = re.findall(r"`make ([a-z0-9-]+)`", text)
    assert named
    assert [each for each in named if each not in TARGETS] == []
