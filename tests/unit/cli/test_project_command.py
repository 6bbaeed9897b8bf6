"""``constructs-triton project new``."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from hostile_checkout import write_hostile_checkout

from constructs_triton.cli import main
from constructs_triton.testing import assert_endpoint

PROJECT = Path(__file__).resolve().parents[3]
#: What the workflow runs before the tests.
CHECK = "constructs-triton check models --output-format github"


@pytest.fixture(
    params=[[], ["--example", "digits"], ["--example", "multi-model"]],
    ids=["template", "digits", "multi-model"],
)
def shop(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Path:
    """A new project. The next command is quoted as a shell needs it."""
    directory = tmp_path / "My shop_2"
    assert main(["project", "new", str(directory), *request.param]) == 0
    assert f"next: cd '{directory}'\n" in capsys.readouterr().out
    return directory


def test_files_are_short_and_have_the_project_name(shop: Path) -> None:
    """The project's name is that of the folder, as CloudFormation accepts it; no file is long."""
    paths = [
        path for path in shop.rglob("*") if path.is_file() and path.suffix not in (".npz", ".png")
    ]
    texts = {str(path.relative_to(shop)): path.read_text() for path in paths}
    assert 'stack_name="my-shop-2"' in texts["app.py"]
    assert "# my-shop-2\n" in texts["README.md"]
    assert json.loads(texts["package.json"])["name"] == "my-shop-2"
    assert not [name for name, text in texts.items() if "triton-project" in text]
    lengths = {
        name: text.count("\n") for name, text in texts.items() if "__snapshots__" not in name
    }
    assert max(length for name, length in lengths.items() if not name.startswith("models/")) <= 52
    assert {
        ".gitattributes",
        ".gitignore",
        ".github/workflows/test.yml",
        "tests/requests.json",
    } <= texts.keys()


def test_example_has_its_models_and_no_others(tmp_path: Path) -> None:
    """The models are those of the documentation, file by file;
    the template's own model is left out.
    """
    assert main(["project", "new", str(tmp_path / "shop"), "--example", "digits"]) == 0
    models, documented = (
        tmp_path / "shop" / "models",
        PROJECT / "assets" / "model_repositories" / "digits",
    )
    files = {
        path.relative_to(models): path.read_bytes() for path in models.rglob("*") if path.is_file()
    }
    assert files == {
        path.relative_to(documented): path.read_bytes()
        for path in documented.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_example_of_several_models_replaces_the_model(tmp_path: Path) -> None:
    """The example of a multi-model endpoint has its own models; the template's is left out."""
    assert main(["project", "new", str(tmp_path / "shop"), "--example", "multi-model"]) == 0
    models = {path.name for path in (tmp_path / "shop" / "models").iterdir()}
    assert models == {"language", "sentiment-de", "sentiment-en", "sentiment-fr"}


def test_copied_model_is_one_more_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A copied folder passes the checks and synth without an edit, as the README says."""
    project = tmp_path / "shop"
    assert main(["project", "new", str(project), "--example", "multi-model"]) == 0
    shutil.copytree(project / "models" / "sentiment-en", project / "models" / "sentiment-es")
    assert main(["check", str(project / "models")]) == 0
    assert "0 errors, 0 warnings" in capsys.readouterr().out
    app = runpy.run_path(str(project / "app.py"))["build_app"]()
    names = ["language", "sentiment-de", "sentiment-en", "sentiment-es", "sentiment-fr"]
    assert_endpoint(app.node.find_child("Endpoint"), models=names)


@pytest.mark.parametrize(
    ("given", "meant"), [("digit", "digits"), ("multimodel", "multi-model"), ("x", "digits")]
)
def test_unknown_example_is_refused(
    given: str, meant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the example that was meant, or lists all, and nothing is written."""
    with pytest.raises(SystemExit, match="2"):
        main(["project", "new", str(tmp_path / "shop"), "--example", given])
    assert meant in capsys.readouterr().err
    assert not (tmp_path / "shop").exists()


@pytest.mark.parametrize("version", ["0.1.0.dev0", "0.1.0"])
def test_unpublished_version_needs_its_wheels(
    version: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before a release, the command says where pip finds the packages; after it, PyPI has them."""
    monkeypatch.setattr("constructs_triton_tools.cli.project.__version__", version)
    assert main(["project", "new", str(tmp_path / "shop")]) == 0
    assert ("`--find-links`" in capsys.readouterr().out) is (".dev" in version)


def test_versions_are_those_of_this_project(shop: Path) -> None:
    """The project has our version, and the CDK and its command line in the
    versions that we test.
    """
    settings: dict[str, Any] = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    tested = re.search(
        r"^aws-cdk-lib==\S+$", (PROJECT / "constraints.txt").read_text(), re.MULTILINE
    )
    assert tested is not None
    required = (shop / "requirements.txt").read_text().splitlines()
    assert tested[0] in required
    assert (
        f"constructs-triton[local,rehearse,testing]=={settings['project']['version']}" in required
    )
    of_shop = json.loads((shop / "package.json").read_text())
    of_this_project = json.loads((PROJECT / "package.json").read_text())
    assert of_shop["devDependencies"]["aws-cdk"] == of_this_project["dependencies"]["aws-cdk"]


def test_workflow_reads_only_and_runs_the_two_commands(shop: Path) -> None:
    """The workflow may only read the repository, and runs the commands of the README,
    and the checks.
    """
    workflow = yaml.safe_load((shop / ".github" / "workflows" / "test.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert "permissions" not in job
    commands = [step["run"] for step in job["steps"] if "run" in step]
    documented = re.findall(r"^    (python .*)$", (shop / "README.md").read_text(), re.MULTILINE)
    assert len(documented) == 2
    # In a checkout of others, pip is not started as a module: Python would look for it there.
    assert commands == [documented[0].removeprefix("python -m "), CHECK, documented[1]]


def test_workflow_marks_an_error_at_its_line(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command for the checks passes in a new project, and prints an annotation for an error."""
    monkeypatch.chdir(shop)
    words = shlex.split(CHECK)[1:]
    assert main(words) == 0
    configs = sorted(Path("models").glob("*/config.pbtxt"))
    config = next(path for path in configs if "TYPE_FP32" in path.read_text())
    config.write_text(config.read_text().replace("TYPE_FP32", "FP32", 1))
    capsys.readouterr()
    assert main(words) == 1
    assert f"file={config},line=" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["test", "rehearse"])
def test_workflows_check_out_files_of_git_lfs(name: str, shop: Path) -> None:
    """Without ``lfs: true`` the checks would find pointers in place of models."""
    workflow = yaml.safe_load((shop / ".github" / "workflows" / f"{name}.yml").read_text())
    (job,) = workflow["jobs"].values()
    checkouts = [
        step["with"] for step in job["steps"] if step.get("uses", "").startswith("actions/checkout")
    ]
    assert [each["lfs"] for each in checkouts] == [True] * (1 if name == "test" else 2)


def test_pull_request_is_rehearsed_against_its_base(shop: Path) -> None:
    """The workflow may only read; its commands for the two assemblies and the
    rehearsal are in the README.
    """
    workflow = yaml.safe_load((shop / ".github" / "workflows" / "rehearse.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    (job,) = workflow["jobs"].values()
    assert "permissions" not in job
    commands = "\n".join(step.get("run", "") for step in job["steps"])
    readme = (shop / "README.md").read_text()
    documented = re.findall(
        r"^    (?:\(cd base && )?(.*\bbase\.out\b.*?)\)?$", readme, re.MULTILINE
    )
    assert len(documented) == 2
    synth, rehearsal = documented
    assert synth in commands
    assert rehearsal.replace("base.out", '"$old"') in commands
    assert "constructs-triton[local,rehearse" in (shop / "requirements.txt").read_text()


@pytest.mark.parametrize(("old", "code"), [("base.out", 0), ("base.out", 1), ("none", 0)])
def test_summary_has_the_rehearsal_and_the_job_its_exit_code(
    shop: Path, tmp_path: Path, old: str, code: int
) -> None:
    """The last step prints the annotations, writes the text in a code block, and fails as the
    rehearsal does, in GitHub's shell.

    Without an app in the base branch it rehearses a first deployment, and no step runs in that
    branch.
    """
    workflow = yaml.safe_load((shop / ".github" / "workflows" / "rehearse.yml").read_text())
    steps = workflow["jobs"]["rehearse"]["steps"]
    in_base = {step.get("if") for step in steps if step.get("working-directory") == "base"}
    assert in_base == {"hashFiles('base/cdk.json') != ''"}
    (tmp_path / "base").mkdir()
    if old == "base.out":
        (tmp_path / "base" / "cdk.json").write_text("{}")
    commands = [step.get("run", "") for step in steps]
    (script,) = [command for command in commands if "$code" in command]
    program = tmp_path / "constructs-triton"
    program.write_text(f'#!/bin/sh\necho "::error::lost"\necho "$@"\nexit {code}\n')
    program.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    command = ["bash", "-e", "-c", script]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
    )
    text = f"rehearse {old} cdk.out --format github\n"
    assert (done.returncode, done.stdout) == (code, f"::error::lost\n{text}")
    assert (tmp_path / "summary").read_text() == f"```text\n{text}```\n"


def test_workflows_run_only_the_app_of_the_checkout(shop: Path) -> None:
    """pip and the commands of this project start by their own names. Only the steps that are for
    the user's code, the app and its tests, run modules of the folder.
    """
    for name in ("test", "rehearse"):
        workflow = yaml.safe_load((shop / ".github" / "workflows" / f"{name}.yml").read_text())
        (job,) = workflow["jobs"].values()
        commands = [step["run"] for step in job["steps"] if "run" in step]
        as_modules = [command for command in commands if "python -" in command]
        assert as_modules == ["python -m pytest"][: name == "test"]
    marker = write_hostile_checkout(shop)
    program = Path(sys.executable).with_name("constructs-triton")
    done = subprocess.run(
        [program, "check", "models", "--output-format", "github"],
        cwd=shop,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not marker.exists()


def test_existing_files_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder with files is refused, as is a file; an empty folder is used."""
    (tmp_path / "app.py").write_text("mine")
    for path in (tmp_path, tmp_path / "app.py"):
        assert main(["project", "new", str(path)]) == 2
        assert "exists and is not an empty folder" in capsys.readouterr().err
    (tmp_path / "shop").mkdir()
    assert main(["project", "new", str(tmp_path / "shop")]) == 0


def test_name_must_be_that_of_a_stack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder whose name cannot be the name of a stack is refused, and nothing is written."""
    assert main(["project", "new", str(tmp_path / "2nd")]) == 2
    assert (
        'must begin with a letter and have at most 128 characters, got "2nd"'
        in capsys.readouterr().err
    )
    assert not (tmp_path / "2nd").exists()
