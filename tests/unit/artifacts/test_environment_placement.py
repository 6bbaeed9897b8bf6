"""Environments in a copy of a model repository."""

from __future__ import annotations

import re
import shlex
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from handmade_wheels import write_wheels

from constructs_triton.cli import main
from constructs_triton_core.errors import ArchiveError, InvalidValueError
from triton_model_check.artifacts.environments.placement import (
    as_packed,
    find_environments,
    place_environments,
)
from triton_model_check.artifacts.environments.python_environment import PythonEnvironment
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository, pack
from triton_model_check.model_repository.composition import CompositionOptions

TENSOR = '[ { name: "%s" data_type: TYPE_FP32 dims: [ 1 ] } ]'
IO = f"input {TENSOR % 'X'}\noutput {TENSOR % 'Y'}\n"
STEP = (
    '{{ model_name: "{}" model_version: -1 input_map {{ key: "X" value: "{}" }} '
    'output_map {{ key: "Y" value: "{}" }} }}'
)
CODE = "import pure\nclass TritonPythonModel:\n    def execute(self, requests): ...\n"


def add_model(models: Path, name: str, config: str = 'backend: "python"\n' + IO) -> None:
    (models / name / "1").mkdir(parents=True)
    (models / name / "config.pbtxt").write_text(config)
    (models / name / "1" / "model.py").write_text(CODE)


def add_ensemble(models: Path, name: str, first: str, second: str) -> None:
    steps = ", ".join([STEP.format(first, "X", "T"), STEP.format(second, "T", "Y")])
    (models / name / "1").mkdir(parents=True)
    text = f'platform: "ensemble"\n{IO}ensemble_scheduling {{ step [ {steps} ] }}\n'
    (models / name / "config.pbtxt").write_text(text)


@pytest.fixture
def environment(tmp_path: Path, own_cache: Path) -> PythonEnvironment:
    """A built environment."""
    write_wheels(tmp_path / "wheels")
    (tmp_path / "requirements.txt").write_text("--no-index\n--find-links ./wheels\npure\n")
    assert main(["env", "build", str(tmp_path / "requirements.txt")]) == 0
    return PythonEnvironment.from_requirements(tmp_path / "requirements.txt")


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Two ensembles that share a step, and another model."""
    folder = tmp_path / "models"
    for name in ("alone", "only_x", "shared"):
        add_model(folder, name)
    add_ensemble(folder, "x", "only_x", "shared")
    add_ensemble(folder, "y", "shared", "shared")
    return folder


def place(
    models: Path,
    environment: PythonEnvironment,
    tmp_path: Path,
    names: Sequence[str] = ("alone", "only_x", "shared"),
) -> ModelRepository:
    """The repository with the environment in each of the named models."""
    target = tmp_path / "placed"
    target.mkdir()
    environments = dict.fromkeys(names, environment)
    return place_environments(ModelRepository.from_directory(models), environments, target)


def declare(models: Path, *names: str) -> ModelRepository:
    """The repository whose triton-models.toml gives each named model an environment."""
    lines = [f'"{name}" = {{ requirements = "requirements.txt" }}' for name in names]
    (models / "triton-models.toml").write_text("\n".join(["[python_environments]", *lines]))
    (models / "requirements.txt").touch()
    return ModelRepository.from_directory(models)


def paths(repository: ModelRepository) -> dict[str, str]:
    """The value of EXECUTION_ENV_PATH of each model."""
    configs = {
        name: model.config for name, model in repository.models.items() if model.config is not None
    }
    return {
        name: config.parameters["EXECUTION_ENV_PATH"].string_value
        for name, config in configs.items()
        if "EXECUTION_ENV_PATH" in config.parameters
    }


def test_models_of_one_archive_share_an_environment(
    models: Path, environment: PythonEnvironment, tmp_path: Path
) -> None:
    """A model uses the copy of another one only if that one is in each of its archives."""
    placed = place(models, environment, tmp_path)
    assert paths(placed) == {
        "alone": "$$TRITON_MODEL_DIRECTORY/env.tar",
        "only_x": "$$TRITON_MODEL_DIRECTORY/../shared/env.tar",
        "shared": "$$TRITON_MODEL_DIRECTORY/env.tar",
    }
    for name, expected in {
        "x": ["shared/env.tar"],
        "y": ["shared/env.tar"],
        "alone": ["alone/env.tar"],
    }.items():
        archive = pack(placed, placed.closure(name), tmp_path / "packed").path
        with tarfile.open(archive) as tar:
            assert [each for each in tar.getnames() if each.endswith("env.tar")] == expected
    for target in (
        Target("sagemaker-multi-model", image_version="26.05"),
        Target(default_model="x"),
    ):
        assert placed.check(target).findings == ()


def test_the_users_files_stay_unchanged(
    models: Path, environment: PythonEnvironment, tmp_path: Path
) -> None:
    """Files are links; the configuration has one more line, with the user's text before it."""
    before = {path: path.read_bytes() for path in models.rglob("*") if path.is_file()}
    placed = place(models, environment, tmp_path, ["alone"])
    assert {path: path.read_bytes() for path in models.rglob("*") if path.is_file()} == before
    assert (placed.path / "alone" / "1" / "model.py").is_symlink()
    text = (placed.path / "alone" / "config.pbtxt").read_text()
    assert text.startswith((models / "alone" / "config.pbtxt").read_text())
    assert text.count("\n") == (models / "alone" / "config.pbtxt").read_text().count("\n") + 1
    assert paths(placed).keys() == {"alone"}


def test_a_model_without_a_configuration(tmp_path: Path, environment: PythonEnvironment) -> None:
    """Triton completes the rest of a configuration that has only the parameter."""
    add_model(tmp_path / "models", "m")
    (tmp_path / "models" / "m" / "config.pbtxt").unlink()
    placed = place(tmp_path / "models", environment, tmp_path, ["m"])
    assert (
        (placed.path / "m" / "config.pbtxt")
        .read_text()
        .startswith('parameters { key: "EXECUTION_ENV_PATH"')
    )


def test_also_served_steps_carry_their_own_environment(
    models: Path, environment: PythonEnvironment, tmp_path: Path
) -> None:
    """A step that is served alone too must not use an environment that its own archive lacks."""
    repository = ModelRepository.from_directory(models)
    repository.compose(CompositionOptions.of({}, ["only_x"]))
    (tmp_path / "placed").mkdir()
    environments = dict.fromkeys(("only_x", "shared"), environment)
    placed = place_environments(repository, environments, tmp_path / "placed")
    assert paths(placed)["only_x"] == "$$TRITON_MODEL_DIRECTORY/env.tar"


def test_the_check_names_the_way_to_serve_a_step(
    models: Path, environment: PythonEnvironment, tmp_path: Path
) -> None:
    """A step whose environment is in another model cannot be served alone,
    unless also_served names it.
    """
    placed = place(models, environment, tmp_path)
    (finding,) = placed.check(Target(default_model="only_x", image_version="26.05")).errors
    assert finding.code == "python-environment"
    assert 'also_served=["only_x"]' in finding.hint


def test_ignore_files_still_apply(
    models: Path, environment: PythonEnvironment, tmp_path: Path
) -> None:
    """Files that .tritonignore leaves out are not linked, and those that it allows are."""
    (models / "alone" / "notes.txt").write_text("")
    (models / "alone" / "server.pem").write_text("")
    (models / ".tritonignore").write_text("notes.txt\n!/alone/server.pem\n")
    placed = place(models, environment, tmp_path)
    assert {each.name for each in (placed.path / "alone").iterdir()} == {
        "1",
        "config.pbtxt",
        "env.tar",
        "server.pem",
    }
    archive = pack(placed, ["alone"], tmp_path / "packed").path
    with tarfile.open(archive) as tar:
        assert "alone/server.pem" in tar.getnames()


def test_links_out_of_the_repository_are_refused(
    models: Path, environment: PythonEnvironment, tmp_path: Path
) -> None:
    """The copy does not turn a link that packing refuses into a file."""
    (tmp_path / "outside").write_text("")
    (models / "alone" / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(ArchiveError, match=r"models/alone/link: is a link out of the repository"):
        place(models, environment, tmp_path)


def test_the_printed_command_builds_the_environment(
    models: Path, environment: PythonEnvironment, tmp_path: Path
) -> None:
    """A missing lock file, changed requirements and a missing archive have one command,
    and it helps.
    """
    lock = tmp_path / "requirements.py3.12.lock"
    breaks: dict[str, Callable[[], object]] = {
        "the lock file requirements.py3.12.lock does not exist": lock.unlink,
        "it has changed since the lock file": lambda: (tmp_path / "requirements.txt").write_text(
            "--no-index\n--find-links ./wheels\nhelper\n"
        ),
        "its environment was not built on this machine": lambda: (
            environment.find_archive().unlink()
        ),
    }
    for index, (problem, change) in enumerate(breaks.items()):
        change()
        (tmp_path / str(index)).mkdir()
        with pytest.raises(InvalidValueError, match=re.escape(problem)) as error:
            place(models, environment, tmp_path / str(index))
        command = str(error.value).split("`")[1]
        assert main(shlex.split(command)[1:]) == 0
        assert environment.find_archive().is_file()


def test_another_image_has_another_lock_file(
    tmp_path: Path, environment: PythonEnvironment
) -> None:
    """The command for an image that is not the default names its version."""
    old = PythonEnvironment.from_requirements(tmp_path / "requirements.txt", image_version="24.09")
    with pytest.raises(
        InvalidValueError, match=r"py3\.10\.lock does not exist.*--image-version 24\.09`"
    ):
        old.find_archive()
    assert (
        main(["env", "build", str(tmp_path / "requirements.txt"), "--image-version", "24.09"]) == 0
    )
    assert old.find_archive() != environment.find_archive()


def test_an_environment_for_another_image_is_reported(
    models: Path, environment: PythonEnvironment, tmp_path: Path
) -> None:
    """The check of an endpoint compares the environment's Python with that of its image."""
    placed = place(models, environment, tmp_path, ["alone"])
    (finding,) = placed.check(Target(default_model="alone", image_version="24.09")).errors
    assert finding.message == "the environment has Python 3.12, the image has Python 3.10"


IS_SET = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "/e" } }\n'


@pytest.mark.parametrize(
    ("config", "name", "message"),
    [
        (
            f'"onnxruntime"\n{IO}',
            "m",
            "applies only to models of the Python backend, got onnxruntime",
        ),
        (f'"onnxruntime"\n{IO}', "*", "needs a model of the Python backend"),
        (f'"python"\n{IS_SET}', "m", "m/config.pbtxt: EXECUTION_ENV_PATH is set"),
    ],
)
def test_models_that_cannot_use_an_environment(
    config: str, name: str, message: str, tmp_path: Path
) -> None:
    """Each is refused with the file and the key of triton-models.toml."""
    add_model(tmp_path / "models", "m", f"backend: {config}")
    repository = declare(tmp_path / "models", name)
    with pytest.raises(InvalidValueError, match=message):
        find_environments(repository)


def test_a_file_in_the_way(tmp_path: Path) -> None:
    """A file env.tar of the user is never replaced."""
    add_model(tmp_path / "models", "m")
    (tmp_path / "models" / "m" / "env.tar").write_text("")
    repository = declare(tmp_path / "models", "m")
    with pytest.raises(
        InvalidValueError, match=r"m/env.tar: an environment would replace this file; rename it"
    ):
        find_environments(repository)


def test_a_model_at_the_root_has_no_environment(tmp_path: Path) -> None:
    """The archive of such a model would have no folder for the environment."""
    add_model(tmp_path, "m")
    repository = declare(tmp_path / "m", "*")
    with pytest.raises(InvalidValueError, match="one subfolder for each model"):
        as_packed(repository)


def test_a_configuration_with_a_syntax_error_is_left_to_the_check(
    environment: PythonEnvironment, tmp_path: Path
) -> None:
    """The check reports the line of the user's error."""
    add_model(tmp_path / "models", "m", 'backend: "python"\ninput [\n')
    placed = place(tmp_path / "models", environment, tmp_path, ["m"])
    assert [each.code for each in placed.check().errors] == ["text-syntax"]
