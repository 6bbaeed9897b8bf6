"""Python environments of a repository's models, from requirements to the template."""

from __future__ import annotations

import tarfile
from functools import partial
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match
from cdk_apps import add_endpoint, add_many, make_stack, resources, synthesize, write_model
from check_examples.repositories import ENVIRONMENT
from handmade_wheels import write_wheels

from constructs_triton import (
    CompressionType,
    InstanceType,
    ModelSource,
    TritonImage,
    TritonModelRepository,
)
from constructs_triton.cdk.repository.downloads import environment_bytes
from constructs_triton.cli import main
from constructs_triton_core.errors import InvalidValueError, RepositoryError
from triton_model_check.artifacts.environments.placement import as_packed
from triton_model_check.artifacts.environments.python_environment import PythonEnvironment
from triton_model_check.model_config import ModelConfig, ModelInput, ModelOutput, PythonBackend
from triton_model_check.model_repository import ModelRepository, ModelRepositoryBuilder

MACHINE = InstanceType.of("ml.m5.xlarge")
serve_first = partial(add_endpoint, model="first", instance_type=MACHINE)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two models of the Python backend, whose folder declares an environment that is built."""
    monkeypatch.setenv("CONSTRUCTS_TRITON_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("first", "second"):
        write_model(folder, name)

    write_wheels(folder / "wheels")
    (folder / "requirements.txt").write_text("--no-index\n--find-links ./wheels\npure\n")
    (folder / "triton-models.toml").write_text(
        'python_environments."*".requirements = "requirements.txt"'
    )
    assert main(["env", "build", str(folder / "requirements.txt")]) == 0
    return folder


def repository(stack: cdk.Stack, models: Path) -> TritonModelRepository:
    return TritonModelRepository(stack, "Models", source=ModelSource.from_directory(models))


def built(models: Path) -> Path:
    """The archive of the environment in the cache."""
    return PythonEnvironment.from_requirements(models / "requirements.txt").find_archive()


def archives(stack: cdk.Stack) -> dict[str, list[str]]:
    """The file names of each archive in the cloud assembly, by its first folder."""
    directory = Path(cdk.Stage.of(stack).outdir)  # type: ignore[union-attr]
    found = {}
    for path in directory.glob("*.tar.gz"):
        with tarfile.open(path) as tar:
            names = tar.getnames()
        found[names[0].split("/")[0]] = names
    return found


def test_each_archive_of_a_multi_model_endpoint_has_a_copy(models: Path) -> None:
    """Two TargetModels cannot share a file, and a second synthesis gives the same archives."""
    digests = []
    for _ in range(2):
        stack = make_stack()
        add_many(stack, repository(stack, models), instance_type=MACHINE)
        synthesize(stack)
        found = archives(stack)
        has_copy = {name: f"{name}/env.tar" in names for name, names in found.items()}
        assert has_copy == {"first": True, "second": True}
        folder = Path(cdk.Stage.of(stack).outdir)  # type: ignore[union-attr]
        digests.append(sorted(path.name for path in folder.glob("*.tar.gz")))
    assert digests[0] == digests[1]


def test_uncompressed_models_have_one_file(models: Path) -> None:
    """With CompressionType.NONE the environment is one object too,
    since a folder would lose its modes.
    """
    stack = make_stack()
    serve_first(stack, repository(stack, models), compression_type=CompressionType.NONE)
    synthesize(stack)
    directory = Path(cdk.Stage.of(stack).outdir)  # type: ignore[union-attr]
    assert any("first/env.tar" in path.read_text() for path in directory.glob("*.json"))


def test_warnings_depend_on_the_endpoint(stack: cdk.Stack, models: Path) -> None:
    """PYTHONPATH of the container is a warning of the endpoint,
    and so is a folder that S3 changes.
    """
    (models / "triton-models.toml").unlink()
    config = models / "first" / "config.pbtxt"
    config.write_text(config.read_text() + ENVIRONMENT % "$$TRITON_MODEL_DIRECTORY/env")
    (models / "first" / "env" / "bin").mkdir(parents=True)
    (models / "first" / "env" / "bin" / "activate").touch()
    path = {"PYTHONPATH": "/opt/packages"}
    serve_first(stack, models, compression_type=CompressionType.NONE, environment=path)
    for text in ("loses its execute bit in S3", 'come before the environment, got "/opt/packages"'):
        Annotations.from_stack(stack).has_warning("*", Match.string_like_regexp(f".*{text}.*"))


def test_findings_name_the_users_folder(models: Path) -> None:
    """An error of the user's configuration is reported with its place in the user's file."""
    config = models / "first" / "config.pbtxt"
    config.write_text(config.read_text() + "max_batch_sise: 1\n")
    stack = make_stack()
    with pytest.raises(RepositoryError, match=f"{models}.*") as error:
        repository(stack, models)
    line = config.read_text().count("\n")
    assert f"first/config.pbtxt:{line}:" in str(error.value)


def test_a_builder_takes_the_archive_of_an_environment(stack: cdk.Stack, models: Path) -> None:
    """A ModelRepositoryBuilder has no triton-models.toml; its backend names the archive."""
    config = ModelConfig(
        name="m",
        backend=PythonBackend(execution_env_path="env.tar"),
        input=[ModelInput(name="X", data_type="TYPE_FP32", dims=[1])],
        output=[ModelOutput(name="Y", data_type="TYPE_FP32", dims=[1])],
    )
    code = b"import pure\nclass TritonPythonModel:\n    def execute(self, requests): ...\n"
    builder = ModelRepositoryBuilder().add_model(config, code, files={"env.tar": built(models)})
    source = ModelSource.from_builder(builder)
    served = TritonModelRepository(stack, "Models", source=source)
    add_endpoint(stack, served, model="m", instance_type=MACHINE)
    assert len(resources(synthesize(stack), "AWS::SageMaker::Endpoint")) == 1
    assert "m/env.tar" in archives(stack)["m"]


def test_the_volume_has_space_for_the_unpacked_environment(models: Path) -> None:
    """Volume and timeouts are derived from a size that counts an unpacked environment,
    a shared one once.
    """
    placed = as_packed(ModelRepository.from_directory(models))
    alone = environment_bytes(placed, ["first"])
    with tarfile.open(built(models)) as tar:
        assert alone == sum(member.size for member in tar)
    assert environment_bytes(placed, ["first", "second"]) == 2 * alone
    config = placed.path / "second" / "config.pbtxt"
    config.write_text(config.read_text().replace("/env.tar", "/../first/env.tar"))
    shared = ModelRepository.from_directory(placed.path)
    assert environment_bytes(shared, ["first", "second"]) == alone
    assert environment_bytes(ModelRepository.from_directory(models), ["first"]) == 0


def test_synth_never_builds(models: Path) -> None:
    """A missing archive stops the synthesis with the command that builds it."""
    built(models).unlink()
    with pytest.raises(
        InvalidValueError,
        match=r"was not built on this machine, or was changed.*; run `constructs-triton env build",
    ):
        repository(make_stack(), models)


def test_an_image_with_another_python_is_refused(models: Path) -> None:
    """The endpoint's image decides which Python the environment must have."""
    stack = make_stack()
    models_construct = repository(stack, models)
    with pytest.raises(
        RepositoryError, match=r"environment has Python 3\.12, the image has Python 3\.10.*"
    ):
        serve_first(stack, models_construct, image=TritonImage.dlc("24.09"))
