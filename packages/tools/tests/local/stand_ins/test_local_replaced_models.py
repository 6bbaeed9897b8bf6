"""Models that run in the place of others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from local_assembly import write_archive
from onnx_samples import linear_model

from constructs_triton_core.errors import InvalidValueError, LocalEndpointError
from constructs_triton_tools.local.sources.specs import (
    ContainerSpec,
    EndpointSpec,
    FileContent,
    VariantSpec,
)
from constructs_triton_tools.local.stand_ins.replaced_models import (
    check_replaced_names,
    find_stand_ins,
    put_in_place,
)
from constructs_triton_tools.local.stand_ins.stand_ins import StandIns
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model_config.text import parse_model_config


@pytest.mark.parametrize("path", ["absent.onnx", "/tmp"])
def test_a_stand_in_is_an_existing_model(path: str) -> None:
    """Anything else is an error before a server starts."""
    with pytest.raises(
        InvalidValueError, match=r"^--stand-in resnet: must be an existing \.onnx file"
    ):
        find_stand_ins({"resnet": path})


def _plan(folder: Path) -> ModelFolder:
    (folder / "plan" / "2").mkdir(parents=True)
    (folder / "plan" / "config.pbtxt").write_text(
        'platform: "tensorrt_plan"\nmax_batch_size: 8\ndefault_model_filename: "a.plan"\n'
    )
    return ModelFolder("plan", folder / "plan")


def test_weights_in_other_files_are_copied_too(tmp_path: Path) -> None:
    """The configuration changes only in what names the backend and the file."""
    path = linear_model(tmp_path / "export" / "net.onnx")
    model = onnx.load(path)
    model.graph.initializer[0].raw_data = np.zeros((4, 3), np.float32).tobytes()
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    folder = _plan(tmp_path / "models")
    stand_ins = find_stand_ins({"plan": str(path), "other": str(path)})
    assert put_in_place([folder], stand_ins) == {"plan": path}
    assert sorted(each.name for each in (folder.directory / "2").iterdir()) == [
        "stand_in.onnx",
        "weights.bin",
    ]
    config = parse_model_config((folder.directory / "config.pbtxt").read_bytes())
    assert (config.backend, config.platform, config.max_batch_size) == ("onnxruntime", "", 8)


def test_weights_outside_of_the_folder_are_not_copied(tmp_path: Path) -> None:
    """A stand-in decides neither where its weights are read nor where they are written."""
    path = linear_model(tmp_path / "export" / "net.onnx")
    model = onnx.load(path)
    model.graph.initializer[0].raw_data = np.zeros((4, 3), np.float32).tobytes()
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[0].external_data[0].value = "../weights.bin"
    path.write_bytes(model.SerializeToString())
    (tmp_path / "weights.bin").write_bytes(b"precious")
    folder = _plan(tmp_path / "models")
    with pytest.raises(LocalEndpointError, match=r"must be below its folder, got '../weights.bin'"):
        put_in_place([folder], find_stand_ins({"plan": str(path)}))
    assert not list(folder.directory.glob("weights.bin"))


def test_a_stand_in_may_be_for_one_archive(tmp_path: Path) -> None:
    """The name with the archive is used in that archive, before the name alone, and in no other."""
    path, other = (linear_model(tmp_path / name / "net.onnx") for name in ("own", "other"))
    given = StandIns(models=find_stand_ins({"b.tar.gz/plan": str(path)}))
    assert put_in_place([_plan(tmp_path / "a")], given.for_archive("a.tar.gz").models) == {}
    assert put_in_place([_plan(tmp_path / "b")], given.for_archive("b.tar.gz").models) == {
        "plan": path
    }
    both = StandIns(models={**given.models, "plan": other})
    assert both.for_archive("b.tar.gz").models["plan"] == path
    assert both.for_archive("").models["plan"] == other


def _runs(folder: Path, **containers: dict[str, list[str]]) -> list[EndpointSpec]:
    """An endpoint with a multi-model variant for each keyword: its archives,
    and the files of each.
    """
    variants = []
    for variant, archives in containers.items():
        paths = {name: folder / variant / name for name in archives}
        for name, path in paths.items():
            path.parent.mkdir(exist_ok=True)
            write_archive(path, dict.fromkeys(archives[name], ""))
        variants.append(VariantSpec(variant, ContainerSpec("m", "", "s3://b/p/", archives=paths)))
    return [EndpointSpec("e", "Stack", tuple(variants))]


FILES = {
    "a.tar.gz": ["plan/1/a.plan", "decode/config.pbtxt"],
    "b.tar.gz": ["config.pbtxt", "1/b.plan"],
}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("plna", 'did you mean "plan"? the models are "1", "decode", "model" and "plan"'),
        (
            "a.tar.gz/plam",
            (
                'did you mean "a.tar.gz/plan"? the models are "a.tar.gz/decode", "a.tar.gz/plan", '
                '"b.tar.gz/1" and "b.tar.gz/model"'
            ),
        ),
        ("b.tar.gz/decode", 'did you mean "a.tar.gz/decode"?'),
        ("classifier_trt", 'the models are "1", "decode", "model" and "plan"'),
    ],
)
def test_a_stand_in_for_no_model_is_refused(tmp_path: Path, name: str, hint: str) -> None:
    """The error has the name that was probably meant, and the names of the run."""
    runs = _runs(tmp_path, first=FILES)
    with pytest.raises(InvalidValueError) as refused:
        check_replaced_names(["plan", name], runs)
    assert str(refused.value).startswith(
        f'--stand-in: no model of this run has this name, got "{name}"; {hint}'
    )


def test_a_stand_in_for_a_model_of_the_run_is_accepted(tmp_path: Path) -> None:
    """Archives of any variant, models at the root of an archive, single models and files count."""
    runs = _runs(tmp_path, first=FILES, second={"c.tar.gz": ["other/1/c.plan"]})
    check_replaced_names(
        ["plan", "a.tar.gz/decode", "model", "b.tar.gz/model", "c.tar.gz/other"], runs
    )
    archive = write_archive(tmp_path / "single.tar.gz", {"net/1/net.plan": ""})
    single = ContainerSpec("m", "", "s3://b/k", archive=archive)
    files = ContainerSpec("m", "", "s3://b/k/", files={"raw/1/raw.plan": FileContent(archive)})
    both = EndpointSpec("e", "Stack", (VariantSpec("v", single),), (VariantSpec("shadow", files),))
    check_replaced_names(["net", "raw"], [both])
    with pytest.raises(InvalidValueError, match='the models are "net" and "raw"'):
        check_replaced_names(["nothing at all"], [both])


def test_archives_that_come_later_may_have_any_model(tmp_path: Path) -> None:
    """The archives of a deployed endpoint are downloaded on the first call;
    a prefix may be filled later.
    """
    deployed = ContainerSpec("m", "", "s3://b/p/", fetch_archive=lambda _: None)
    empty = ContainerSpec("m", "", "s3://b/p/")
    for later in (deployed, empty):
        check_replaced_names(["any"], [EndpointSpec("e", "Stack", (VariantSpec("v", later),))])


def test_a_stand_in_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The file is no ONNX model."""
    (tmp_path / "net.onnx").write_text("<html>")
    stand_ins = find_stand_ins({"plan": str(tmp_path / "net.onnx")})
    with pytest.raises(LocalEndpointError, match=r"--stand-in plan: .*net\.onnx cannot be read"):
        put_in_place([_plan(tmp_path / "models")], stand_ins)


@pytest.mark.parametrize(
    ("image", "version", "notice"),
    [
        ("24.01", "[1, 7, 6]", "but image 24.01 supports JSON of XGBoost before 1.7"),
        ("24.10", "[1, 7, 6]", None),
        ("24.10", "[3, 2, 0]", "which images read it is not published"),
    ],
)
def test_a_stand_in_reports_what_the_image_may_not_read(
    image: str, version: str, notice: str | None, tmp_path: Path
) -> None:
    """The installed XGBoost reads more formats than the FIL backend of the image."""
    config = (
        'backend: "fil"\nparameters { key: "model_type" value { string_value: "xgboost_json" } }\n'
    )
    (tmp_path / "trees" / "1").mkdir(parents=True)
    (tmp_path / "trees" / "config.pbtxt").write_text(config)
    (tmp_path / "trees" / "1" / "xgboost.json").write_text(
        f'{{"learner": {{}}, "version": {version}}}'
    )
    printed: list[str] = []
    uri = f"301217895009.dkr.ecr.us-west-2.amazonaws.com/sagemaker-tritonserver:{image}-py3-cpu"
    stand_ins = StandIns({"xgboost": "3.2.0"}).for_archive("", uri)
    stand_ins.require(ModelFolder("trees", tmp_path / "trees"), "fil", printed.append)
    assert printed[0] == "trees: backend fil is replaced by xgboost 3.2.0 on the CPU"
    assert len(printed) == 1 + (notice is not None)
    assert (notice or "") in printed[-1]
