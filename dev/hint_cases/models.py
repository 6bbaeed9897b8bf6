"""Hints of the checks of ensembles, model files and models that generate, followed."""

from __future__ import annotations

import json

from check_examples.onnx_models import relu
from check_examples.python_contract import EXAMPLES as PYTHON_EXAMPLES
from check_examples.repositories import CLASS, HEAD
from check_examples.torch_and_plan import plan

from hint_cases.edits import Step, add, config, delete, endpoint, ensemble, file, move

JSON = "m/1/model.json"
MAPS = 'input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" }'
ONE = f'ensemble_scheduling {{ step [ {{ model_name: "a" model_version: -1 {MAPS} }} ] }}\n'

NEWER_IMAGE = ("python-backend-name-in-function: release", "python-response-sender")


def _rewritten(key: str) -> tuple[Step, ...]:
    """Write ``model.py`` and the modules beside it as the hint of an example says."""
    contents = PYTHON_EXAMPLES[key].fixed
    return tuple(
        add(path, content)
        for path, content in contents.items()
        if path.startswith("m/1/") and path.endswith(".py") and isinstance(content, str)
    )


CASES: dict[str, tuple[Step, ...]] = {
    **{key: _rewritten(key) for key in PYTHON_EXAMPLES if key not in NEWER_IMAGE},
    **{key: (endpoint(image_version="24.10"),) for key in NEWER_IMAGE},
    "backend-ensemble-platform": (
        ensemble('platform: "ensemble"\n', f'platform: "ensemble"\nmax_batch_size: 8\n{ONE}'),
    ),
    "ensemble-field": (ensemble("instance_group [ { count: 1 } ]\n", ""),),
    "ensemble-field: optimization": (ensemble("optimization { priority: PRIORITY_MAX }\n", ""),),
    "ensemble-field: warmup": (ensemble('model_warmup [ { name: "w" } ]\n', ""),),
    "ensemble-ragged": (ensemble("allow_ragged_batch: true ", ""),),
    "ensemble-no-step": (ensemble("ensemble_scheduling { }\n", ONE),),
    "ensemble-step-incomplete": (
        ensemble('"X" } }\n', '"X" } output_map { key: "Y" value: "Z" } }\n'),
        ensemble("output [", 'output [ { name: "Z" data_type: TYPE_FP32 dims: [ 4 ] },'),
    ),
    "ensemble-step-incomplete: no model": (ensemble('model_name: ""', 'model_name: "a"'),),
    "ensemble-step-incomplete: no input": (
        ensemble("-1 output_map", '-1 input_map { key: "X" value: "X" } output_map'),
    ),
    "ensemble-unused-input": (
        ensemble('input [ { name: "Z" data_type: TYPE_FP32 dims: [ 4 ] } ]\n', ""),
    ),
    "ensemble-unread": (
        ensemble("output [", 'output [ { name: "t" data_type: TYPE_FP32 dims: [ 4 ] },'),
    ),
    "ensemble-unproduced": (ensemble('"V" value: "image"', '"V" value: "X"'),),
    "ensemble-cycle": (ensemble('key: "X" value: "Y"', 'key: "X" value: "X"'),),
    "ensemble-duplicate-tensor": (
        ensemble('input [ { name: "X" data_type: TYPE_FP32 dims: [ 4 ] } ]\n', ""),
    ),
    "ensemble-unknown-model": (add("b/config.pbtxt", HEAD), add("b/1/model.py", CLASS)),
    "ensemble-step-version": (ensemble("model_version: 0", "model_version: -1"),),
    "ensemble-batch-size": (ensemble("max_batch_size: 16", "max_batch_size: 8"),),
    "ensemble-unknown-tensor": (ensemble(' input_map { key: "Z" value: "X" }', ""),),
    "ensemble-unmapped-input": (
        ensemble('"U" value: "X" }', '"U" value: "X" } input_map { key: "V" value: "X" }'),
    ),
    "ensemble-data-type": (ensemble("TYPE_FP16", "TYPE_FP32"),),
    "ensemble-shape": (ensemble("[ 5 ]", "[ 4 ]"),),
    "ensemble-batch-exceeded": (
        file("b/config.pbtxt", "max_batch_size: 8", "max_batch_size: 0"),
        file("b/config.pbtxt", "[ 4 ]", "[ -1, 4 ]"),
        file("b/config.pbtxt", "[ 4 ]", "[ -1, 4 ]"),
    ),
    "ensemble-batch-axis": (file("a/config.pbtxt", "input [", "max_batch_size: 8\ninput ["),),
    "python-model-file": (move("m/1/models.py", "m/1/model.py"),),
    "python-name-shell": (move("my model", "my_model"),),
    "python-name-shell: file": (
        move("m/1/my model.py", "m/1/my_model.py"),
        config("my model.py", "my_model.py"),
    ),
    "python-syntax": (file("m/1/model.py", "def\n", ""),),
    "python-class": (file("m/1/model.py", "class PythonModel", "class TritonPythonModel"),),
    "python-class: the only class": (file("m/1/model.py", "Scaler", "TritonPythonModel"),),
    "python-execute-returns-none: sender": (
        config("max_batch", "model_transaction_policy { decoupled: true }\nmax_batch"),
    ),
    "python-execute": (file("m/1/model.py", "def exec(", "def execute("),),
    "python-execute-returns-none": (
        file(
            "m/1/model.py",
            "        if requests:\n            return [None]",
            "        return [None]",
        ),
    ),
    "python-cpu-only-inputs": (config('"true"', '"yes"'),),
    "python-called-model": (file("m/1/model.py", "scaled", "scale"),),
    "python-called-model-unknown": (file("m/1/model.py", "NAMES[0]", '"scale"'),),
    "python-calls-on-multi-model-endpoint": (endpoint(platform="sagemaker", default_model="m"),),
    "python-output-absent": (config(', { name: "Z" data_type: TYPE_FP32 dims: [ 4 ] }', ""),),
    "python-tensor-name": (file("m/1/model.py", '"id"', '"Y"'),),
    "python-tensor-name: input": (file("m/1/model.py", '"image"', '"X"'),),
    "python-import": (
        file(
            "m/1/model.py",
            "import triton_python_backend_util as pb_utils",
            "import triton_python_backend_utils as pb_utils",
        ),
    ),
    "python-backend-module": (delete("m/1/triton_python_backend_utils.py"),),
    "python-backend-module-copy": (delete("m/triton_python_backend_utils.py"),),
    "python-no-tensors": (add("m/config.pbtxt", HEAD),),
    "python-no-tensors: config.pbtxt in the version folder": (
        move("m/1/config.pbtxt", "m/config.pbtxt"),
    ),
    "python-environment-pythonpath": (endpoint(python_path=None),),
    "plan-not-a-plan": (add("m/1/model.plan", plan()),),
    "plan-gpu: not a manifest": (delete("m/plan.json"),),
    "plan-tensor": (config('"x"', '"X"'),),
    "plan-tensor: data type": (config("FP16", "FP32"),),
    "plan-dims": (config("[ 4, 1 ]", "[ 4 ]"),),
    "plan-dims: outside of the profile": (config("[ 32 ]", "[ 16 ]"),),
    "plan-max-batch-size": (config("max_batch_size: 64", "max_batch_size: 8"),),
    "plan-max-batch-size: dims with the batch dimension": (
        config("max_batch_size: 8", "max_batch_size: 0"),
    ),
    "plan-data-type": (config("TYPE_FP64", "TYPE_FP32"),),
    "torchscript-input-count": (
        config("} ]\noutput", '}, { name: "mask" data_type: TYPE_FP32 dims: [ 4 ] } ]\noutput'),
    ),
    "torchscript-input-name": (config('"maks"', '"mask"'),),
    "torchscript-input-type": (config("TYPE_FP32", "TYPE_INT64"),),
    "torchscript-no-tensors": (
        config(
            '"pytorch"\n',
            '"pytorch"\nmax_batch_size: 8\ninput [ { name: "INPUT__0" data_type: TYPE_FP32 dims: [ '
            '4 ] } ]\noutput [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 4 ] } ]\n',
        ),
    ),
    "model-file-format: weights of OpenVINO": (add("m/1/model.bin", b"weights"),),
    "model-file-format: SavedModel in a further folder": (
        move("m/1/model.savedmodel/1/saved_model.pb", "m/1/model.savedmodel/saved_model.pb"),
    ),
    "tree-model-type": (config("xgboost-json", "xgboost_json"),),
    "tree-model-type: the format of the file": (
        config(
            "parameters",
            'parameters { key: "model_type" value { string_value: "xgboost_json" } }\nparameters',
        ),
        move("m/1/xgboost.model", "m/1/xgboost.json"),
    ),
    "tree-features": (config("[ 5 ]", "[4]"),),
    "tree-version": (endpoint(image_version="25.04"),),
    "tree-classifier": (
        config(
            "parameters",
            'parameters { key: "output_class" value { string_value: "false" } }\nparameters',
        ),
    ),
    "tree-classifier: threshold": (
        config(
            "parameters",
            'parameters { key: "threshold" value { string_value: "0.5" } }\nparameters',
        ),
    ),
    "backend-config-name": (move("m/config.pbtxt.txt", "m/config.pbtxt"),),
    "backend-config-name: by name": (move("m/potato.pbtxt", "m/config.pbtxt"),),
    "onnx-batch-axis": (
        config(
            "max_batch_size: 8\n",
            "max_batch_size: 0\n"
            'input [ { name: "X" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]\n'
            'output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]\n',
        ),
    ),
    "model-file-missing": (add("m/1/model.onnx", relu()),),
    "model-file-missing: another name": (move("m/1/resnet.onnx", "m/1/model.onnx"),),
    "model-file-missing: default_model_filename": (move("m/1/resnet.onnx", "m/1/Resnet.onnx"),),
    "onnx-not-a-model": (add("m/1/model.onnx", relu()),),
    "onnx-version": (endpoint(image_version="26.05"),),
    "onnx-batching": (config("max_batch_size: 8", "max_batch_size: 0"),),
    "onnx-input-count": (config(', { name: "Z" data_type: TYPE_FP32 dims: [ 4 ] }', ""),),
    "onnx-input-count: other names": (
        config(
            '{ name: "V" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "Z" data_type',
            '{ name: "X" data_type',
        ),
    ),
    "onnx-input-name": (config('"x"', '"X"'),),
    "onnx-output-name": (config('"logits"', '"Y"'),),
    "onnx-optional-input": (
        config(', { name: "K" data_type: TYPE_FP32 dims: [ 4 ] optional: true }', ""),
    ),
    "onnx-data-type": (config("TYPE_FP64", "TYPE_FP32"),),
    "onnx-unsupported-type": (endpoint(image_version="26.03"),),
    "onnx-dims": (config("[ 5 ]", "[4]"),),
    "onnx-dims: batch dimension": (
        config("max_batch_size: 8", "max_batch_size: 0"),
        config("[ 4 ]", "[8, 4]"),
        config("[ 4 ]", "[8, 4]"),
    ),
    "onnx-dims: batch dimension in dims": (config("[ -1, 4 ]", "[4]"), config("[ -1, 4 ]", "[4]")),
    "onnx-dims: output": (config("[ -1 ]", "[4]"),),
    "onnx-dims: scalar": (config("[ -1 ]", "[ 1 ]"),),
    "onnx-dims: ragged": (config(" allow_ragged_batch: true", ""),),
    "onnx-parameter": (config('"yes"', '"true"'),),
    "onnx-parameter: number": (config('"two"', '"2"'),),
    "onnx-parameter: 32 bits": (config("3000000000", "3000"),),
    "onnx-parameter: threads": (config("9999999", "4"),),
    "onnx-parameter: execution_mode": (config('"2"', '"0"'),),
    "onnx-control: another name": (config('"START"', '"S"'),),
    "model-file-missing: model_type": (
        config(
            "max_batch",
            'parameters { key: "model_type" value { string_value: "xgboost_json" } }\nmax_batch',
        ),
    ),
    "onnx-control": (config("fp32_false_true", "int32_false_true"),),
    "onnx-operator-library": (
        add("m/libmy.so", "..."),
        config("/opt/ml/model/m/1/libmy.so", "/opt/ml/model/m/libmy.so"),
    ),
    "onnx-operator-library: relative path": (
        add("m/libmy.so", "..."),
        config("1/libmy.so", "/opt/ml/model/m/libmy.so"),
    ),
    "onnx-accelerator": (config('"tensorrt"', '"openvino"'),),
    "vllm-engine-file": (add(JSON, '{"model": "/opt/ml/model/m/1/weights"}'),),
    "vllm-engine-file: not an object": (add(JSON, '{"model": "Qwen/Qwen3-0.6B"}'),),
    "vllm-engine-file: not JSON": (file(JSON, '",\n', '"\n'),),
    "vllm-engine-file: beside the version": (move("m/model.json", JSON),),
    "vllm-engine-argument: of older releases": (file(JSON, ', "disable_log_requests": true', ""),),
    "vllm-engine-argument": (file(JSON, "max_modle_len", "max_model_len"),),
    "vllm-instance-kind": (config("KIND_GPU", "KIND_MODEL"),),
    "vllm-instance-gpu": (endpoint(image_version="25.04"),),
    "vllm-parallel-size": (endpoint(gpu_count=2),),
    "vllm-weights": (
        file(JSON, "{", '{"model": "/opt/ml/model/m/1/weights", '),
        add("m/1/weights/config.json", "{}"),
    ),
    "vllm-weights: absent folder": (add("m/1/weights/config.json", "{}"),),
    "vllm-weights: relative path": (file(JSON, '"weights"', '"/opt/ml/model/m/1/weights"'),),
    "vllm-weights: network isolation": (endpoint(has_network_isolation=False),),
    "vllm-lora": (add("m/1/multi_lora.json", json.dumps({"name": "/opt/ml/model/m/1/adapter"})),),
    "vllm-lora-rank": (file(JSON, "12", "16"),),
    "vllm-weights-memory": (
        file(JSON, '"gpu_memory_utilization": 0.0002', '"gpu_memory_utilization": 0.9'),
    ),
    "vllm-cache-memory": (file(JSON, "}", ', "max_model_len": 5376}'),),
    "vllm-cache-memory: no room": (
        file(JSON, '"gpu_memory_utilization": 0.2', '"gpu_memory_utilization": 0.9'),
    ),
    "tensorrt-llm-placeholder": (config("${triton_backend}", "tensorrtllm"),),
    "tensorrt-llm-placeholder: engine folder": (
        config("${engine_dir}", "/opt/ml/model/m/1/engine"),
    ),
    "tensorrt-llm-engine": (
        move("m/1/rank0.engine", "m/1/engine/rank0.engine"),
        add("m/1/engine/config.json", '{"pretrained_config": {"mapping": {"world_size": 1}}}'),
    ),
    "tensorrt-llm-engine: processes": (add("m/1/engine/rank1.engine", "..."),),
    "tensorrt-llm-gpus": (endpoint(gpu_count=2),),
    "tensorrt-llm-processes": (endpoint(has_orchestrator=True),),
}
