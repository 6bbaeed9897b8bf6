"""Examples of the checks of models that generate."""

# Configurations read best unbroken.

from __future__ import annotations

import json
from typing import Any

from check_examples.repositories import Example, Files
from check_examples.torch_and_plan import described
from triton_model_check.model_config.target import Target

VLLM = 'backend: "vllm"\ninstance_group [ { count: 1 kind: KIND_MODEL } ]\n'
ON_GPU_1 = 'backend: "vllm"\ninstance_group [ { kind: KIND_GPU gpus: [ 1 ] } ]\n'
INSIDE = "/opt/ml/model/m/1"
HUB = {"model": "Qwen/Qwen3-0.6B"}
LOCAL = {"model": f"{INSIDE}/weights"}
ONE_GPU = Target(default_model="m", gpu_count=1)
TWO_GPUS = Target(default_model="m", gpu_count=2)
LLM = (
    'backend: "tensorrtllm"\nmax_batch_size: 8\n'
    f'parameters [ {{ key: "gpt_model_path" value: {{ string_value: "{INSIDE}/engine" }} }} ]\n'
)


def gpu_of(mebibytes: int) -> Target:
    """An endpoint with one GPU of this memory."""
    return Target(default_model="m", gpu_count=1, gpu_memory_mib=mebibytes)


def vllm_image(version: str) -> Target:
    """A server with two GPUs and NVIDIA's image for vLLM."""
    return Target.named(
        "server", gpu_count=2, image_version=version, image_flavor="vllm-python-py3"
    )


def vllm(arguments: Any, config: str = VLLM, **texts: str) -> Files:
    """A vLLM model with these engine arguments."""
    return {"m/config.pbtxt": config, "m/1/model.json": json.dumps(arguments), **texts}


def weighed(max_position: int = 4096, **arguments: Any) -> Files:
    """A vLLM model with 2 MiB of weights and a key-value cache of 512 KiB for each token."""
    sizes = {"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 4096}
    config = {**sizes, "max_position_embeddings": max_position}
    weights = described(bytes(2**21), "2 MiB of weights")
    files: Files = {
        "m/1/weights/config.json": json.dumps(config),
        "m/1/weights/model.safetensors": weights,
    }
    return {**vllm({**LOCAL, **arguments}), **files}


def engine(processes: int, files: int, config: str = LLM) -> Files:
    """A TensorRT-LLM model whose engine folder has this many files."""
    mapping = json.dumps({"pretrained_config": {"mapping": {"world_size": processes}}})
    ranks = {f"m/1/engine/rank{rank}.engine": "..." for rank in range(files)}
    return {"m/config.pbtxt": config, "m/1/engine/config.json": mapping, **ranks}


SPREAD = {**HUB, "tensor_parallel_size": 2}
WITH_WEIGHTS = vllm(LOCAL, **{"m/1/weights/config.json": "{}"})
WITH_LORA = {**HUB, "enable_lora": True}

EXAMPLES: dict[str, Example] = {
    "vllm-engine-file": Example(
        {"m/config.pbtxt": VLLM, "m/1/weights/config.json": "{}"},
        {**WITH_WEIGHTS, "m/config.pbtxt": VLLM},
    ),
    "vllm-engine-file: not an object": Example(vllm(["Qwen/Qwen3-0.6B"]), vllm(HUB)),
    "vllm-engine-file: not JSON": Example(
        {**vllm(HUB), "m/1/model.json": '{\n  "model": "Qwen/Qwen3-0.6B",\n}\n'}, vllm(HUB)
    ),
    "vllm-engine-file: beside the version": Example(
        {"m/config.pbtxt": VLLM, "m/1": None, "m/model.json": json.dumps(HUB)}, vllm(HUB)
    ),
    "vllm-engine-argument: of older releases": Example(
        vllm({**HUB, "disable_log_requests": True}), vllm(HUB)
    ),
    "vllm-engine-argument": Example(
        vllm({**HUB, "max_modle_len": 4096}), vllm({**HUB, "max_model_len": 4096})
    ),
    "vllm-instance-kind": Example(
        vllm(SPREAD, VLLM.replace("KIND_MODEL", "KIND_GPU")), vllm(SPREAD), TWO_GPUS
    ),
    "vllm-instance-gpu": Example(
        vllm(HUB, ON_GPU_1),
        vllm(HUB, ON_GPU_1),
        vllm_image("24.10"),
        vllm_image("25.04"),
    ),
    "vllm-parallel-size": Example(vllm(SPREAD), vllm(SPREAD), ONE_GPU, TWO_GPUS),
    "vllm-weights": Example(vllm({"max_model_len": 4096}), vllm({**HUB, "max_model_len": 4096})),
    "vllm-weights: absent folder": Example(vllm(LOCAL), WITH_WEIGHTS),
    "vllm-weights: relative path": Example(
        vllm({"model": "weights"}, **{"m/1/weights/config.json": "{}"}), WITH_WEIGHTS
    ),
    "vllm-weights: network isolation": Example(
        vllm(HUB),
        vllm(HUB),
        Target(default_model="m", has_network_isolation=True),
        Target(default_model="m"),
    ),
    "vllm-lora": Example(
        vllm(WITH_LORA),
        vllm(WITH_LORA, **{"m/1/multi_lora.json": json.dumps({"a": f"{INSIDE}/a"})}),
    ),
    "vllm-lora-rank": Example(
        vllm({**HUB, "max_lora_rank": 12}), vllm({**HUB, "max_lora_rank": 16})
    ),
    "vllm-weights-memory": Example(
        weighed(gpu_memory_utilization=0.0002),
        weighed(gpu_memory_utilization=0.9),
        gpu_of(4096),
    ),
    "vllm-cache-memory": Example(weighed(8192), weighed(8192, max_model_len=4096), gpu_of(4096)),
    "vllm-cache-memory: no room": Example(
        weighed(gpu_memory_utilization=0.2), weighed(), gpu_of(4096)
    ),
    "tensorrt-llm-placeholder": Example(
        engine(1, 1, LLM.replace("tensorrtllm", "${triton_backend}")), engine(1, 1)
    ),
    "tensorrt-llm-placeholder: engine folder": Example(
        engine(1, 1, LLM.replace(f"{INSIDE}/engine", "${engine_dir}")), engine(1, 1)
    ),
    "tensorrt-llm-engine": Example(
        {"m/config.pbtxt": LLM, "m/1/rank0.engine": "..."}, engine(1, 1)
    ),
    "tensorrt-llm-engine: empty": Example(
        {**engine(1, 1), "m/1/engine/config.json": ""}, engine(1, 1)
    ),
    "tensorrt-llm-engine: processes": Example(engine(2, 1), engine(2, 2)),
    "tensorrt-llm-gpus": Example(engine(2, 2), engine(2, 2), ONE_GPU, TWO_GPUS),
    "tensorrt-llm-processes": Example(
        engine(2, 2),
        engine(2, 2),
        Target(default_model="m", has_orchestrator=False),
        Target(default_model="m", has_orchestrator=True),
    ),
}
