"""Hints about files that another tool writes: a case where its result is known,
else the reason for none.
"""

from __future__ import annotations

from check_examples.onnx_models import relu
from check_examples.python_backend import PYTHON, packed
from check_examples.repositories import CLASS, ENVIRONMENT, HEAD, HERE
from check_examples.torch_and_plan import torchscript

from hint_cases.edits import Step, add, config, delete, endpoint, ensemble, move

SITE = "lib/python3.12/site-packages"
MAPS = 'input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" }'
REPACKED = add("m/env", packed(*PYTHON, f"{SITE}/regex.py"))

CASES: dict[str, tuple[Step, ...]] = {
    "python-environment": (add("m/env", packed(*PYTHON)),),
    "python-environment: left out": (
        move("env.tar", "m/env.tar"),
        config("/../env.tar", "/env.tar"),
    ),
    "python-environment-content: in a folder": (add("m/env", packed("bin/activate")),),
    "python-environment-content: format": (add("m/env", packed(*PYTHON)),),
    "python-environment-content: no archive": (add("m/env", packed(*PYTHON)),),
    "python-environment-elsewhere": (
        add("m/env.tar.gz", packed(*PYTHON)),
        config("/opt/env.tar.gz", "$$TRITON_MODEL_DIRECTORY/env.tar.gz"),
    ),
    "python-environment-relative": (
        add("m/env.tar.gz", packed(*PYTHON)),
        config('"env.tar.gz"', '"$$TRITON_MODEL_DIRECTORY/env.tar.gz"'),
    ),
    "python-environment-working-directory": (
        config('"env.tar"', '"$$TRITON_MODEL_DIRECTORY/env.tar"'),
    ),
    "python-environment-members": (REPACKED,),
    "python-environment-members: absolute": (REPACKED,),
    "python-environment-members: through a link": (REPACKED,),
    "python-environment-copies": (endpoint(storage_gb=30),),
    "python-environment-release": (endpoint(image_version="26.05"), add("m/env", packed(*PYTHON))),
    "python-import-missing": (
        add("m/env", packed(*PYTHON, f"{SITE}/transformers/__init__.py")),
        config("max_batch_size", ENVIRONMENT % HERE + "max_batch_size"),
    ),
    "onnx-invalid-graph": (add("m/1/model.onnx", relu()),),
    "onnx-not-a-tensor": (add("m/1/model.onnx", relu()),),
    "onnx-operator": (add("m/1/model.onnx", relu()),),
    "onnx-external-data": (add("m/1/model.onnx.data", bytes(16)),),
    "onnx-dims: empty": (add("m/1/model.onnx", relu((1, 4))),),
    "torchscript-not-a-model": (add("m/1/model.pt", torchscript()),),
    "torchscript-arguments": (add("m/1/model.pt", torchscript()),),
    "ensemble-written-twice": (
        ensemble(
            'value: "Y" } },\n  { model_name: "a" model_version: -1 input_map { key: "X" value: '
            '"X" } output_map { key: "Y" value: "Y" }',
            'value: "Y" } },\n  { model_name: "a" model_version: -1 input_map { key: "X" value: '
            '"X" } output_map { key: "Y" value: "Z" }',
        ),
        ensemble("output [", 'output [ { name: "Z" data_type: TYPE_FP32 dims: [ 4 ] },'),
    ),
    "ensemble-writes-input": (
        ensemble('key: "Y" value: "X"', 'key: "Y" value: "W"'),
        ensemble("output [", 'output [ { name: "W" data_type: TYPE_FP32 dims: [ 4 ] },'),
    ),
    "ensemble-model-cycle": (
        ensemble(
            f'{{ model_name: "pipe" model_version: -1 {MAPS} }}',
            f'{{ model_name: "a" model_version: -1 {MAPS} }}',
        ),
    ),
    "ensemble-unknown-tensor: output": (
        ensemble('output_map { key: "Z" value: "Z" }', ""),
        ensemble('output [ { name: "Z" data_type: TYPE_FP32 dims: [ 4 ] } ]\n', ""),
    ),
    "ensemble-unproduced: output": (
        ensemble(
            "\n] }",
            ',\n{ model_name: "a" model_version: -1 input_map { key: "X" value: "X" } output_map { '
            'key: "Y" value: "Z" } }\n] }',
        ),
    ),
    "ensemble-decoupled-branches": (ensemble('"V" value: "X"', '"V" value: "t"'),),
    "sagemaker-no-model: link": (
        delete("m"),
        add("m/config.pbtxt", HEAD),
        add("m/1/model.py", CLASS),
    ),
    "tensor-dim-value: reshape": (config("shape: [ 0 ]", "shape: [ 4 ]"),),
    "tensor-duplicate-output: ensemble": (
        ensemble('output [ { name: "Y" data_type: TYPE_FP32 dims: [ 4 ] } ]\n', ""),
    ),
    "layout-no-model: no folder of models": (
        delete("src"),
        delete("docs"),
        add("m/config.pbtxt", HEAD),
        add("m/1/model.py", CLASS),
    ),
    "python-environment-release: folder": (delete("m/env"), add("m/env", packed(*PYTHON))),
    "python-environment-folder": (delete("m/env"), add("m/env", packed(*PYTHON))),
    "python-environment-content": (delete("m/env"), add("m/env", packed(*PYTHON))),
    "python-environment-numpy": (
        add(
            "m/env",
            packed("bin/activate", "lib/python3.10/site-packages/numpy-1.26.4.dist-info/METADATA"),
        ),
    ),
    "model-file-format": (add("m/1/model.dali", b"\x0a\x01"),),
    "file-git-lfs-pointer": (add("m/1/weights.npz", b"PK\x03\x04"),),
}

BUILT = "the environment is built for the image by a command that downloads packages"
COMPILED = "the plan is compiled in a SageMaker job on a GPU"
REASONS: dict[str, str] = {
    "python-environment-compiled": BUILT,
    "python-environment-cuda": BUILT,
    "python-environment-interpreter": BUILT,
    "python-environment-libraries": BUILT,
    "python-environment-size": BUILT,
    "python-environment-version": BUILT,
    "plan-gpu-model": COMPILED,
    "plan-version": COMPILED,
    "target-plan-of-several-gpus": COMPILED,
    "target-image-unknown": "a newer version of this package does not exist yet",
    "server-refused": "a server has to be asked again; tests/e2e/test_check_server.py does it",
    "torchscript-device": "the model is traced on a GPU",
}
"""The checks without any case, and why their hints cannot be followed on a
machine without AWS and GPU.
"""
