"""What runs the checks elsewhere: the hook for pre-commit, the GitHub Action,
and the jobs of the page.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from documentation.shown_files import shown_file
from handmade_wheels import write_wheel
from hostile_checkout import write_hostile_checkout
from members import PROJECT
from onnx_samples import linear_model

PAGE = PROJECT / "docs" / "checker" / "automation.md"
CHECKER = PROJECT / "packages" / "check"
ACTION: dict[str, Any] = yaml.safe_load((CHECKER / "action" / "action.yml").read_text())
PROGRAM = Path(sys.executable).parent / "triton-model-check"
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a correct model repository ``models``, in which the commands run."""
    shutil.copytree(
        PROJECT / "assets" / "model_repositories" / "digits", tmp_path / "work" / "models"
    )
    return tmp_path / "work"


def break_classifier(folder: Path) -> None:
    """Write an error into line 8 of the configuration of a step."""
    config = folder / "models" / "classifier" / "config.pbtxt"
    config.write_text(config.read_text().replace("TYPE_FP32", "FP32", 1))


def run_step(
    name: str, folder: Path, *, index: Mapping[str, str] | None = None, **inputs: str
) -> subprocess.CompletedProcess[str]:
    """Run a step of the Action as GitHub does, with inputs in variables and the
    program of these tests.
    """
    (step,) = [step for step in ACTION["runs"]["steps"] if step.get("name") == name]
    values = {"steps.python.outputs.python-path": sys.executable}
    for key, described in ACTION["inputs"].items():
        values[f"inputs.{key}"] = described["default"]
    for key, value in inputs.items():
        values[f"inputs.{key.replace('_', '-')}"] = value

    programs = folder.parent / "triton-model-check" / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    (programs / PROGRAM.name).unlink(missing_ok=True)
    (programs / PROGRAM.name).symlink_to(PROGRAM)

    variables = {"RUNNER_TEMP": str(folder.parent), "PATH": "/usr/bin:/bin", **(index or {})}
    for key, value in step["env"].items():
        variables.setdefault(key, EXPRESSION.sub(lambda match: values[match[1]], value))
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=120
    )


def run_job(
    command: str, folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of a page in the shell, with the program of these tests."""
    path = {"PATH": f"{PROGRAM.parent}:/usr/bin:/bin", **(environment or {})}
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_action_marks_an_error_at_its_line(folder: Path) -> None:
    """A correct repository passes; an error fails the step,
    and its annotation has file and line.
    """
    assert run_step("Check the models", folder).returncode == 0
    break_classifier(folder)
    done = run_step("Check the models", folder)
    assert done.returncode == 1, done.stderr
    (annotation,) = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    assert "file=models/classifier/config.pbtxt,line=8," in annotation


def test_action_writes_sarif_and_still_fails(folder: Path) -> None:
    """``sarif-file`` is written in addition to the annotations,
    and the step ends with the exit code 1.
    """
    break_classifier(folder)
    done = run_step(
        "Check the models", folder, sarif_file="out.sarif", target="kserve", image_version="24.10"
    )
    assert done.returncode == 1, done.stderr
    assert "::error " in done.stdout
    (found,) = json.loads((folder / "out.sarif").read_text())["runs"][0]["results"]
    assert found["ruleId"] == "text-enum"


@pytest.mark.parametrize(
    "value", ["$(touch pwned)", '"; touch pwned; "', "`touch pwned`", "a b\ntouch pwned"]
)
def test_inputs_of_the_action_are_never_code(value: str, folder: Path) -> None:
    """Each input is one word of the command, whatever it contains."""
    inputs = {"path": value, "target": value, "image_version": value}
    run_step("Check the models", folder, index=None, **inputs)
    run_step("Check the models", folder, index=None, **inputs, sarif_file=value)
    assert not list(folder.rglob("pwned*"))
    texts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert not [text for text in texts if "${{" in text]


def test_missing_path_is_an_error_and_no_option(folder: Path) -> None:
    """A folder that does not exist ends the step with 2, also one whose name begins with a dash."""
    for path in ("absent", "--help"):
        assert (
            run_step("Check the models", folder, path=path, sarif_file="out.sarif").returncode == 2
        )
    assert not (folder / "out.sarif").exists()


def test_action_pins_what_it_uses() -> None:
    """A tag or a branch of another action can be moved to other code, so a commit is named."""
    used = [step["uses"] for step in ACTION["runs"]["steps"] if "uses" in step]
    assert [
        each for each in used if re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", each) is None
    ] == []


@pytest.fixture
def package_index(tmp_path: Path) -> dict[str, str]:
    """Variables with which pip installs a wheel with the name of the checker, without a network."""
    write_wheel(tmp_path / "wheels", "triton_model_check", "0.1.0.dev0")
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "wheels")}


def test_action_runs_nothing_of_the_checkout(folder: Path, package_index: dict[str, str]) -> None:
    """Modules and settings of a pull request are neither imported nor read, in any step."""
    marker = write_hostile_checkout(folder)
    installed = run_step("Install triton-model-check", folder, index=package_index)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert list((folder.parent / "triton-model-check").glob("lib/*/*/triton_model_check.py"))
    done = run_step("Check the models", folder, sarif_file="out.sarif")
    assert done.returncode == 0, done.stdout + done.stderr
    # The jobs of the page start pip in the checkout, by its own name.
    environment = {"PATH": f"{folder.parent / 'triton-model-check' / 'bin'}:/usr/bin:/bin"}
    workflow = yaml.safe_load(shown_file(PAGE, ".github/workflows/models.yml"))
    steps = [step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step]
    job = yaml.safe_load(shown_file(PAGE, ".gitlab-ci.yml"))["check-models"]
    commands = [each for each in (*steps, *job["script"]) if "pip install" in each]
    assert len(commands) == 2
    for command in commands:
        done = run_job(command, folder, package_index | environment)
        assert done.returncode == 0, done.stdout + done.stderr
    assert not marker.exists()


def test_jobs_and_hook_run_nothing_of_the_checkout(
    folder: Path, tmp_path: Path, package_index: dict[str, str]
) -> None:
    """Neither the commands of the page nor the hook do, also if the settings of the checkout ask
    for a package that is fetched.
    """
    marker = write_hostile_checkout(folder)
    (folder / "models" / "triton-model-check.toml").write_text('onnx-runtime = "fetch"\n')
    linear_model(folder / "models" / "linear" / "1" / "model.onnx")
    workflow = yaml.safe_load(shown_file(PAGE, ".github/workflows/models.yml"))
    steps = [step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step]
    job = yaml.safe_load(shown_file(PAGE, ".gitlab-ci.yml"))["check-models"]
    (hook,) = yaml.safe_load((CHECKER / "mirror" / ".pre-commit-hooks.yaml").read_text())
    checks = [command for command in (*steps, *job["script"]) if "pip install" not in command]
    assert len(checks) == 2
    # What the settings ask for is fetched from nowhere, as a job without a network would find it.
    caches = dict.fromkeys(("UV_CACHE_DIR", "CONSTRUCTS_TRITON_CACHE_DIR"), str(tmp_path / "cache"))
    nowhere = {"UV_OFFLINE": "1", **caches}
    for command in (*checks, f"{hook['entry']} models/linear/1/model.onnx"):
        done = run_job(command, folder, package_index | nowhere)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "ONNX Runtime 1." in done.stdout  # it was to be fetched
    assert not marker.exists()


def test_page_lists_the_inputs_of_the_action() -> None:
    """The table has each input of the Action, and its example sets no others."""
    rows = re.findall(r"^\| `([\w-]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert rows == list(ACTION["inputs"])
    (step,) = yaml.safe_load(shown_file(PAGE, "steps of a job"))
    assert {*step["with"]} <= {*rows}
    (upload,) = yaml.safe_load(shown_file(PAGE, "step after the check"))
    assert upload["with"]["sarif_file"] == step["with"]["sarif-file"]


def test_job_of_github_prints_annotations(folder: Path) -> None:
    """The command of the job on the page passes, and prints an annotation for an error."""
    workflow = yaml.safe_load(shown_file(PAGE, ".github/workflows/models.yml"))
    *_, command = [step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step]
    assert run_job(command, folder).returncode == 0
    break_classifier(folder)
    done = run_job(command, folder)
    assert (done.returncode, done.stdout.count("::error ")) == (1, 1)


def test_job_of_gitlab_writes_its_report(folder: Path) -> None:
    """The command of the job on the page writes the artifact that the job uploads,
    in GitLab's form.
    """
    job = yaml.safe_load(shown_file(PAGE, ".gitlab-ci.yml"))["check-models"]
    report = folder / job["artifacts"]["reports"]["codequality"]
    assert run_job(job["script"][-1], folder).returncode == 0
    assert json.loads(report.read_text()) == []
    break_classifier(folder)
    assert run_job(job["script"][-1], folder).returncode == 1
    (found,) = json.loads(report.read_text())
    assert (found["check_name"], found["location"]["path"]) == (
        "text-enum",
        "models/classifier/config.pbtxt",
    )
    assert {"description", "fingerprint", "severity"} <= found.keys()


@pytest.mark.parametrize(
    ("path", "is_chosen"),
    [
        ("config.pbtxt", True),
        ("models/classifier/config.pbtxt", True),
        ("models/classifier/configs/h100.pbtxt", True),
        ("models/classifier/1/model.py", True),
        ("models/classifier/1/network.py", True),
        ("models/encoder/12/model.onnx", True),
        ("models/triton-models.toml", True),
        ("README.md", False),
        ("docs/report/2024/summary.md", False),
        ("src/app/v1/handler.py", False),
        ("src/models/user.py", False),
        ("labels.pbtxt", False),
    ],
)
def test_hook_of_the_mirror_chooses_files_of_models(path: str, is_chosen: bool) -> None:
    """pre-commit searches the pattern in each path;
    only what is a model's file in any project starts it.
    """
    (hook,) = yaml.safe_load((CHECKER / "mirror" / ".pre-commit-hooks.yaml").read_text())
    assert (re.search(hook["files"], path) is not None) is is_chosen


def test_local_hook_is_that_of_the_mirror() -> None:
    """The hook of the page and that of the mirror run the same command in the same way."""
    (hook,) = yaml.safe_load((CHECKER / "mirror" / ".pre-commit-hooks.yaml").read_text())
    (local,) = yaml.safe_load(shown_file(PAGE, ".pre-commit-config.yaml"))["repos"]
    (shown,) = local["hooks"]
    for key in ("id", "name", "entry", "language", "require_serial"):
        assert shown[key] == hook[key]
    files = [
        "models/m/config.pbtxt",
        "models/m/1/model.py",
        "models/m/labels.txt",
        "models/m/1/weights/0.bin",
    ]
    assert all(re.search(shown["files"], each) for each in files)
    assert hook["pass_filenames"] is shown.get("pass_filenames", True) is True
