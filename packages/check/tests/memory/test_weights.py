"""What the sum says of formats whose size in memory is not that of the file on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines import memory, sizes, sparse


def _config(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text(text)


def _saved_model(folder: Path, text: str) -> None:
    model = folder / "1" / "model.savedmodel"
    sparse(model / "variables" / "variables.data-00000-of-00001", 2)
    (model / "saved_model.pb").write_bytes(b"\x08\x01")
    _config(folder, f'platform: "tensorflow_savedmodel"\n{text}')


def test_weights_beside_a_python_model_are_named(tmp_path: Path) -> None:
    """Whether ``model.py`` loads them, where and in which type is not known."""
    folder = tmp_path / "m"
    for name in ("model-00001-of-00002", "model-00002-of-00002"):
        sparse(folder / "1" / "llm" / f"{name}.safetensors", 6.5)
    (folder / "1" / "model.py").write_text(
        "class TritonPythonModel:\n    def execute(self, r): ..."
    )
    _config(folder, 'backend: "python"\n')
    lines = [line for line in memory(tmp_path).not_counted if "safetensors" in line]
    assert len(lines) == 1
    assert "its folder has 13.0 GiB of weights" in lines[0]
    assert "and 1 other file)" in lines[0]


@pytest.mark.parametrize(
    ("groups", "gib"),
    [
        ("instance_group { count: 3 kind: KIND_CPU }", 6.0),
        (
            "instance_group { count: 3 kind: KIND_CPU }\n"
            'parameters { key: "MAX_SESSION_SHARE_COUNT" value { string_value: "2" } }',
            4.0,
        ),
        ("instance_group { count: 3 kind: KIND_GPU }", 0),
    ],
)
def test_session_of_tensorflow_has_all_variables(groups: str, gib: float, tmp_path: Path) -> None:
    """Each session on the CPU has them; on a GPU the graph chooses the device of each."""
    _saved_model(tmp_path / "m", groups)
    estimate = memory(tmp_path, image="24.10")
    assert sizes(estimate).get(("the host", "m"), 0) == gib
    assert any("on the GPU" in line for line in estimate.not_counted) == (gib == 0)


@pytest.mark.parametrize(
    ("model_type", "file", "gib"),
    [
        ("treelite_checkpoint", "checkpoint.tl", 6.0),
        ("xgboost_ubj", "xgboost.ubj", 6.0),
        ("xgboost", "xgboost.model", 0),
    ],
)
def test_each_instance_has_its_forest_in_host_memory(
    model_type: str, file: str, gib: float, tmp_path: Path
) -> None:
    """The FIL backend keeps it there for instances on a GPU too, whose copy is not counted."""
    sparse(tmp_path / "m" / "1" / file, 2)
    parameter = f'parameters {{ key: "model_type" value {{ string_value: "{model_type}" }} }}'
    group = "instance_group { count: 3 kind: KIND_GPU }"
    _config(tmp_path / "m", f'backend: "fil"\nmax_batch_size: 8\n{group}\n{parameter}\n')
    estimate = memory(tmp_path)
    assert sizes(estimate).get(("the host", "m"), 0) == gib
    (line,) = estimate.not_counted
    assert ("trees on the GPU" if gib else "which have 2.0 GiB") in line


def test_package_of_aot_inductor_counts(tmp_path: Path) -> None:
    """The package of a PyTorch model that was compiled ahead of time is counted as a whole."""
    sparse(tmp_path / "m" / "1" / "model.pt2", 3)
    _config(tmp_path / "m", 'backend: "pytorch"\nplatform: "torch_aoti"\n')
    assert sizes(memory(tmp_path)) == {("GPU 0", "m"): 3.0}


def test_weights_of_another_backend_are_named(tmp_path: Path) -> None:
    """A backend that the checker does not know may load what is in the folder of its model."""
    sparse(tmp_path / "m" / "1" / "model.bin", 2)
    _config(tmp_path / "m", 'backend: "mine"\n')
    (line,) = memory(tmp_path).not_counted
    assert line.endswith("its folder has 2.0 GiB of weights (1/model.bin)")
