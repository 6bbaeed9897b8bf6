"""Model configurations of the sentence ensemble, for each backend of its BERT step."""

from __future__ import annotations

from typing import Literal

from constructs_triton.model_config import (
    Backend,
    Ensemble,
    ModelConfig,
    ModelDynamicBatching,
    ModelInput,
    ModelInstanceGroup,
    ModelOutput,
    OnnxruntimeBackend,
    PythonBackend,
    TensorrtBackend,
)

__all__ = ["ENCODERS", "ENVIRONMENT", "Encoder", "encoder", "ensemble", "pooling", "tokenizer"]

Encoder = Literal["python", "onnxruntime", "tensorrt"]
ENCODERS: tuple[Encoder, ...] = ("python", "onnxruntime", "tensorrt")

ENVIRONMENT = "environment.tar.gz"
MAX_BATCH_SIZE = 64
MAX_SEQUENCE_LENGTH = 256
HIDDEN = 384

ON_CPU = [ModelInstanceGroup(count=1, kind="KIND_CPU")]
ON_GPU = [ModelInstanceGroup(count=1, kind="KIND_GPU")]
TOKENS = ("input_ids", "attention_mask")


def tokenizer(*, has_environment: bool) -> ModelConfig:
    """Sentences to tokens; needs the package ``tokenizers``, which the image does not have."""
    return ModelConfig(
        name="tokenize",
        backend=_python(has_environment),
        max_batch_size=MAX_BATCH_SIZE,
        input=[ModelInput(name="INPUT0", data_type="TYPE_STRING", dims=[1])],
        output=[ModelOutput(name=name, data_type="TYPE_INT32", dims=[-1]) for name in TOKENS],
        instance_group=ON_CPU,
        parameters={"max_sequence_length": str(MAX_SEQUENCE_LENGTH)},
    )


def encoder(kind: Encoder, *, has_environment: bool) -> ModelConfig:
    """Tokens to token embeddings: on the CPU in Python, or on the GPU by a backend of the image."""
    bert = ModelConfig(
        name="bert",
        max_batch_size=MAX_BATCH_SIZE,
        input=[ModelInput(name=name, data_type="TYPE_INT32", dims=[-1]) for name in TOKENS],
        output=[ModelOutput(name="token_embeddings", data_type="TYPE_FP32", dims=[-1, HIDDEN])],
        instance_group=ON_CPU if kind == "python" else ON_GPU,
        dynamic_batching=ModelDynamicBatching(max_queue_delay_microseconds=500),
    )
    if kind == "python":
        python = _python(has_environment)
        return bert.with_(backend=python, parameters={**python.parameters(), "intra_op_num_threads": "2"})
    return bert.with_(backend=TensorrtBackend() if kind == "tensorrt" else OnnxruntimeBackend())


def pooling() -> ModelConfig:
    """Token embeddings to sentence embeddings; needs only NumPy, which the image has."""
    return ModelConfig(
        name="mean_pooling",
        backend="python",
        max_batch_size=MAX_BATCH_SIZE,
        input=[
            ModelInput(name="token_embeddings", data_type="TYPE_FP32", dims=[-1, HIDDEN]),
            ModelInput(name="attention_mask", data_type="TYPE_INT32", dims=[-1]),
        ],
        output=[ModelOutput(name="embedding", data_type="TYPE_FP32", dims=[HIDDEN])],
        instance_group=ON_CPU,
    )


def ensemble(*steps: ModelConfig) -> Ensemble:
    """The three steps as one model; tensors with the same name are connected."""
    pipeline = Ensemble("sentence_embeddings").input("INPUT0")
    for step in steps:
        pipeline = pipeline.step(step)
    return pipeline.output("embedding")


def _python(has_environment: bool) -> Backend:
    return PythonBackend(execution_env_path=ENVIRONMENT if has_environment else None)
