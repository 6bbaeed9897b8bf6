"""app.py and every example: calm rehearsals, compared with ``cdk diff``, and the last release."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from app_changes import changed
from deploy_twice import deployable_stacks, project_apps, synthesize_apps
from mutations.harmless import EDITS, Edit
from parts import APPS, part
from programs import PROJECT, synthesize_app
from record_release import RECORD, record_of, unexplained

from cdk_rehearse import rehearse
from cdk_rehearse.updates.report import Rehearsal
from constructs_triton_core.cloud_assembly.assembly import Assembly

CDK = PROJECT / "node_modules" / ".bin" / "cdk"

BUDGET_MINUTES = 5
pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not CDK.exists(),
    reason="`cdk diff` needs Node and `npm ci`; the rehearsals run without it elsewhere",
)

#: Examples that the change of every config.pbtxt does not reach, since their apps write it.
UNCHANGED = ("bert_benchmark", "resnet_autoscaling")
#: Examples whose apps name the version of the image.
OWN_IMAGE = ("generate", "generate_vllm", "shadow")
#: Examples whose models fit one image only, because a TensorRT plan does.
ONE_IMAGE = ("compiled_plans",)
SCALED = "must be deregistered as scalable targets"
WITH_COMPONENTS = "InstanceType cannot change while inference components use the endpoint"
#: Why another instance type is refused. The page of the problems explains both reasons.
REFUSED_TYPES = {
    **dict.fromkeys(("demo", "ab_test", "async_inference", "async_pools", "ensemble"), SCALED),
    "multi_model": SCALED,
    **dict.fromkeys(
        ("bert_benchmark", "generate_vllm", "instance_pools", "resnet_autoscaling"), SCALED
    ),
    "inference_components": WITH_COMPONENTS,
}
LARGER = {
    "large": "xlarge",
    "xlarge": "2xlarge",
    "2xlarge": "4xlarge",
    "4xlarge": "8xlarge",
    "12xlarge": "24xlarge",
}
RELEASE = json.loads(RECORD.read_text(encoding="utf-8"))
CHANGELOG = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
_CHANGE = re.compile(r"^\[[-+~]\] \S+::\S+ (.*)$", re.MULTILINE)


def removed_apps() -> list[str]:
    """The apps of the last release that the project has no longer, or this run's part of them."""
    return part(sorted({*RELEASE["apps"]} - {*project_apps(PROJECT)}))


@pytest.fixture(scope="module")
def versions(example_apps: Path) -> tuple[Path, Path]:
    """The folders of all apps, before and after a change of every model."""
    return example_apps / "before" / "assemblies", example_apps / "after" / "assemblies"


@pytest.fixture(scope="module")
def other_images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of all apps with an older version of the image."""
    folder = tmp_path_factory.mktemp("images")
    with changed("image version", folder):
        names = {*APPS, "demo"} - {*ONE_IMAGE}
        return synthesize_apps(folder, sorted(names))


def larger_instances(text: str) -> str:
    """The next larger size of each instance type, in an app or in a template."""
    return re.sub(r'"(ml\.\w+)\.(\w+)"', lambda found: f'"{found[1]}.{LARGER[found[2]]}"', text)


def higher_maximum(text: str) -> str:
    """Two more instances or copies at most, in an app or in a template."""
    name = r'(max_capacity=|max_instance_count=|"MaxCapacity": |"MaxInstanceCount": )'
    return re.sub(rf"{name}(\d+)", lambda found: f"{found[1]}{int(found[2]) + 2}", text)


@pytest.mark.parametrize("name", sorted({*APPS, *removed_apps()}))
def test_every_change_since_the_last_release_is_explained(
    name: str, versions: tuple[Path, Path]
) -> None:
    """No logical ID, endpoint, configuration, component, model or upload changes unless a line says
    so.

    If this fails, add the line that the error shows to CHANGELOG.md, with the reason. If it only
    comes from an edit of the app itself, add its numbers and the reason to ``edited`` of
    last_release.json.
    """
    app = project_apps(PROJECT).get(name)
    after = None if app is None else record_of(Assembly(versions[0] / name), app)
    assert not (missing := unexplained(RELEASE, name, after, CHANGELOG)), missing


@pytest.mark.parametrize("name", APPS)
def test_change_of_models_is_clean(name: str, versions: tuple[Path, Path]) -> None:
    """New content is deployed without a problem, and changes what ``cdk diff`` says."""
    changed: set[str] = set()
    for old, new in stage_pairs(*(Assembly(each / name) for each in versions)):
        found = rehearsed(old, new)
        assert [str(each) for each in found.problems] == []
        changed |= expect_changes_of_cdk_diff(found, old, new)
    assert (changed == set()) == (name in UNCHANGED)


def test_first_deployment_into_an_existing_bucket_is_clean(tmp_path: Path) -> None:
    """The function that places models looks for objects that are not there yet, and expects the
    answer of a bucket that it may not list.
    """
    app = PROJECT / "examples" / "existing_bucket" / "app.py"
    synthesize_app(app, tmp_path, is_validated=False)
    found = rehearse(None, tmp_path, failures="none")
    assert [str(problem) for problem in found.problems] == []


def _without_monitoring(template: str) -> dict[str, Any]:
    resources = json.loads(template)["Resources"]
    return {name: each for name, each in resources.items() if "::CloudWatch::" not in each["Type"]}


@pytest.mark.parametrize("edit", [larger_instances, higher_maximum])
def test_edited_template_is_that_of_the_edited_app(
    edit: Callable[[str], str], versions: tuple[Path, Path]
) -> None:
    """The CDK writes the same for app.py as the next tests, and ``cdk diff`` prints its changes.

    Alarms and dashboards also contain what follows from the type and from the maximum.
    """
    source, old = versions[0].parent / "demo" / "app.py", Assembly(versions[0] / "demo")
    app = source.with_name(f"app_{edit.__name__}.py")
    app.write_text(edit(source.read_text()))
    target = versions[0].parent / edit.__name__
    synthesize_app(app, target, is_validated=False)
    (stack,) = stacks_of(old)
    template = f"{stack}.template.json"
    edited, expected = edit((old.directory / template).read_text()), (target / template).read_text()
    assert _without_monitoring(edited) == _without_monitoring(expected)
    if edit is higher_maximum:
        found = rehearsed(old, Assembly(target))
        assert found.errors == []
        assert expect_changes_of_cdk_diff(found, old, Assembly(target)) != set()


def test_other_image_changes_what_cdk_diff_prints(
    versions: tuple[Path, Path], other_images: Path
) -> None:
    """Of app.py, ``cdk diff`` prints the resources that the rehearsal changes."""
    old, new = (Assembly(each / "demo") for each in (versions[0], other_images))
    assert expect_changes_of_cdk_diff(rehearsed(old, new), old, new) != set()


@pytest.mark.parametrize("name", [name for name in APPS if name not in ONE_IMAGE])
def test_harmless_edits_and_other_image_are_clean(
    name: str, versions: tuple[Path, Path], other_images: Path, tmp_path: Path
) -> None:
    """Another version of the image, a higher maximum and thirty harmless edits end without a
    problem.

    They are rehearsed at once. If something is reported, each edit is rehearsed alone, to name the
    one.
    """
    before, target = versions[0] / name, shutil.copytree(other_images / name, tmp_path / name)
    assert (_templates(before) == _templates(target)) == (name in OWN_IMAGE)
    edit_templates(target, higher_maximum)
    applied = {edit for edit in EDITS if edit_bodies(target, EDITS[edit])}
    assert len(applied) >= 30
    if _problems(before, target):
        reported = {}
        for edit in applied:
            single = shutil.copytree(before, tmp_path / edit / name)
            edit_bodies(single, EDITS[edit])
            reported[edit] = _problems(before, single)
        assert {edit: found for edit, found in reported.items() if found} == {}, "reported alone"
        assert _problems(before, target) == [], "reported together"


def _templates(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.template.json")
    }


def _problems(old: Path, new: Path) -> list[str]:
    """The problems of a calm rehearsal of an app and its stages."""
    pairs = stage_pairs(Assembly(old), Assembly(new))
    return [
        str(problem) for before, after in pairs for problem in rehearsed(before, after).problems
    ]


def edit_bodies(folder: Path, edit: Edit) -> bool:
    """Edit all templates in place, and return whether one has what is edited."""
    found = False
    for path in folder.rglob("*.template.json"):
        body = json.loads(path.read_text())
        found |= edit(body)
        path.write_text(json.dumps(body))
    return found


@pytest.mark.parametrize("name", APPS)
def test_other_instance_type_is_clean_or_refused(
    name: str, versions: tuple[Path, Path], tmp_path: Path
) -> None:
    """SageMaker refuses another type of a variant that scales without ``scaling_guard``."""
    target = shutil.copytree(versions[0] / name, tmp_path / name)
    edit_templates(target, larger_instances)
    for old, new in stage_pairs(Assembly(versions[0] / name), Assembly(target)):
        found = rehearsed(old, new)
        refused = name in REFUSED_TYPES
        assert [each.code for each in found.problems] == ["rehearse-update-fails"] * refused
        assert REFUSED_TYPES.get(name, "") in found.reason
        assert found.steps != ()


def edit_templates(folder: Path, edit: Callable[[str], str]) -> None:
    """Edit all templates of an assembly and of its stages."""
    for path in folder.rglob("*.template.json"):
        path.write_text(edit(path.read_text()))


def stage_pairs(old: Assembly, new: Assembly) -> Iterator[tuple[Assembly, Assembly]]:
    """The app and its stages, which may belong to other accounts;
    those that have stacks to deploy.
    """
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

    ``cdk diff`` compares templates. A resource of which only a value of ``Fn::GetAtt`` changes has
    the same declaration in both. It is printed if that value leads to a replacement, and not if it
    is updated in place, as an endpoint is whose configuration is replaced.
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
            if action == "update"
            and before.resources.get(logical_id) == after.resources[logical_id]
        }
        assert all(after.resources[each].references & actions.keys() for each in unprinted)
        assert printed == actions.keys() - unprinted
        changed |= actions.keys()
    return changed


def printed_changes(old: Assembly, new: Assembly, name: str) -> set[str]:
    """The logical IDs of the resources that ``cdk diff`` prints for a stack."""
    selected = next((each for each in new.stack(name).names if "/" in each), name)  # in a stage
    template = old.directory / f"{name}.template.json"
    places = ("--app", new.directory, "--template", template)
    command: list[str | Path] = [CDK, "diff", selected, "--exclusively", *places]
    quiet = {"CI": "1", "NO_COLOR": "1", "NODE_NO_WARNINGS": "1", "CDK_DISABLE_CLI_TELEMETRY": "1"}
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **quiet}
    )
    assert run.returncode == 0, run.stderr
    known = old.template(name).resources.keys() | new.template(name).resources.keys()
    return {
        [word for word in match[1].split() if word in known][-1]
        for match in _CHANGE.finditer(run.stdout + run.stderr)
    }
