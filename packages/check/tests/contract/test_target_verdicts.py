"""Our verdict and the real server's, on servers that were started with other options than
SageMaker's.

``target_cases.py`` describes the cases. ``tests/acceptance/test_targets_on_server.py`` starts the
servers again, and ``tests/acceptance/server_of_targets.py`` records what they answer.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from target_cases import CASES, VERDICTS, Case

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding, Verdict
from triton_model_check.model_repository import ModelRepository

NOT_ABOUT_MODELS = {
    "backend_not_in_image": (
        "the image of this release has TensorFlow, the server of the verdicts has not"
    ),
    "load_all_go_on_stray_folder": (
        "the check assumes that the server ends if a model does not load"
    ),
    "load_name_without_explicit": "the server refuses its options",
    "load_none": "no option of the check says that the server loads no model",
    "load_star_and_name": "the server refuses its options",
    "name_empty": "the server refuses its options",
    "name_is_folder": "the server aborts, which is an error of its own",
    "shm_bytes_below_least": "the server refuses its options",
    "shm_large_config": "files of more than 1 MiB are not checked",
    "shm_large_config_fits": "files of more than 1 MiB are not checked",
}
"""Cases about the server or its options, which a check of the repository cannot see."""

NOT_FOUND = {
    "backend_custom_python_shm": "the check does not know that the backend is written in Python",
    "load_all_git_folder": (
        "a checkout has this folder, and what is deployed from it usually has not"
    ),
    "readonly_writes_beside_file": "writing when the module is imported is not found",
    "readonly_writes_beside_model": "writing in initialize is not found",
    "readonly_writes_in_auto_complete": "writing in auto_complete_config is not found",
    "two_repositories_ensemble": "each repository is checked alone",
    "two_repositories_same_name": "each repository is checked alone",
    "two_repositories_same_name_loaded": "each repository is checked alone",
    "two_repositories_same_name_not_loaded": "each repository is checked alone",
    "two_repositories_shm": "each repository is checked alone",
}
"""Cases in which the check does not reach the verdict of the server yet."""

CANNOT_BE_SERVED = (
    "load_empty_repository",
    "name_empty_file",
    "name_replaces",
    "readonly_writes_at_request",  # Its execute returns no response.
)
"""Cases that the server loads, and of which no model can be called."""

DECIDED = sorted(set(CASES) - set(NOT_ABOUT_MODELS) - set(NOT_FOUND))

SAME_WORDS = {
    "backend_custom_missing": "unable to find backend library for backend",
    "load_all_one_bad": "has kind KIND_CPU but specifies one or more GPUs",
    "load_ensemble_missing_step": "contains models that are not available",
    "load_ensemble_without_version": "at least one version must be available",
    "name_breaks_ensemble": "inconsistent data type: ",
    "name_other_model": "directory name must equal model name",
}
"""Words that the server's message and ours have in common,
so that a search for one finds the other.
"""


def is_refused(name: str) -> bool:
    """Return whether the server ends, or goes on without a model that it should load."""
    states = VERDICTS[name].get("models", {}).values()
    return not VERDICTS[name]["starts"] or any(
        each.startswith("UNAVAILABLE: Invalid") for each in states
    )


def errors_of(case: Case, folder: Path) -> list[Finding]:
    """Check each repository of a case for the place that its options describe."""
    found = [
        ModelRepository.from_directory(each).check(case.target, is_packed=False)
        for each in case.write(folder)
    ]
    return [error for report in found for error in report.errors]


def is_found(case: Case, folder: Path) -> bool:
    """Return whether the check has an error; a model to load that does not exist
    is one of its options.
    """
    try:
        return bool(errors_of(case, folder))
    except InvalidValueError:
        return True


def agrees(name: str, folder: Path) -> bool:
    """Return whether the check has the verdict of the server."""
    if name in CANNOT_BE_SERVED:
        return Verdict.of(errors_of(CASES[name], folder)) is Verdict.CANNOT_BE_SERVED
    return is_found(CASES[name], folder) == is_refused(name)


def test_every_case_has_a_verdict() -> None:
    """Cases and verdicts have the same names, and no list of exceptions has another one."""
    assert set(CASES) == set(VERDICTS)
    assert {*NOT_ABOUT_MODELS, *NOT_FOUND, *CANNOT_BE_SERVED, *SAME_WORDS} <= set(CASES)


@pytest.mark.parametrize("name", DECIDED)
def test_verdict_equals_the_servers(name: str, tmp_path: Path) -> None:
    """A server that is started like this ends if there is an error, and only then."""
    assert agrees(name, tmp_path), VERDICTS[name]["messages"]


@pytest.mark.parametrize("name", sorted(NOT_FOUND))
def test_exceptions_are_still_needed(name: str, tmp_path: Path) -> None:
    """A case of ``NOT_FOUND`` has another verdict than the server;
    delete its line when a rule finds it.
    """
    assert not agrees(name, tmp_path)


@pytest.mark.parametrize("name", sorted(SAME_WORDS))
def test_message_has_the_words_of_the_server(name: str, tmp_path: Path) -> None:
    """A search for the server's message finds ours."""
    words = SAME_WORDS[name]
    assert any(words in message for message in VERDICTS[name]["messages"])
    assert any(words in error.message for error in errors_of(CASES[name], tmp_path))


def test_named_configuration_that_is_not_used_is_a_warning(tmp_path: Path) -> None:
    """A broken configuration of another name does not stop the server,
    but it would with its option.
    """
    (repository,) = CASES["name_broken_not_used"].write(tmp_path)
    report = ModelRepository.from_directory(repository).check(
        CASES["name_broken_not_used"].target, is_packed=False
    )
    assert [(each.code, each.path) for each in report.warnings] == [
        ("server-named-config", "m/configs/h100.pbtxt")
    ]
