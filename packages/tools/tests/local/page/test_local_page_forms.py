"""Forms made from the configurations of models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from constructs_triton_tools.local.page.forms import describe_model, steps_of
from triton_model_check.model_repository import ModelRepository

PROJECT = Path(__file__).resolve().parents[5]
SAMPLES = PROJECT / "assets" / "model_repositories"


def repository(folder: Path, **models: str) -> ModelRepository:
    """A repository of models with these configurations."""
    for name, config in models.items():
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(config)
    return ModelRepository.from_directory(folder)


def form_of(found: ModelRepository, name: str) -> dict[str, Any]:
    return describe_model(found, found.models[name])


def test_tensors_layout_and_labels(tmp_path: Path) -> None:
    """A form has the declared layout and the labels; the rest is for the caller to choose."""
    config = """
        backend: "python"  max_batch_size: 8
        input [ { name: "X" data_type: TYPE_UINT8 format: FORMAT_NHWC dims: [ -1, -1, 3 ] },
                { name: "limit" data_type: TYPE_FP16 dims: [ 1 ] optional: true } ]
        output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "labels.txt" },
                 { name: "Z" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "../labels.txt" } ]
    """
    found = repository(tmp_path / "models", m=config)
    (tmp_path / "models" / "labels.txt").write_text("outside")
    (tmp_path / "models" / "m" / "labels.txt").write_text("cat\ndog\n")
    form = form_of(found, "m")
    assert form["max_batch_size"] == 8
    assert form["inputs"] == [
        {
            "name": "X",
            "datatype": "UINT8",
            "dims": [-1, -1, 3],
            "optional": False,
            "format": "FORMAT_NHWC",
        },
        {
            "name": "limit",
            "datatype": "FP16",
            "dims": [1],
            "optional": True,
            "format": "FORMAT_NONE",
        },
    ]
    assert [each["labels"] for each in form["outputs"]] == [["cat", "dog"], []]


def test_steps_of_an_ensemble_are_in_order(tmp_path: Path) -> None:
    """Each step has the layer after the steps that write its inputs."""
    found = ModelRepository.from_directory(SAMPLES / "alerts")
    steps = form_of(found, "alerts")["steps"]
    assert [(each["model"], each["layer"]) for each in steps] == [("smooth", 0), ("compare", 1)]
    assert steps[1]["reads"] == ["expected", "readings"]


def test_ensemble_with_a_cycle_has_steps(tmp_path: Path) -> None:
    """An ensemble that the server refuses is described all the same."""
    steps = "".join(
        f'step {{ model_name: "{name}" input_map {{ key: "X" value: "{reads}" }} '
        f'output_map {{ key: "Y" value: "{writes}" }} }}'
        for name, reads, writes in ("aqp", "bpq")
    )
    config = f'platform: "ensemble" ensemble_scheduling {{ {steps} }}'
    found = repository(tmp_path, loop=config)
    assert {each["model"] for each in steps_of(found.models, found.models["loop"])} == {"a", "b"}


def test_models_that_a_model_calls_are_its_steps(tmp_path: Path) -> None:
    """A Python model that calls others comes before them,
    and a model that calls itself is one step.
    """
    found = repository(tmp_path, front='backend: "python"', back='backend: "python"')
    (tmp_path / "front" / "1" / "model.py").write_text(
        "import triton_python_backend_utils as pb_utils\n"
        "pb_utils.InferenceRequest(model_name='back', requested_output_names=[], inputs=[])\n"
        "pb_utils.InferenceRequest(model_name='front', requested_output_names=[], inputs=[])\n"
    )
    steps = steps_of(found.models, found.models["front"])
    assert [(each["model"], each["layer"], each["called_by"]) for each in steps] == [
        ("front", 0, ""),
        ("back", 1, "front"),
    ]
