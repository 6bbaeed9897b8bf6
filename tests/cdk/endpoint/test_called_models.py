"""Models that a Python model calls: packed and loaded with it, or refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3
from cdk_apps import (
    CPU,
    add_endpoint,
    add_ensemble,
    add_many,
    add_repository,
    archived_models,
    make_stack,
    primary_container,
    synthesize,
    write_model,
    write_repository,
)

from constructs_triton import ModelSource, TritonEnvironment, TritonModelRepository
from constructs_triton.cdk.repository.model_repository import contents_of
from constructs_triton_core.errors import InvalidValueError, RepositoryError

CALL = """import triton_python_backend_utils as pb_utils
def send(**arguments):
    pb_utils.InferenceRequest(model_name={}, **arguments).exec()
"""


def add_call(path: Path, caller: str, called: str) -> None:
    with (path / caller / "1/model.py").open("a") as file:
        file.write(CALL.format(called))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An ensemble whose step "shift" calls "other", which calls "last"."""
    root = write_repository(tmp_path / "models")
    write_model(root, "last")
    add_call(root, "shift", '"other"')
    add_call(root, "other", '"last"')
    return root


def variables(stack: Any) -> dict[str, str]:
    found: dict[str, str] = primary_container(synthesize(stack))["Environment"]
    return found


ARGUMENTS = "SAGEMAKER_TRITON_ADDITIONAL_ARGS"


def test_called_models_are_packed_and_loaded(stack: cdk.Stack, path: Path) -> None:
    """The archive of an ensemble contains what its step calls, and the environment loads it."""
    repository = add_repository(stack, path)
    add_ensemble(stack, repository, instance_type=CPU)
    assert archived_models(repository, "pipeline") == (
        "pipeline",
        "last",
        "other",
        "scale",
        "shift",
    )
    found = variables(stack)
    assert found[ARGUMENTS] == "--load-model=last --load-model=other"
    assert found["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "pipeline"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (
            TritonEnvironment(
                additional_models=["last"], additional_args=["--strict-readiness=true"]
            ),
            "--load-model=last --load-model=other --strict-readiness=true",
        ),
        ({ARGUMENTS: "--load-model=last -v"}, "--load-model=other --load-model=last -v"),
    ],
)
def test_arguments_of_the_user_are_kept(path: Path, environment: Any, expected: str) -> None:
    """Models that the user loads are not loaded twice, and other arguments remain."""
    stack = make_stack()
    add_endpoint(stack, path, model="shift", instance_type=CPU, environment=environment)
    assert variables(stack)[ARGUMENTS] == expected


@pytest.mark.parametrize(
    "environment",
    [TritonEnvironment(additional_models=["scale"]), {ARGUMENTS: "--load-model=scale"}],
)
def test_loaded_models_are_in_the_archive(stack: cdk.Stack, path: Path, environment: Any) -> None:
    """A model that the archive lacks would end the server; the error's fix packs and loads it."""

    def add(id: str, **calls: Any) -> None:
        repository = add_repository(stack, path, id=f"{id}Models", **calls)
        add_endpoint(
            stack, repository, id, model="shift", instance_type=CPU, environment=environment
        )

    with pytest.raises(
        InvalidValueError, match=r'archive of model "shift", got "scale"; set calls='
    ) as error:
        add("One")
    fix = re.search(r"set calls=(\{.*\}) on", str(error.value))
    assert fix
    add("Two", calls=json.loads(fix[1]))
    assert "--load-model=scale" in variables(stack)[ARGUMENTS]


def test_missing_called_model_is_an_error(path: Path) -> None:
    """A name that the repository lacks is refused with a suggestion."""
    add_call(path, "scale", '"othr"')
    with pytest.raises(RepositoryError, match=r'calls "othr".*\n.*did you mean "other"\?'):
        add_repository(make_stack(), path)


def test_multi_model_endpoint_is_refused(stack: cdk.Stack, path: Path) -> None:
    """SageMaker loads one folder of each archive, so the error names the single-model endpoint."""
    repository = add_repository(stack, path)
    with pytest.raises(
        RepositoryError, match=r'"shift" calls "other", (.|\n)*serve the model with TritonEndpoint'
    ):
        add_many(stack, repository, instance_type=CPU)


def test_calls_can_be_declared(stack: cdk.Stack, tmp_path: Path) -> None:
    """A declared call counts like one in the source, also for a model that is added by name."""
    path = write_repository(tmp_path / "models")
    add_call(path, "other", "NAMES[0]")
    repository = add_repository(stack, path, calls={"other": ["scale"]})
    assert repository.called_models("other") == ("scale",)
    assert not contents_of(repository).warnings
    two = tmp_path / "two"
    for name in ("main", "side"):
        write_model(two, name)
    repository.add_model("added", ModelSource.from_directory(two), calls={"main": ["side"]})
    assert repository.called_models("added") == ("side",)


def test_step_can_be_served_alone(stack: cdk.Stack, tmp_path: Path) -> None:
    """A step gets an archive of its own, a target model and a grant."""
    repository = add_repository(stack, write_repository(tmp_path / "models"), also_served=["scale"])
    add_many(stack, repository, instance_type=CPU)
    assert sorted(repository.target_models) == ["other", "pipeline", "scale"]
    assert contents_of(repository).prefix.grant_patterns(["scale"]) == ["scale-????????.tar.gz"]
    synthesize(stack)


def test_models_in_s3_cannot_be_composed(stack: cdk.Stack, tmp_path: Path) -> None:
    """What is not read at synth cannot have declared calls, and an archive is not split."""
    bucket = s3.Bucket(stack, "Bucket")
    stored = ModelSource.from_bucket(bucket, "a.tar.gz")
    with pytest.raises(
        InvalidValueError, match=r"^calls, also_served: the models are not read at synth"
    ):
        TritonModelRepository(stack, "Models", source=stored, calls={"a": ["b"]})
    archive = ModelSource.from_archive(tmp_path / "a.tar.gz")
    with pytest.raises(InvalidValueError, match=r"^also_served: an archive is uploaded unchanged"):
        TritonModelRepository(stack, "Models", source=archive, also_served=["b"])
