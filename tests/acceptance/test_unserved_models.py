"""Every check whose verdict is "cannot-be-served": the real server loads its example,
and a request fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from check_examples import EXAMPLES, Files, code_of, write
from check_examples.files import POINTER
from check_examples.repositories import HEAD, IO, X, Y, ensemble, one, pipe, step
from local_assembly import PYTHON_CONFIG, adding_model, below, write_archive
from parts import part
from test_local_calls import calling_model
from triton_server import needs_server
from unserved_models import (
    NOT_PROVED,
    PROOFS,
    PROVED_OTHERWISE,
    READER,
    ServerOfModels,
    archives,
    ask,
    packed_numpy,
    renamed,
    runnable,
    tensor,
)

from constructs_triton_client import TritonClient
from constructs_triton_core.errors import ArchiveError, InvocationError, LocalEndpointError
from constructs_triton_core.findings import Severity, Verdict
from constructs_triton_tools.local import LocalEndpoint
from triton_model_check.checks.chapters import RULES
from triton_model_check.checks.report import Report
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository, pack

BUDGET_MINUTES = 2
pytestmark = needs_server
_SCALE = below("scale", adding_model(1))


def _report(files: Files, folder: Path, target: Target | None) -> Report:
    return ModelRepository.from_directory(write(files, folder)).check(target, is_packed=False)


def test_every_such_check_has_a_proof_or_a_reason() -> None:
    """Each example of such a check is in one of the three tables,
    so that no check can be forgotten.
    """
    unserved = {
        code for code, rule in RULES.items() if rule.severity is Severity.ERROR and not rule.rejects
    }
    tables = [*PROOFS, *PROVED_OTHERWISE, *NOT_PROVED]
    assert sorted(tables) == sorted(key for key in EXAMPLES if code_of(key) in unserved)
    assert len(NOT_PROVED) == 5


_OPTIONAL = X.replace("dims", "optional: true dims")
_DIMS_5 = Y.replace("4", "5")
#: What is only a warning, with its model.
_WARNED = {
    "an output of an ensemble twice": (
        "pipe",
        ensemble(pipe(step("a", "X", "Y"), io=f"{IO}output [ {Y} ]\n")),
    ),
    "an output of an ensemble twice, the second one with other dims": (
        "pipe",
        ensemble(pipe(step("a", "X", "Y"), io=f"{IO}output [ {_DIMS_5} ]\n")),
    ),
    "an optional input of an ensemble twice": (
        "pipe",
        ensemble(pipe(step("a", "X", "Y"), io=f"{IO}input [ {_OPTIONAL} ]\n")),
    ),
    "an output twice": ("m", one(f"{HEAD}output [ {Y} ]\n")),
    "an optional input twice": ("m", one(f"{HEAD}input [ {_OPTIONAL} ]\n")),
    "an unknown type of an output": ("m", one(HEAD.replace(Y, Y.replace("TYPE_FP32", "99")))),
}
_FIRST_WRONG = ensemble(pipe(step("a", "X", "Y"), io=f"input [ {X} ]\noutput [ {_DIMS_5}, {Y} ]\n"))
_CASES = {
    **{f"failing {key}": EXAMPLES[key].failing for key in PROOFS},
    **{f"fixed {key}": EXAMPLES[key].fixed for key in PROOFS},
    **{name: files for name, (_, files) in _WARNED.items()},
    "text-size": EXAMPLES["text-size"].failing,
    "first wrong": _FIRST_WRONG,
}
_NUMBERS = {name: number for number, name in enumerate(_CASES)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerOfModels]:
    """One server for the models of all cases."""
    folder = tmp_path_factory.mktemp("server")
    for name, files in _CASES.items():
        write(renamed(runnable(files), _NUMBERS[name]), folder / "models")
    (folder / "scratch").mkdir()
    with ServerOfModels(folder / "models", folder / "scratch").running() as running:
        yield running


@pytest.mark.parametrize("key", part(sorted(PROOFS)))
def test_the_server_loads_the_model_and_requests_fail(
    key: str, server: ServerOfModels, tmp_path: Path
) -> None:
    """The server loads both repositories of the example; it answers only with the fixed one."""
    status, model, requests = PROOFS[key]
    report = _report(runnable(EXAMPLES[key].failing), tmp_path, EXAMPLES[key].target)
    assert (report.verdict, {each.code for each in report.errors}) == (
        "cannot-be-served",
        {code_of(key)},
    )
    failing, fixed = (f"{model}{_NUMBERS[f'{which} {key}']}" for which in ("failing", "fixed"))
    assert (server.load(failing), server.load(fixed)) == (200, 200)
    assert {server.infer(failing, inputs)[0] for inputs in requests} == {status}
    assert server.infer(fixed, [tensor()])[0] == 200


@pytest.mark.parametrize("name", sorted(_WARNED))
def test_the_server_answers_what_is_only_a_warning(
    name: str, server: ServerOfModels, tmp_path: Path
) -> None:
    """Outputs and optional inputs that are declared twice, and types of outputs,
    do not stop requests.
    """
    model, files = _WARNED[name]
    report = _report(runnable(files), tmp_path, None)
    assert (report.verdict, len(report.warnings)) == ("loads", 1)
    assert server.load(f"{model}{_NUMBERS[name]}") == 200
    status, text = server.infer(f"{model}{_NUMBERS[name]}", [tensor()])
    assert (status, len(json.loads(text)["outputs"])) == (200, 1)


def test_the_first_of_two_outputs_of_an_ensemble_counts(
    server: ServerOfModels, tmp_path: Path
) -> None:
    """Triton compares the first one with the step, and rejects the ensemble."""
    assert _report(runnable(_FIRST_WRONG), tmp_path, None).verdict is Verdict.REJECTED
    assert server.load(f"pipe{_NUMBERS['first wrong']}") == 400


def test_the_server_answers_with_a_file_that_is_too_large_for_the_check(
    server: ServerOfModels,
) -> None:
    """``text-size`` is a limit of the check: it stops what was not checked,
    not what Triton refuses.
    """
    model = f"m{_NUMBERS['text-size']}"
    assert (server.load(model), server.infer(model, [tensor()])[0]) == (200, 200)


# --- single-model endpoints -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "model"), [("sagemaker-decoupled", "m"), ("sagemaker-decoupled: step", "pipe")]
)
def test_the_front_end_refuses_decoupled_models(key: str, model: str, tmp_path: Path) -> None:
    """The container starts, and answers every request with status 501."""
    files = runnable(EXAMPLES[key].failing)
    report = _report(files, tmp_path / "models", EXAMPLES[key].target)
    assert report.verdict is Verdict.CANNOT_BE_SERVED
    assert [status for status, _ in ask(files, model, [[tensor()]], tmp_path)] == [501]


@pytest.mark.parametrize(
    "key", sorted(key for key, how in PROVED_OTHERWISE.items() if "start" in how)
)
def test_the_container_does_not_start(key: str, tmp_path: Path) -> None:
    """A folder without models, or that is itself a model, leaves the container without a model."""
    with pytest.raises(LocalEndpointError, match=r"\[serve-(config-at-root|default-absent)\]"):
        ask(runnable(EXAMPLES[key].failing), "m", [[tensor()]], tmp_path)


@pytest.mark.parametrize(
    "key", sorted(key for key, how in PROVED_OTHERWISE.items() if "archive" in how)
)
def test_no_archive_can_contain_it(key: str, tmp_path: Path) -> None:
    """Packing refuses devices, so no endpoint gets the model."""
    repository = ModelRepository.from_directory(write(EXAMPLES[key].failing, tmp_path / "models"))
    with pytest.raises(ArchiveError):
        pack(repository, ["m"], tmp_path)


@pytest.mark.parametrize(("called", "status"), [("scaled", 500), ("scale", 200)])
def test_a_called_model_that_does_not_exist(called: str, status: int, tmp_path: Path) -> None:
    """The caller loads without it, and answers only if it calls a model of the repository."""
    files = {**below("m", calling_model(called)), **_SCALE}
    report = _report(files, tmp_path / "models", Target(default_model="m"))
    assert [each.code for each in report.errors] == (
        ["python-called-model"] if status == 500 else []
    )
    load = {"SAGEMAKER_TRITON_ADDITIONAL_ARGS": "--load-model=scale"}
    inputs = [{"name": "X", "datatype": "FP32", "shape": [1], "data": [5]}]
    assert [each for each, _ in ask(files, "m", [inputs], tmp_path, load)] == [status]


@pytest.mark.parametrize(("weights", "status"), [(POINTER, 500), ("2", 200)])
def test_weights_that_are_a_git_lfs_pointer(weights: str, status: int, tmp_path: Path) -> None:
    """The model loads with the pointer, and every request fails."""
    files = below(
        "m", {"config.pbtxt": PYTHON_CONFIG, "1/model.py": READER, "1/weights.json": weights}
    )
    report = _report(files, tmp_path / "models", Target(default_model="m"))
    assert [each.code for each in report.errors] == (
        ["file-git-lfs-pointer"] if status == 500 else []
    )
    inputs = [{"name": "X", "datatype": "FP32", "shape": [1], "data": [5]}]
    assert [each for each, _ in ask(files, "m", [inputs], tmp_path)] == [status]


def test_an_environment_with_numpy_2(tmp_path: Path) -> None:
    """The model loads with NumPy 2, and every request fails."""
    path = "$$TRITON_MODEL_DIRECTORY/env.tar"
    config = (
        f"{PYTHON_CONFIG}parameters {{ key: "
        f'"EXECUTION_ENV_PATH" value {{ string_value: "{path}" }} }}\n'
    )
    files: dict[str, str | Path] = {**below("m", adding_model(1, config=config))}
    files["m/env.tar"] = packed_numpy("2.1.3", tmp_path)
    inputs = [{"name": "X", "datatype": "FP32", "shape": [1], "data": [5]}]
    ((status, text),) = ask(files, "m", [inputs], tmp_path)
    assert (status, "output tensor shape does not match size of output" in text) == (500, True)
    models = ModelRepository.from_directory(tmp_path / ".model.tar.gz.files")
    report = models.check(Target(default_model="m", image_version="24.09"))
    assert "python-environment-numpy" in {each.code for each in report.errors}


# --- multi-model endpoints ------------------------------------------------------------------------

_ORDERS = (("first", "second"), ("second", "first"))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[bool]]:
    """Whether each archive answers as it is meant to,
    with the names of its folders in both orders.
    """
    found: dict[str, list[bool]] = {}
    for order in _ORDERS:
        folder = tmp_path_factory.mktemp("archives")
        for number, archive in enumerate(archives(*order).values()):
            write_archive(folder / f"{number}.tar.gz", archive.files)
        with LocalEndpoint.from_repository(folder, is_multi_model=True) as local:
            for number, (key, archive) in enumerate(archives(*order).items()):
                answer = _answer(local, f"{number}.tar.gz")
                found.setdefault(key, []).append(answer == archive.answer)
    return found


def _answer(local: LocalEndpoint, target_model: str) -> float | None:
    """What the model that is loaded makes of 5; ``None`` if it refuses."""
    client = TritonClient.for_endpoint(
        local.endpoint_names[0],
        endpoint_url=local.endpoint_url,
        target_model=target_model,
    )
    try:
        return float(client.infer({"X": np.array([5], np.float32)})["Y"][0])
    except InvocationError:
        return None


@pytest.mark.parametrize("key", sorted(archives(*_ORDERS[0])))
def test_a_multi_model_endpoint_serves_another_model(
    key: str, answers: dict[str, list[bool]], tmp_path: Path
) -> None:
    """With one of the two orders of the folders, or with both,
    the model that is meant does not answer.
    """
    can_work = key.startswith("sagemaker") and not key.endswith("another ensemble")
    assert sorted(answers[key]) == [False, can_work]
    for number, order in enumerate(_ORDERS):
        # With a further model the folder is a repository, not the content of one archive.
        more = below("more", adding_model(1)) if key.endswith("another ensemble") else {}
        files = {**archives(*order)[key].files, **more}
        report = _report(files, tmp_path / str(number), Target("sagemaker-multi-model"))
        assert report.verdict is Verdict.CANNOT_BE_SERVED
        assert code_of(key) in {each.code for each in report.errors}
