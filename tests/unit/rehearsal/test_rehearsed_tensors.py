"""What a rehearsal says of callers when the inputs and outputs of models change."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest

from cdk_rehearse.updates.report import Rehearsal
from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEndpoint,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)
from constructs_triton.testing import rehearse

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

INPUT = '{ name: "IMAGE" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }'
OUTPUT = '{ name: "SCORES" data_type: TYPE_FP32 dims: [ 10 ] }'
MODEL = """import triton_python_backend_utils

class TritonPythonModel:
    def execute(self, requests):
        return []
"""

COMPLETES = """
    @staticmethod
    def auto_complete_config(config):
        return config
"""


def _write_model(folder: Path, inputs: str, outputs: str, version: str = "") -> None:
    """Write a Python model with these inputs and outputs."""
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(MODEL + version)
    (folder / "config.pbtxt").write_text(
        f'backend: "python"\nmax_batch_size: 8\ninput [ {inputs} ]\noutput [ {outputs} ]\n'
    )


def _stack(models: Path, *, is_multi_model: bool = False) -> cdk.Stack:
    """Return a stack with an endpoint of the models in a folder."""
    stack = cdk.Stack(cdk.App(), "Shop")
    repository = TritonModelRepository(
        stack, "Models", source=ModelSource.from_directory(str(models))
    )
    instance_type = InstanceType.of("ml.g5.xlarge")
    if is_multi_model:
        TritonMultiModelEndpoint(
            stack,
            "Vision",
            model_repository=repository,
            instance_type=instance_type,
            endpoint_name="vision",
        )
    else:
        TritonEndpoint(
            stack,
            "Vision",
            model_repository=repository,
            model="cats",
            instance_type=instance_type,
            endpoint_name="vision",
        )
    return stack


def _rehearsed(tmp_path: Path, inputs: str, outputs: str = OUTPUT) -> Rehearsal:
    """Rehearse a change of the tensors of one model."""
    _write_model(tmp_path / "old" / "cats", INPUT, OUTPUT)
    _write_model(tmp_path / "new" / "cats", inputs, outputs)
    old, new = _stack(tmp_path / "old"), _stack(tmp_path / "new")
    return rehearse(old, new, failures="none", orders=1)


@pytest.mark.parametrize(
    ("inputs", "outputs", "noticed"),
    [
        (
            INPUT.replace("FP32", "UINT8"),
            OUTPUT,
            'input "IMAGE" is UINT8 [-1, 3, 224, 224], and was FP32 [-1, 3, 224, 224]',
        ),
        (
            INPUT + ', { name: "MASK" data_type: TYPE_BOOL dims: [ 1 ] }',
            OUTPUT,
            'calls must send the new input "MASK", BOOL [-1, 1]',
        ),
        (INPUT, OUTPUT.replace("SCORES", "LOGITS"), 'there is no output "SCORES" any more'),
        (INPUT, OUTPUT.replace("10", "11"), 'output "SCORES" is FP32 [-1, 11], and was'),
    ],
)
def test_change_after_which_calls_fail_is_a_warning(
    inputs: str, outputs: str, noticed: str, tmp_path: Path
) -> None:
    """It names the endpoint, the model and the tensor with both declarations."""
    found = _rehearsed(tmp_path, inputs, outputs)
    (warning,) = [each for each in found.problems if each.code == "rehearse-callers-fail"]
    assert warning.message.startswith('endpoint vision, model "cats": ')
    assert noticed in warning.message
    assert not found.errors


@pytest.mark.parametrize(
    ("inputs", "outputs", "callers"),
    [
        (INPUT.replace("3, 224, 224", "3, -1, -1"), OUTPUT, ()),
        (
            INPUT + ', { name: "MASK" data_type: TYPE_BOOL dims: [ 1 ] optional: true }',
            OUTPUT,
            ('endpoint vision, model "cats": the new optional input "MASK", BOOL [-1, 1]',),
        ),
    ],
)
def test_change_that_takes_all_former_calls_is_no_problem(
    inputs: str, outputs: str, callers: tuple[str, ...], tmp_path: Path
) -> None:
    """Wider dims and optional inputs need no change of a caller."""
    found = _rehearsed(tmp_path, inputs, outputs)
    assert found.callers == callers
    assert "rehearse-callers-fail" not in {each.code for each in found.problems}


def test_models_of_a_multi_model_endpoint_that_change_alike_are_one_warning(
    tmp_path: Path,
) -> None:
    """Each model is compared by its name, although the key of its archive changes."""
    for name in ("cats", "dogs", "owls", "bats", "elks"):
        changed = INPUT if name == "owls" else INPUT.replace("FP32", "FP16")
        _write_model(tmp_path / "old" / name, INPUT, OUTPUT)
        _write_model(tmp_path / "new" / name, changed, OUTPUT, version=f"# {name}\n")
    stacks = [_stack(tmp_path / name, is_multi_model=True) for name in ("old", "new")]
    found = rehearse(*stacks, failures="none", orders=1)
    (warning,) = [each for each in found.problems if each.code == "rehearse-callers-fail"]
    assert '"bats", "cats", "dogs"' in warning.message
    assert "owls" not in warning.message


def test_model_that_completes_its_tensors_is_not_compared(tmp_path: Path) -> None:
    """Code may set tensors when it is loaded; the rehearsal says that it does not know them."""
    for name in ("old", "new"):
        _write_model(tmp_path / name / "cats", INPUT, OUTPUT, version=COMPLETES + f"# {name}\n")
        (tmp_path / name / "cats" / "config.pbtxt").write_text('backend: "python"\n')
    found = rehearse(_stack(tmp_path / "old"), _stack(tmp_path / "new"), failures="none", orders=1)
    assert found.callers == ()
    assert any(
        note.startswith('inputs and outputs of "cats" of endpoint vision')
        for note in found.not_simulated
    )
