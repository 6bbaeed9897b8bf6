"""How `local up` reads a path: an assembly, a repository, an archive, or an error with its fix."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from fake_container import write_archive

from constructs_triton_core.errors import LocalEndpointError, RepositoryError
from constructs_triton_tools.local.sources.sources import read_source
from constructs_triton_tools.local.sources.specs import ContainerSpec
from triton_model_check.model_repository.archive_inspection import inspect_archive

IDENTITY = """
backend: "identity"
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
ENSEMBLE = """
platform: "ensemble"
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step { model_name: "net" model_version: -1
  input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }
"""


def _repository(folder: Path, **configs: str) -> Path:
    for name, text in configs.items():
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(text)
    return folder


def _archive(path: Path, *models: str) -> Path:
    return write_archive(path, {f"{model}/config.pbtxt": IDENTITY.encode() for model in models})


def _container(
    path: Path, scratch: Path, model: str | None = None, *, multi: bool = False
) -> ContainerSpec:
    (endpoint,) = read_source(path, scratch, model=model, is_multi_model=multi)
    (variant,) = endpoint.variants
    return variant.container


def test_a_repository_is_packed_with_the_models_that_its_top_level_model_needs(
    tmp_path: Path,
) -> None:
    """The ensemble is the default model, its step is in the archive,
    and the folder gives the name.
    """
    repository = _repository(tmp_path / "my_models.v2", whole=ENSEMBLE, net=IDENTITY)
    (endpoint,) = read_source(repository, tmp_path / "scratch")
    assert endpoint.name == "my-models-v2"
    container = endpoint.variants[0].container
    assert container.environment == {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "whole"}
    assert container.archive is not None
    with tarfile.open(container.archive) as tar:
        assert {name.split("/")[0] for name in tar.getnames()} == {"whole", "net"}


def test_a_decoupled_model_of_a_repository_streams(tmp_path: Path) -> None:
    """No template says so, and infer could not answer;
    the same for an ensemble with a decoupled step.
    """
    decoupled = IDENTITY + "model_transaction_policy { decoupled: true }"
    repository = _repository(tmp_path / "models", whole=ENSEMBLE, net=decoupled)
    for model in ("whole", "net"):
        container = _container(repository, tmp_path / model, model)
        assert container.environment["SAGEMAKER_TRITON_INFERENCE_TYPE"] == "generate_stream"


def test_models_that_a_model_calls_are_packed_and_loaded(tmp_path: Path) -> None:
    """A repository with one caller has one top-level model, as with ``calls`` in an app."""
    repository = _repository(tmp_path / "shop", caller=IDENTITY, one=IDENTITY, two=IDENTITY)
    (spec,) = read_source(repository, tmp_path, calls={"caller": ["one", "two"]})
    container = spec.variants[0].container
    assert container.archive is not None
    assert inspect_archive(container.archive).models == ("caller", "one", "two")
    assert container.environment == {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "caller",
        "SAGEMAKER_TRITON_ADDITIONAL_ARGS": "--load-model=one --load-model=two",
    }


def test_several_top_level_models_need_a_choice(tmp_path: Path) -> None:
    """The error contains the models and both fixes, and each fix works."""
    repository = _repository(tmp_path / "models", a=IDENTITY, b=IDENTITY)
    with pytest.raises(
        LocalEndpointError, match=r"one top-level model, got a, b; .*--model.*--multi-model"
    ):
        read_source(repository, tmp_path / "scratch")
    assert _container(repository, tmp_path / "one", "b").model == "b"
    (repository / "a" / "environment.tar.gz").write_bytes(b"a packed environment")
    many = _container(repository, tmp_path / "many", multi=True)
    assert many.is_multi_model
    assert sorted(many.archives) == ["a.tar.gz", "b.tar.gz"]
    assert many.environment == {"SAGEMAKER_TRITON_PING_MODE": "live"}


def test_name_that_differs_from_the_folder_is_for_several_models_only(tmp_path: Path) -> None:
    """SageMaker's front end replaces it, and the server with one model refuses it."""
    repository = _repository(tmp_path / "models", a=f'name: "b"\n{IDENTITY}')
    assert list(_container(repository, tmp_path / "many", multi=True).archives) == ["a.tar.gz"]
    with pytest.raises(RepositoryError, match="layout-name-differs"):
        _container(repository, tmp_path / "one", "a")


def test_name_with_a_space_is_refused_for_one_model(tmp_path: Path) -> None:
    """The start script of the image splits it; that of several models does not read it."""
    repository = _repository(tmp_path / "models", **{"a b": IDENTITY})
    assert list(_container(repository, tmp_path / "many", multi=True).archives) == ["a b.tar.gz"]
    with pytest.raises(
        LocalEndpointError, match=r"models: .* contains a space, got \"a b\"; rename"
    ):
        _container(repository, tmp_path / "one", "a b")


def test_an_archive_runs_under_its_files_name(tmp_path: Path) -> None:
    """Its only model is the default; with several, one is chosen,
    or the archive is one of a prefix.
    """
    (endpoint,) = read_source(_archive(tmp_path / "a_b.tar.gz", "m"), tmp_path)
    assert (endpoint.name, endpoint.variants[0].container.model) == ("a-b", "m")
    two = _archive(tmp_path / "two.tar.gz", "m", "n")
    with pytest.raises(
        LocalEndpointError, match=r"two\.tar\.gz: contains several models, got m, n; .*--model"
    ):
        read_source(two, tmp_path)
    assert _container(two, tmp_path, "n").model == "n"
    assert _container(two, tmp_path, multi=True).archives == {"two.tar.gz": two}


def test_a_folder_of_archives_takes_the_place_of_a_prefix(tmp_path: Path) -> None:
    """Archives are target models by their path below it."""
    (tmp_path / "models" / "v1").mkdir(parents=True)
    archive = _archive(tmp_path / "models" / "v1" / "m.tar.gz", "m")
    assert _container(tmp_path / "models", tmp_path, multi=True).archives == {
        "v1/m.tar.gz": archive
    }


def test_models_with_errors_are_rejected_with_their_findings(tmp_path: Path) -> None:
    """They are checked before packing, so nothing is packed."""
    repository = _repository(tmp_path / "models", m=IDENTITY + "max_batchsize: 1")
    with pytest.raises(RepositoryError, match="max_batchsize"):
        read_source(repository, tmp_path / "scratch")
    assert not (tmp_path / "scratch").exists()


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("absent", {}, "absent: does not exist; run `npx cdk synth`, or pass the path of"),
        ("empty", {}, "neither a cloud assembly nor a model; .*cdk synth"),
        ("archives", {}, "contains archives and no models; serve them with --multi-model"),
        ("text", {}, "is not an archive; pass a .tar.gz"),
        ("net.onnx", {}, "is a model file; run `constructs-triton model new .*/net.onnx`"),
        ("model", {}, "is itself a model; pass its parent folder"),
        ("assembly", {"model": "m"}, "--model and --multi-model do not apply to a cloud assembly"),
        (
            "assembly",
            {"calls": {"a": ["b"]}},
            "--called-models applies only to a model repository; remove",
        ),
        ("m.tar.gz", {"calls": {"a": ["b"]}}, "--called-models applies only to a model repository"),
        ("empty", {"stack": "S"}, "--stack applies only to a cloud assembly"),
        ("m.tar.gz", {"stack": "S"}, "--stack applies only to a cloud assembly"),
        ("m.tar.gz", {"model": "m", "is_multi_model": True}, "has no default model, got --model m"),
    ],
)
def test_wrong_paths_and_options_are_reported(
    tmp_path: Path, name: str, options: dict[str, object], words: str
) -> None:
    """Each error contains the path and the fix."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").touch()
    (tmp_path / "net.onnx").touch()
    (tmp_path / "model" / "1").mkdir(parents=True)
    (tmp_path / "model" / "config.pbtxt").write_text(IDENTITY)
    (tmp_path / "assembly").mkdir()
    (tmp_path / "assembly" / "manifest.json").write_text("{}")
    _archive(tmp_path / "m.tar.gz", "m")
    (tmp_path / "archives").mkdir()
    _archive(tmp_path / "archives" / "m.tar.gz", "m")
    with pytest.raises(LocalEndpointError, match=words):
        read_source(tmp_path / name, tmp_path / "scratch", **options)  # type: ignore[arg-type]  # a table
