"""Examples of the checks of model files other than ONNX."""

# Configurations read best unbroken.

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from check_examples.repositories import IO, Example, Files, X, Y
from check_examples.torch_and_plan import described, plan, torchscript, traced, zipped
from triton_model_check.model_config.target import Target
from triton_model_check.model_files.model_file import ModelTensor
from triton_model_check.model_files.plan_manifest import PlanManifest

PLAN = f'platform: "tensorrt_plan"\nmax_batch_size: 8\n{IO}'
TORCH = f'backend: "pytorch"\nmax_batch_size: 8\n{IO}'
TORCH_PAIR = TORCH.replace(X, X + ', { name: "%s" data_type: TYPE_FP32 dims: [ 4 ] }')
GPU = Target(default_model="m", gpu_count=1)
TREE = (
    'backend: "fil"\nmax_batch_size: 8\n'
    'input [ { name: "input__0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'
    'output [ { name: "output__0" data_type: TYPE_FP32 dims: [ 1 ] } ]\n'
)
OPENVINO = f'backend: "openvino"\nmax_batch_size: 8\n{IO}'
CONSTANT = '<net name="m"><layers><layer type="Const"/></layers></net>'
XGBOOST = '{"learner": {}}'
XGBOOST_2 = '{"learner": {}, "version": [2, 0, 3]}'
LIGHTGBM = "tree\nversion=v4\nmax_feature_idx=3\nobjective=regression\n\n"
SAVED = f'platform: "tensorflow_savedmodel"\nmax_batch_size: 8\n{IO}'
OLD = Target(default_model="m", image_version="24.05", gpu_count=1)
T4 = Target(default_model="m", gpu_count=1, gpu_model="T4", compute_capability="7.5")
L40S = Target(default_model="m", gpu_count=1, gpu_model="L40S", compute_capability="8.9")
PLANS = f'{PLAN}cc_model_filenames {{ key: "7.5" value: "t4.plan" }}\n'
WEB_PAGE = "<!DOCTYPE html>\n<title>Sign in</title>\n"

STATE_DICT = described(
    zipped({"data.pkl": b"\x80\x02}.", "version": b"3\n"}), "torch.save(model.state_dict())"
)


def _one(config: str, name: str, content: str | bytes | None, **files: str | bytes | None) -> Files:
    return {"m/config.pbtxt": config, f"m/1/{name}": content, **files}


def _compiled(
    gpu_model: str, compute_capability: str, config: str = PLAN, tensors: Sequence[ModelTensor] = ()
) -> Files:
    """A plan with the manifest that ``constructs-triton compile`` writes."""
    manifest = PlanManifest(
        key="0" * 64,
        gpu_model=gpu_model,
        compute_capability=compute_capability,
        built_on="ml.g5.xlarge",
        image="tritonserver:24.05-py3",
        tensorrt="10.0.1.6",
        driver="550.54",
        arguments=("--skipInference",),
        model_sha256="0" * 64,
        plan_bytes=len(plan()),
        plan_sha256=hashlib.sha256(plan()).hexdigest(),
        build_seconds=60,
        job="plan-m",
        log_group="/aws/sagemaker/ProcessingJobs",
        inputs=tuple(each for each in tensors if each.profile),
        outputs=tuple(each for each in tensors if not each.profile),
    )
    return _one(
        config, "model.plan", plan(), **{"m/plan.json": json.dumps(manifest.to_dict(), indent=2)}
    )


#: A batch of 1 to 8 rows of 2 to 16 numbers, and a batch of rows of 4.
ROWS = (
    ModelTensor("X", "TYPE_FP32", (-1, -1), profile=((1, 2), (4, 4), (8, 16))),
    ModelTensor("Y", "TYPE_FP32", (-1, 4)),
)

SCORE = '{ name: "score" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } }'
SCORED = (*ROWS, ModelTensor("score", "TYPE_FP32", (-1,)))


def _with_tensors(failing: tuple[str, str], count: int = 1) -> Example:
    """Two configurations of a plan with known tensors: one with words replaced,
    and the right one.
    """
    return Example(
        _compiled("T4", "7.5", PLAN.replace(*failing, count), ROWS),
        _compiled("T4", "7.5", PLAN, ROWS),
        T4,
    )


def _files(config: str, name: str, failing: str | bytes, fixed: str | bytes) -> Example:
    return Example(_one(config, name, failing), _one(config, name, fixed))


def _tree(failing: str, fixed: str, name: str = "xgboost.json") -> Example:
    return Example(_one(TREE + failing, name, XGBOOST), _one(TREE + fixed, name, XGBOOST))


def _parameters(**values: str) -> str:
    return "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
        for key, value in values.items()
    )


LIGHTGBM_REGRESSION = _parameters(model_type="lightgbm", output_class="false")
JSON_REGRESSION = _parameters(model_type="xgboost_json", output_class="false")

EXAMPLES: dict[str, Example] = {
    "plan-not-a-plan": _files(PLAN, "model.plan", WEB_PAGE, plan()),
    "plan-version": Example(
        _one(PLAN, "model.plan", plan("8.6.1.6")), _one(PLAN, "model.plan", plan("10.0.1.6")), OLD
    ),
    "plan-version: cc_model_filenames": Example(
        _one(PLANS, "t4.plan", plan("8.6.1.6")), _one(PLANS, "t4.plan", plan("10.0.1.6")), OLD
    ),
    "model-file-missing: GPU": Example(
        _one(PLANS, "t4.plan", plan()),
        _one(
            f'{PLANS}cc_model_filenames {{ key: "8.9" value: "l40s.plan" }}\n',
            "t4.plan",
            plan(),
            **{"m/1/l40s.plan": plan()},
        ),
        L40S,
    ),
    "plan-gpu": Example(_compiled("A10G", "8.6"), _compiled("T4", "7.5"), T4),
    "plan-gpu: not a manifest": Example(
        {**_compiled("T4", "7.5"), "m/plan.json": "{}"}, _compiled("T4", "7.5"), T4
    ),
    "plan-gpu-model": Example(_compiled("L4", "8.9"), _compiled("L40S", "8.9"), L40S),
    "plan-tensor": _with_tensors(('"X"', '"x"')),
    "plan-tensor: data type": _with_tensors(("FP32", "FP16")),
    "plan-tensor: an output that is left out": Example(
        _compiled("T4", "7.5", PLAN, SCORED),
        _compiled("T4", "7.5", PLAN.replace(Y, f"{Y}, {SCORE}"), SCORED),
        T4,
    ),
    "plan-dims": _with_tensors((Y, Y.replace("[ 4 ]", "[ 4, 1 ]"))),
    "plan-dims: outside of the profile": _with_tensors(("[ 4 ]", "[ 32 ]")),
    "plan-max-batch-size": _with_tensors(("max_batch_size: 8", "max_batch_size: 64")),
    "plan-max-batch-size: dims with the batch dimension": _with_tensors(("[ 4 ]", "[ -1, 4 ]"), 2),
    "plan-data-type": Example(
        _one(PLAN.replace("FP32", "FP64", 1), "model.plan", plan()),
        _one(PLAN, "model.plan", plan()),
    ),
    "torchscript-not-a-model": _files(TORCH, "model.pt", STATE_DICT, torchscript()),
    "torchscript-no-tensors": Example(
        _one('backend: "pytorch"\n', "model.pt", torchscript()),
        _one(TORCH, "model.pt", torchscript()),
    ),
    "torchscript-input-count": _files(
        TORCH, "model.pt", torchscript("X: Tensor, mask: Tensor", "X * mask"), torchscript()
    ),
    "torchscript-input-name": Example(
        _one(TORCH_PAIR % "maks", "model.pt", torchscript("X: Tensor, mask: Tensor", "X * mask")),
        _one(TORCH_PAIR % "mask", "model.pt", torchscript("X: Tensor, mask: Tensor", "X * mask")),
    ),
    "torchscript-device": Example(
        _one(
            TORCH,
            "model.pt",
            torchscript(body='torch.add(X, torch.ones([4], device=torch.device("cpu")))'),
        ),
        _one(TORCH, "model.pt", torchscript(body="torch.add(X, torch.ones_like(X))")),
        GPU,
    ),
    "torchscript-arguments": _files(
        TORCH, "model.pt", torchscript("X: Tensor, scale: float", "X * scale"), torchscript()
    ),
    "model-file-format": _files('backend: "dali"\n' + IO, "model.dali", WEB_PAGE, b"\x0a\x01"),
    "model-file-format: weights of OpenVINO": Example(
        _one(OPENVINO, "model.xml", CONSTANT),
        _one(OPENVINO, "model.xml", CONSTANT, **{"m/1/model.bin": b"\0"}),
    ),
    "model-file-format: SavedModel in a further folder": Example(
        _one(SAVED, "model.savedmodel/1/saved_model.pb", b"\x08\x01"),
        _one(SAVED, "model.savedmodel/saved_model.pb", b"\x08\x01"),
    ),
    "tree-model-type": _tree(
        _parameters(model_type="xgboost-json", output_class="false"), JSON_REGRESSION
    ),
    "model-file-missing: model_type": Example(
        _one(TREE + _parameters(output_class="false"), "xgboost.json", XGBOOST),
        _one(TREE + JSON_REGRESSION, "xgboost.json", XGBOOST),
    ),
    "tree-model-type: the format of the file": Example(
        _one(TREE + _parameters(output_class="false"), "xgboost.model", XGBOOST),
        _one(TREE + JSON_REGRESSION, "xgboost.json", XGBOOST),
    ),
    "tree-features": Example(
        _one(TREE.replace("[ 4 ]", "[ 5 ]") + LIGHTGBM_REGRESSION, "model.txt", LIGHTGBM),
        _one(TREE + LIGHTGBM_REGRESSION, "model.txt", LIGHTGBM),
    ),
    "torchscript-input-type": Example(
        _one(TORCH, "model.pt", traced("LongStorage")),
        _one(TORCH, "model.pt", traced("FloatStorage")),
    ),
    "tree-version": Example(
        _one(TREE + JSON_REGRESSION, "xgboost.json", XGBOOST_2),
        _one(TREE + JSON_REGRESSION, "xgboost.json", XGBOOST_2),
        Target(default_model="m", image_version="24.01"),
        Target(default_model="m", image_version="24.03"),
    ),
    "tree-classifier": _tree(_parameters(model_type="xgboost_json"), JSON_REGRESSION),
    "tree-classifier: threshold": _tree(
        _parameters(model_type="xgboost_json", output_class="true"),
        _parameters(model_type="xgboost_json", output_class="true", threshold="0.5"),
    ),
}
