"""Models that run in the place of others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_samples import linear_model

from constructs_triton.errors import InvalidValueError, LocalEndpointError
from constructs_triton.local.stand_ins.stand_ins import StandIns
from constructs_triton.local.stand_ins.substitutes import put_in_place, read_substitutes
from constructs_triton.model_config.folder import ModelFolder
from constructs_triton.model_config.text import parse_model_config


@pytest.mark.parametrize("given", ["resnet", "=a.onnx", "resnet=", "resnet=absent.onnx", "resnet=/tmp"])
def test_a_substitute_is_a_name_and_an_existing_model(given: str) -> None:
    """Anything else is an error before a server starts."""
    with pytest.raises(InvalidValueError, match="--substitute"):
        read_substitutes([given])


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
    substitutes = read_substitutes([f"plan={path}", f"other={path}"])
    assert put_in_place([folder], substitutes) == {"plan": path}
    assert sorted(each.name for each in (folder.directory / "2").iterdir()) == [
        "substitute.onnx",
        "weights.bin",
    ]
    config = parse_model_config((folder.directory / "config.pbtxt").read_bytes())
    assert (config.backend, config.platform, config.max_batch_size) == ("onnxruntime", "", 8)


def test_a_substitute_may_be_for_one_archive(tmp_path: Path) -> None:
    """The name with the archive is used in that archive, before the name alone, and in no other."""
    path, other = (linear_model(tmp_path / name / "net.onnx") for name in ("own", "other"))
    given = StandIns(substitutes=read_substitutes([f"b.tar.gz/plan={path}"]))
    assert put_in_place([_plan(tmp_path / "a")], given.for_archive("a.tar.gz").substitutes) == {}
    assert put_in_place([_plan(tmp_path / "b")], given.for_archive("b.tar.gz").substitutes) == {"plan": path}
    both = StandIns(substitutes={**given.substitutes, "plan": other})
    assert both.for_archive("b.tar.gz").substitutes["plan"] == path
    assert both.for_archive("").substitutes["plan"] == other


def test_a_substitute_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The file is no ONNX model."""
    (tmp_path / "net.onnx").write_text("<html>")
    substitutes = read_substitutes([f"plan={tmp_path / 'net.onnx'}"])
    with pytest.raises(LocalEndpointError, match=r"--substitute plan: .*net\.onnx cannot be read"):
        put_in_place([_plan(tmp_path / "models")], substitutes)
