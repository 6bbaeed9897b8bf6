"""A repository from one model file."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import numpy as np
import onnx
import pytest
from cdk_apps import add_endpoint, add_many, make_app, only, synthesize, write_model
from check_examples.onnx_models import relu

from constructs_triton import ModelSource, RepositoryCheck, TritonModelRepository
from constructs_triton_core.errors import InvalidValueError, RepositoryError
from triton_model_check.model_config import ModelConfig, ModelInstanceGroup
from triton_model_check.model_repository import ModelRepository, pack


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "resnet.onnx"
    path.write_bytes(relu(("n", 3, 8, 8)))
    return path


def serve(source: ModelSource, outdir: Path, **props: Any) -> tuple[dict[str, Any], Path]:
    """Synthesize an endpoint in one statement; return the template and the archive."""
    stack = cdk.Stack(make_app(outdir), "Test")
    add_endpoint(stack, TritonModelRepository(stack, "Models", source=source, **props), model=None)
    template = synthesize(stack)
    (archive,) = outdir.glob("*.tar.gz")
    return template, archive


def test_endpoint_of_one_file_is_one_statement(model_file: Path, tmp_path: Path) -> None:
    """The only model of the repository is the one that the endpoint serves."""
    template, archive = serve(ModelSource.from_model_file(model_file), tmp_path / "out")
    container = only(template, "AWS::SageMaker::Model")["PrimaryContainer"]
    assert container["Environment"]["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "resnet"
    with tarfile.open(archive) as members:
        assert members.getnames() == [
            "resnet",
            "resnet/1",
            "resnet/1/model.onnx",
            "resnet/config.pbtxt",
        ]
        assert all(member.isdir() or member.isreg() for member in members)
        packed = members.extractfile("resnet/config.pbtxt")
        assert packed is not None
        assert ModelConfig.from_text(packed.read().decode()) == ModelConfig.from_model_file(
            model_file
        )


def test_archive_depends_on_content_only(model_file: Path, tmp_path: Path) -> None:
    """Another folder, file name and time give the same archive as a folder
    with the same content.
    """
    _, first = serve(ModelSource.from_model_file(model_file), tmp_path / "1")
    other = tmp_path / "elsewhere" / "net.onnx"
    other.parent.mkdir()
    other.write_bytes(model_file.read_bytes())
    _, second = serve(ModelSource.from_model_file(other, name="resnet"), tmp_path / "2")
    assert (first.name, first.read_bytes()) == (second.name, second.read_bytes())
    folder = tmp_path / "models" / "resnet"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.onnx").write_bytes(model_file.read_bytes())
    ModelConfig.from_model_file(model_file).write(folder)
    packed = pack(ModelRepository.from_directory(folder.parent), ["resnet"], tmp_path / "3")
    assert packed.path.read_bytes() == first.read_bytes()


def test_external_data_is_included(tmp_path: Path) -> None:
    """The weights keep their name, which the model contains."""
    weights = onnx.numpy_helper.from_array(np.ones((4, 4), "f4"), "W")
    tensors = [onnx.helper.make_tensor_value_info(name, 1, ["n", 4]) for name in "XY"]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["X", "W"], ["Y"])],
        "g",
        tensors[:1],
        tensors[1:],
        [weights],
    )
    proto = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8
    )
    options: dict[str, Any] = {"save_as_external_data": True, "size_threshold": 0}
    onnx.save(proto, tmp_path / "net.onnx", location="net.weights", **options)
    _, archive = serve(ModelSource.from_model_file(tmp_path / "net.onnx"), tmp_path / "out")
    with tarfile.open(archive) as members:
        assert "net/1/net.weights" in members.getnames()
        assert members.getmember("net/1/net.weights").size == 64
    proto = onnx.load(tmp_path / "net.onnx", load_external_data=False)
    for entry in proto.graph.initializer[0].external_data:
        entry.value = "../net.weights" if entry.key == "location" else entry.value
    (tmp_path / "below").mkdir()
    onnx.save(proto, tmp_path / "below" / "net.onnx")
    with pytest.raises((InvalidValueError, RepositoryError), match=r"below/net.onnx.*net\.weights"):
        serve(ModelSource.from_model_file(tmp_path / "below" / "net.onnx"), tmp_path / "out2")


def test_findings_name_the_users_file(tmp_path: Path) -> None:
    """A fault of the file is a finding with its code, which can be acknowledged."""
    path = tmp_path / "resnet.onnx"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(RepositoryError) as error:
        serve(ModelSource.from_model_file(path), tmp_path / "out")
    (finding,) = error.value.findings
    assert (finding.code, finding.path) == ("file-git-lfs-pointer", str(path))
    accepted = RepositoryCheck.on(acknowledge=["file-git-lfs-pointer"])
    serve(ModelSource.from_model_file(path), tmp_path / "out", check=accepted)


def test_findings_about_the_derived_configuration(model_file: Path, tmp_path: Path) -> None:
    """They depend on the endpoint; no line is named, because the user wrote no config.pbtxt."""
    source = ModelSource.from_model_file(
        model_file, instance_group=[ModelInstanceGroup(kind="KIND_GPU", count=1, gpus=[7])]
    )
    with pytest.raises(RepositoryError) as error:
        serve(source, tmp_path / "out")
    assert error.value.findings[0].path == f"{model_file} (config.pbtxt)"
    assert error.value.findings[0].line is None


def test_models_of_files_share_a_multi_model_endpoint(model_file: Path) -> None:
    """A file is a source like any other."""
    stack = cdk.Stack(make_app(), "Test")
    repository = TritonModelRepository(stack, "Models")
    for name in ("a", "b"):
        repository.add_model(name, ModelSource.from_model_file(model_file, name=name))
    add_many(stack, repository)
    assert sorted(repository.target_models) == ["a", "b"]


def test_model_is_required_unless_there_is_one(tmp_path: Path) -> None:
    """The error lists the models to choose from."""
    for name in ("a", "b"):
        write_model(tmp_path / "models", name)
    stack = cdk.Stack(make_app(), "Test")
    with pytest.raises(InvalidValueError, match='exactly one model, got "a" and "b"; set model'):
        add_endpoint(stack, tmp_path / "models", model=None)
    with pytest.raises(InvalidValueError, match="got no names that are known at synth; set model"):
        add_endpoint(stack, TritonModelRepository(stack, "None"), model=None)
