"""Our verdict beside the real server's, on repositories that triton server 2.51 was asked to load.

``oracle/cases.tar.gz`` holds a repository a folder, and ``oracle/verdicts.json`` what the server (release
24.10, without a GPU) said of each. Folders may be empty, which git does not keep: hence the archive.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from backports import tarfile

from constructs_triton.model_config import Report
from constructs_triton.model_config.target import Mode, Target
from constructs_triton.model_repository import ModelRepository

ORACLE = Path(__file__).parent / "oracle"
VERDICTS: dict[str, dict[str, Any]] = json.loads((ORACLE / "verdicts.json").read_text(encoding="utf-8"))

NEEDS_EXECUTION = {
    "bad_auto_conflict": "auto_complete_config is executed and disagrees with config.pbtxt",
    "bad_ens_step_autocomplete_mismatch": "auto_complete_config is executed and gives a step its types",
    "bad_mme_error": "initialize is executed and raises",
    "bad_mme_memory": "initialize is executed and raises",
    "bad_py_init_raises": "initialize is executed and raises",
}
"""What cannot be told without executing the model; ``check --server`` decides these."""

CANNOT_SERVE = sorted(
    name for name, case in VERDICTS.items() if case.get("unusable") or case.get("order_dependent")
)
DECIDED = sorted(
    name
    for name, case in VERDICTS.items()
    if case["verdict"] != "unverifiable" and name not in NEEDS_EXECUTION
)


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repositories on disk."""
    directory = tmp_path_factory.mktemp("oracle")
    with tarfile.open(ORACLE / "cases.tar.gz") as archive:
        archive.extractall(directory, filter="data")
    return directory


def check(cases: Path, name: str) -> Report:
    """The case as the server was asked: on a machine without GPUs, as one archive."""
    case = VERDICTS[name]
    mode: Mode = "single" if case["mode"] == "sme" else "multi-model"
    target = Target(mode=mode, gpu_count=0, default_model=case.get("default_model"))
    return ModelRepository.from_directory(cases / name).check(target, is_packed=False)


def test_archive_and_verdicts_hold_the_same_cases(cases: Path) -> None:
    """Every case has a verdict and every verdict a case."""
    assert {path.name for path in cases.iterdir()} == set(VERDICTS)


@pytest.mark.parametrize("name", DECIDED)
def test_verdict_equals_the_servers(cases: Path, name: str) -> None:
    """Whatever can be told without executing the model is told as the server tells it."""
    report = check(cases, name)
    assert report.verdict == VERDICTS[name]["verdict"], (VERDICTS[name].get("error"), report.findings)


@pytest.mark.parametrize("name", [name for name in DECIDED if VERDICTS[name]["verdict"] == "rejected"])
def test_refusal_is_an_error(cases: Path, name: str) -> None:
    """What the server refuses has at least one error, whose path is in the repository."""
    errors = check(cases, name).errors
    assert errors
    assert all(error.path == "." or (cases / name / error.path).exists() for error in errors)


@pytest.mark.parametrize("name", CANNOT_SERVE)
def test_what_cannot_serve_is_an_error(cases: Path, name: str) -> None:
    """What loads and serves no request, or serves by luck of the file system, is an error all the same."""
    assert check(cases, name).errors


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, case in sorted(VERDICTS.items())
        if case["verdict"] != "rejected" and not name.startswith("odd_") and name not in CANNOT_SERVE
    ],
)
def test_what_works_has_no_error(cases: Path, name: str) -> None:
    """A repository that loads and serves has no error; for a TensorRT plan that takes a GPU."""
    case = VERDICTS[name]
    mode: Mode = "single" if case["mode"] == "sme" else "multi-model"
    target = Target(mode=mode, gpu_count=1, default_model=case.get("default_model"))
    assert ModelRepository.from_directory(cases / name).check(target, is_packed=False).errors == ()


def test_exceptions_are_cases_that_the_server_refuses() -> None:
    """The list of exceptions holds only refusals, so that it cannot hide a false alarm."""
    assert all(VERDICTS[name]["verdict"] == "rejected" for name in NEEDS_EXECUTION)
