"""The hook of pre-commit and the GitHub Action install the wheel of the checker,
as they do for users.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from documentation.shown_files import shown_file
from hostile_checkout import write_hostile_checkout
from members import PROJECT

BUDGET_MINUTES = 4
PAGE = PROJECT / "docs" / "checker" / "automation.md"
MIRROR = PROJECT / "packages" / "check" / "mirror"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a command, with this project's wheels
    beside the package index.
    """
    home = tmp_path_factory.mktemp("home")
    removed = ("PYTHONPATH", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in removed}
    author = {
        f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    variables = {
        **{name: value for name, value in kept.items() if not name.startswith(("PYTEST_", "GIT_"))},
        **author,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_FIND_LINKS": f"{distributions} {os.environ.get('PIP_FIND_LINKS', '')}".strip(),
        "PRE_COMMIT_HOME": str(home / "pre-commit"),
    }

    def run(*command: str, cwd: Path, **others: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=cwd,
            env={**variables, **others},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(params=["local", "mirror"])
def committed(request: pytest.FixtureRequest, run: Run, tmp_path: Path) -> Path:
    """A git repository with a model repository and the hook,
    as the page has it or from a mirror.
    """
    work = tmp_path / "work"
    shutil.copytree(PROJECT / "assets" / "model_repositories" / "digits", work / "models")
    config = shown_file(PAGE, ".pre-commit-config.yaml")
    if request.param == "mirror":
        shutil.copytree(MIRROR, tmp_path / "mirror")
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "mirror"], ["tag", "v1.0.0"]):
            run("git", *words, cwd=tmp_path / "mirror").check_returncode()
        hook = {
            "repo": str(tmp_path / "mirror"),
            "rev": "v1.0.0",
            "hooks": [{"id": "triton-model-check"}],
        }
        config = yaml.safe_dump({"repos": [hook]})
    (work / ".pre-commit-config.yaml").write_text(config)
    run("git", "init", "-q", cwd=work).check_returncode()
    run("pre-commit", "install", cwd=work).check_returncode()
    return work


def test_hook_stops_a_commit_that_breaks_an_ensemble(committed: Path, run: Run) -> None:
    """A broken ensemble and a broken ``model.py`` of a step fail the commit, and the fixed ones
    pass.

    A commit without a file of a model does not run the checks.
    """

    def commit(
        file: str = "models", old: str = "", new: str = ""
    ) -> subprocess.CompletedProcess[str]:
        if old:
            path = committed / file
            path.write_text(path.read_text().replace(old, new))
        run("git", "add", file, cwd=committed).check_returncode()
        return run("git", "commit", "-m", "change", cwd=committed)

    first = commit()
    assert first.returncode == 0, first.stdout + first.stderr
    step, code = "models/classifier/config.pbtxt", "models/classifier/1/model.py"
    for file, old, new, expected in (
        (step, '"logits"', '"scores"', "digits/config.pbtxt"),
        (code, "class TritonPythonModel", "class TritonModel", "python-class"),
    ):
        broken = commit(file, old, new)
        assert broken.returncode == 1, broken.stdout + broken.stderr
        assert expected in broken.stdout + broken.stderr
        assert "Failed" in broken.stdout + broken.stderr
        (committed / file).write_text((committed / file).read_text().replace(new, old) + "\n")
        fixed = commit(file)
        assert fixed.returncode == 0, fixed.stdout + fixed.stderr
    (committed / "README.md").write_text("text\n")
    other = commit("README.md")
    assert other.returncode == 0
    assert "Skipped" in other.stdout + other.stderr


def test_hook_runs_nothing_of_a_hostile_checkout(committed: Path, run: Run) -> None:
    """Modules, startup files and settings of a checkout are neither imported nor read.

    The git hook that pre-commit installs starts ``python -m``, which looks for modules in the
    checkout first, unless PYTHONSAFEPATH is set.
    """
    marker = write_hostile_checkout(committed)
    run("git", "add", "models", cwd=committed).check_returncode()
    done = run("pre-commit", "run", "--all-files", cwd=committed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout
    done = run("git", "commit", "-m", "models", cwd=committed, PYTHONSAFEPATH="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not marker.exists()


def test_action_installs_its_version(run: Run, tmp_path: Path) -> None:
    """The steps of the Action install the program, and check with it."""
    action = yaml.safe_load((PROJECT / "packages" / "check" / "action" / "action.yml").read_text())
    shutil.copytree(PROJECT / "assets" / "model_repositories" / "digits", tmp_path / "models")
    steps = [step for step in action["runs"]["steps"] if "run" in step]
    values = {f"inputs.{name}": each["default"] for name, each in action["inputs"].items()}
    values |= {"steps.python.outputs.python-path": sys.executable}
    for step in steps:
        variables = {
            name: re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda found: values[found[1]], text)
            for name, text in step["env"].items()
        }
        command = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"])
        done = run(*command, cwd=tmp_path, RUNNER_TEMP=str(tmp_path), **variables)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "0 errors, 0 warnings" in done.stdout
    assert run(
        str(tmp_path / "triton-model-check" / "bin" / "triton-model-check"),
        "--version",
        cwd=tmp_path,
    )
