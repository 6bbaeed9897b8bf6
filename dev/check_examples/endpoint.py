"""Examples of the checks of SageMaker's front end and the endpoint."""

from __future__ import annotations

from check_examples.onnx_models import products, relu
from check_examples.repositories import (
    BIG,
    CLASS,
    DECOUPLED,
    HEAD,
    IO,
    MULTI,
    ONE_STEP,
    ONNX,
    PLAN,
    SINGLE,
    Example,
    added,
    ensemble,
    foreign,
    one,
    pipe,
    step,
)
from check_examples.torch_and_plan import plan
from triton_model_check.model_config.target import Target

NESTED = pipe(step("inner", "X", "Y"))
METRICS = (
    'model_metrics { metric_control [ { metric_identifier { family: "f" } histogram_options { '
    "buckets: [ 1 ] } } ] }\n"
)

EXAMPLES: dict[str, Example] = {
    "sagemaker-config-at-root": Example({**one(HEAD), "config.pbtxt": HEAD}, one(HEAD), SINGLE),
    "sagemaker-no-model": Example({"notes.txt": "x"}, one(HEAD), Target()),
    "sagemaker-no-model: link": Example({"m": "->../elsewhere"}, one(HEAD), Target()),
    "sagemaker-default-model": Example({**one(HEAD), "assets": None}, one(HEAD), Target()),
    "sagemaker-default-model-absent": Example(
        one(HEAD), one(HEAD), Target(default_model="n"), SINGLE
    ),
    "sagemaker-name-blank": Example(
        {name.replace("m/", "my model/", 1): text for name, text in one(HEAD).items()},
        one(HEAD),
        Target(),
    ),
    "sagemaker-target-model": Example(
        {name.replace("m/", "größe/", 1): text for name, text in one(HEAD).items()},
        one(HEAD),
        MULTI,
    ),
    "sagemaker-archive-order": Example(
        ensemble(ONE_STEP.replace("platform:", "platform :")), ensemble(ONE_STEP), MULTI
    ),
    "sagemaker-archive-order: nested ensembles": Example(
        ensemble(NESTED, inner=ONE_STEP),
        ensemble(NESTED, inner=ONE_STEP),
        MULTI,
        Target(default_model="pipe"),
    ),
    "sagemaker-archive-order: another ensemble": Example(
        ensemble(NESTED.replace("platform:", "platform :"), inner=ONE_STEP, b=HEAD),
        ensemble(NESTED, inner=ONE_STEP, b=HEAD),
        MULTI,
        Target(default_model="pipe"),
    ),
    "sagemaker-archive-order: stray folder": Example(
        {**one(HEAD), "assets": None}, one(HEAD), MULTI
    ),
    "sagemaker-archive-link": Example(
        {"n/config.pbtxt": HEAD, "n/1/model.py": CLASS, "m": "->n"}, one(HEAD), MULTI
    ),
    "sagemaker-name-out-of-memory": Example(
        {name.replace("m/", "BLOOM/", 1): text for name, text in one(HEAD).items()},
        one(HEAD),
        MULTI,
    ),
    "sagemaker-decoupled": added(DECOUPLED, "", Target(default_model="m", image_version="24.09")),
    "sagemaker-decoupled: step": Example(
        ensemble(ONE_STEP, a=HEAD + DECOUPLED),
        ensemble(ONE_STEP),
        Target(default_model="pipe", image_version="24.09"),
    ),
    "sagemaker-decoupled-stream": Example(
        one(HEAD + DECOUPLED),
        one(HEAD + DECOUPLED),
        Target(default_model="m", image_version="26.05"),
        Target(default_model="m", image_version="26.05", inference_type="generate_stream"),
    ),
    "target-backend-absent": Example(
        {"m/config.pbtxt": HEAD.replace("python", "sklearn"), "m/1/model.pkl": "..."},
        one(HEAD),
        Target(default_model="m", image_version="26.05"),
    ),
    "target-image-unknown": Example(
        one(HEAD),
        one(HEAD),
        Target(default_model="m", image_version="99.12"),
        Target(default_model="m", image_version="26.05"),
    ),
    "target-field-too-new": added(
        'runtime: "libtriton_python.so"\n', "", Target(default_model="m", image_version="23.12")
    ),
    "target-field-too-new: model_metrics": added(
        METRICS, "", Target(default_model="m", image_version="24.10")
    ),
    "target-field-too-new: max_inflight_requests": Example(
        ensemble(ONE_STEP.replace("step [", "max_inflight_requests: 4 step [")),
        ensemble(ONE_STEP),
        Target(default_model="pipe", image_version="25.10"),
    ),
    "target-field-too-new: non-linear format": foreign(
        PLAN.replace("dims: [ 4 ]", "dims: [ 3, 4, 4 ] is_non_linear_format_io: true", 1),
        PLAN,
        "model.plan",
        Target(default_model="m", image_version="24.07"),
    ),
    "target-backend-removed": Example(
        {
            "m/config.pbtxt": f'platform: "tensorflow_graphdef"\nmax_batch_size: 8\n{IO}',
            "m/1/model.graphdef": b"\x0a\x00",
        },
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": relu()},
        Target(default_model="m", image_version="26.05"),
    ),
    "target-backend-of-other-image": Example(
        one(HEAD.replace("python", "tensorrtllm")),
        one(HEAD),
        Target(default_model="m", image_version="26.05"),
    ),
    "target-tensorrt-without-gpu": Example(
        {"m/config.pbtxt": PLAN, "m/1/model.plan": plan()},
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": relu()},
        Target(default_model="m", gpu_count=0),
    ),
    "target-plan-of-several-gpus": Example(
        {"m/config.pbtxt": PLAN, "m/1/model.plan": plan()},
        {
            "m/config.pbtxt": f'{PLAN}cc_model_filenames [ {{ key: "8.9" value: "l4.plan" }} ]\n',
            "m/1/model.plan": plan(),
            "m/1/l4.plan": plan(),
        },
        Target(default_model="m", gpu_count=1, gpus=(("A10G", "8.6"), ("L4", "8.9"))),
    ),
    "target-shared-memory": added(
        "instance_group [ { kind: KIND_CPU count: 200 } ]\n",
        "instance_group [ { kind: KIND_CPU count: 2 } ]\n",
        Target(default_model="m", memory_gib=4),
    ),
    "target-request-size": Example(
        one('backend: "python"\nmax_batch_size: 64\n' + BIG % 150528),
        one('backend: "python"\nmax_batch_size: 8\n' + BIG % 150528),
        SINGLE,
    ),
    "target-storage": Example(
        one(HEAD), one(HEAD), Target(default_model="m", storage_gb=0), SINGLE
    ),
    "target-gpu-weights-memory": Example(
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": products(1 << 18)},
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": products(1 << 18)},
        Target(default_model="m", gpu_count=1, gpu_memory_mib=4),
        Target(default_model="m", gpu_count=1, gpu_memory_mib=16384),
    ),
    "target-gpu-memory": Example(
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": relu(weights=1 << 19)},
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": relu()},
        Target(default_model="m", gpu_count=1, gpu_memory_mib=165),
    ),
    "target-memory": Example(
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": relu(weights=1 << 19)},
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": relu()},
        Target(default_model="m", gpu_count=0, memory_gib=30 / 1024),
    ),
    "target-memory: component": Example(
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": relu(weights=1 << 19)},
        {"m/config.pbtxt": ONNX, "m/1/model.onnx": relu()},
        Target(default_model="m", gpu_count=0, memory_gib=16, max_memory_mib=30),
    ),
}
