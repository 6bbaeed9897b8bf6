"""Model configurations of both ensembles, with the folder names of the article."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from triton_model_check.model_config import (
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

__all__ = [
    "ENCODERS",
    "ENVIRONMENT",
    "Encoder",
    "classify_pictures",
    "decode_pictures",
    "embed_sentences",
    "encode_tokens",
    "pool_tokens",
    "recognize_pictures",
    "tokenize_sentences",
]

Encoder = Literal["tensorrt", "onnxruntime"]
ENCODERS: tuple[Encoder, ...] = ("tensorrt", "onnxruntime")

#: The article's three configurations of the picture ensemble, as printed.
PICTURES = Path(__file__).resolve().parent.parent / "dali_inception" / "article"
ENVIRONMENT = "processing_env.tar.gz"
MAX_BATCH_SIZE = 64

ON_CPU = [ModelInstanceGroup(count=1, kind="KIND_CPU")]
ON_GPU = [ModelInstanceGroup(count=1, kind="KIND_GPU")]
TOKENS = ("input_ids", "attention_mask")


def decode_pictures() -> ModelConfig:
    """JPEG files to pixels, by DALI."""
    return ModelConfig.read(PICTURES / "dali")


def recognize_pictures() -> ModelConfig:
    """Pixels to probabilities of 1,001 classes, by Inception v3 on the GPU."""
    on_a_gpu = [ModelInstanceGroup(kind="KIND_GPU")]
    return ModelConfig.read(PICTURES / "inception_graphdef").with_(instance_group=on_a_gpu)


def classify_pictures() -> ModelConfig:
    """Both steps as one model."""
    return ModelConfig.read(PICTURES / "ensemble_dali_inception")


def tokenize_sentences(max_length: int, *, has_environment: bool) -> ModelConfig:
    """Sentences to tokens; needs the package ``tokenizers``, which the image does not have."""
    return ModelConfig(
        name="preprocess",
        backend=PythonBackend(execution_env_path=ENVIRONMENT if has_environment else None),
        max_batch_size=MAX_BATCH_SIZE,
        input=[ModelInput(name="INPUT0", data_type="TYPE_STRING", dims=[1])],
        output=[ModelOutput(name=name, data_type="TYPE_INT32", dims=[-1]) for name in TOKENS],
        instance_group=ON_CPU,
        parameters={"max_sequence_length": str(max_length)},
    )


def encode_tokens(encoder: Encoder, hidden: int) -> ModelConfig:
    """Tokens to token embeddings, by BERT on the GPU."""
    return ModelConfig(
        name="bert-trt",
        backend=TensorrtBackend() if encoder == "tensorrt" else OnnxruntimeBackend(),
        max_batch_size=MAX_BATCH_SIZE,
        input=[ModelInput(name=name, data_type="TYPE_INT32", dims=[-1]) for name in TOKENS],
        output=[ModelOutput(name="token_embeddings", data_type="TYPE_FP32", dims=[-1, hidden])],
        instance_group=ON_GPU,
        dynamic_batching=ModelDynamicBatching(max_queue_delay_microseconds=500),
    )


def pool_tokens(hidden: int) -> ModelConfig:
    """Token embeddings to sentence embeddings; needs only NumPy, which the image has."""
    return ModelConfig(
        name="postprocess",
        backend="python",
        max_batch_size=MAX_BATCH_SIZE,
        input=[
            ModelInput(name="token_embeddings", data_type="TYPE_FP32", dims=[-1, hidden]),
            ModelInput(name="attention_mask", data_type="TYPE_INT32", dims=[-1]),
        ],
        output=[ModelOutput(name="embedding", data_type="TYPE_FP32", dims=[hidden])],
        instance_group=ON_CPU,
    )


def embed_sentences(*steps: ModelConfig) -> Ensemble:
    """The three steps as one model; tensors with the same name are connected."""
    pipeline = Ensemble("ensemble").input("INPUT0")
    for step in steps:
        pipeline = pipeline.step(step)
    return pipeline.output("embedding")
