"""Calm rehearsals of changes of app.py and of every example, compared with ``cdk diff``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from deploy_twice import NOT_DEPLOYED, deployable_stacks, project_apps, synthesize_apps
from programs import PROJECT, synthesize_app

from constructs_triton.cloud_assembly.assembly import Assembly
from constructs_triton.errors import TemplateError
from constructs_triton.rehearsal import rehearse
from constructs_triton.rehearsal.updates.report import Rehearsal

CDK = PROJECT / "node_modules" / ".bin" / "cdk"

BUDGET_MINUTES = 4
pytestmark = [
    pytest.mark.usefixtures("budget"),
    pytest.mark.skipif(
        shutil.which("node") is None or not CDK.exists(),
        reason="`cdk diff` needs Node and `npm ci`; the rehearsals run without it elsewhere",
    ),
]

#: Examples that cannot be rehearsed, with the reason.
REFUSED = {
    "existing_bucket": "its bucket and an archive exist before; a rehearsal has only what the stacks create"
}
#: Examples that the change of every config.pbtxt does not reach, since their apps write it.
UNCHANGED = ("bert_benchmark", "resnet_autoscaling")
APPS = [name for name in project_apps(PROJECT) if name not in (*NOT_DEPLOYED, *REFUSED)]
#: Changes of app.py: what to replace by what, and the codes of the problems.
VARIANTS = {
    "image": ('name="catalog",', 'name="catalog", image=constructs_triton.TritonImage.dlc("25.09"),', []),
    # SageMaker refuses it while the variant is a scalable target; scaling_guard=True makes it possible.
    "instance_type": (
        'ml.g5.xlarge"),\n            endpoint_name="catalog"',
        'ml.g6.xlarge"),\n            endpoint_name="catalog"',
        ["rehearse-update-fails"],
    ),
    "scaling": ("max_capacity=5", "max_capacity=8", []),
}
_CHANGE = re.compile(r"^\[[-+~]\] \S+::\S+ (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folders of all apps, before and after a change of every model."""
    folder = tmp_path_factory.mktemp("rehearsals")
    names = [*APPS, *REFUSED]
    before = synthesize_apps(folder / "before", names)
    return before, synthesize_apps(folder / "after", names, changes_models=True)


@pytest.mark.parametrize("name", APPS)
def test_change_of_models_is_clean(name: str, versions: tuple[Path, Path]) -> None:
    """New content is deployed without a problem, and changes what ``cdk diff`` says."""
    changed: set[str] = set()
    for old, new in stage_pairs(*(Assembly(each / name) for each in versions)):
        found = rehearsed(old, new)
        assert [str(each) for each in found.problems] == []
        changed |= expect_changes_of_cdk_diff(found, old, new)
    assert (changed == set()) == (name in UNCHANGED)


@pytest.mark.parametrize("change", VARIANTS)
def test_change_of_app_is_clean_or_refused(change: str, versions: tuple[Path, Path]) -> None:
    """A change of app.py changes what ``cdk diff`` says, or nothing if it is refused."""
    before, after, problems = VARIANTS[change]
    source = versions[0].parent / "demo" / "app.py"
    text = source.read_text()
    assert text.count(before) == 1
    app = source.with_name(f"app_{change}.py")
    app.write_text(
        text.replace("import aws_cdk as cdk\n", "import aws_cdk as cdk\nimport constructs_triton\n").replace(
            before, after
        )
    )
    target = versions[0].parent / change
    synthesize_app(app, target, is_validated=False)
    old, new = Assembly(versions[0] / "demo"), Assembly(target)
    found = rehearsed(old, new)
    assert [each.code for each in found.problems] == problems
    if not problems:
        assert expect_changes_of_cdk_diff(found, old, new) != set()


@pytest.mark.parametrize("name", REFUSED)
def test_bucket_outside_of_the_stacks_is_named(name: str, versions: tuple[Path, Path]) -> None:
    """The error says what is absent in the simulated account."""
    with pytest.raises(
        TemplateError, match=r"OLD cannot be deployed in the simulated account: .*NoSuchBucket"
    ):
        rehearsed(*(Assembly(each / name) for each in versions))


def stage_pairs(old: Assembly, new: Assembly) -> Iterator[tuple[Assembly, Assembly]]:
    """The app and its stages, which may belong to other accounts; those that have stacks to deploy."""
    for before, after in zip([old, *old.stages()], [new, *new.stages()], strict=True):
        if stacks_of(after):
            yield before, after


def stacks_of(assembly: Assembly) -> list[str]:
    """The stacks of an assembly without those of its stages."""
    return [name for stage, name in deployable_stacks(assembly) if stage == assembly]


def rehearsed(old: Assembly, new: Assembly) -> Rehearsal:
    """Rehearse once, calmly."""
    names = [new.stack_name(name) for name in stacks_of(new)]
    return rehearse(old.directory, new.directory, stacks=names, failures="none", orders=1)


def expect_changes_of_cdk_diff(found: Rehearsal, old: Assembly, new: Assembly) -> set[str]:
    """Compare the changed resources with those that ``cdk diff`` prints, and return them.

    ``cdk diff`` compares templates. A resource of which only a value of ``Fn::GetAtt`` changes has the same
    declaration in both. It is printed if that value leads to a replacement, and not if it is updated in
    place, as an endpoint is whose configuration is replaced.
    """
    changed: set[str] = set()
    for name in stacks_of(new):
        before, after = old.template(name), new.template(name)
        steps = [step for step in found.steps if step.stack == new.stack_name(name)]
        actions = {step.logical_id: step.action for step in reversed(steps)}
        printed = printed_changes(old, new, name)
        unprinted = {
            logical_id
            for logical_id, action in actions.items()
            if action == "update" and before.resources.get(logical_id) == after.resources[logical_id]
        }
        assert all(after.resources[each].references & actions.keys() for each in unprinted)
        assert printed == actions.keys() - unprinted
        changed |= actions.keys()
    return changed


def printed_changes(old: Assembly, new: Assembly, name: str) -> set[str]:
    """The logical IDs of the resources that ``cdk diff`` prints for a stack."""
    selected = next((each for each in new.stack(name).names if "/" in each), name)  # in a stage
    template = old.directory / f"{name}.template.json"
    command: list[str | Path] = [
        CDK,
        "diff",
        selected,
        "--exclusively",
        "--app",
        new.directory,
        "--template",
        template,
    ]
    quiet = {"CI": "1", "NO_COLOR": "1", "NODE_NO_WARNINGS": "1", "CDK_DISABLE_CLI_TELEMETRY": "1"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **quiet})
    assert run.returncode == 0, run.stderr
    known = old.template(name).resources.keys() | new.template(name).resources.keys()
    return {
        [word for word in match[1].split() if word in known][-1]
        for match in _CHANGE.finditer(run.stdout + run.stderr)
    }
