"""Configurations that AWS has published, written with the builder."""

from __future__ import annotations

from typing import Any

import published_configs as published
import pytest

from triton_model_check.model_config import (
    DaliBackend,
    Ensemble,
    ModelConfig,
    ModelDynamicBatching,
    ModelInput,
    ModelInstanceGroup,
    ModelOutput,
    ModelWarmup,
    PythonBackend,
    PytorchBackend,
    TensorflowBackend,
    TensorrtBackend,
)
from triton_model_check.model_config.text import parse_model_config

IMAGE = [3, 224, 224]

T5 = ModelConfig(
    name="t5_pytorch",
    backend=PythonBackend(execution_env_path="hf_env.tar.gz"),
    max_batch_size=8,
    input=[
        ModelInput(name="input_ids", data_type="TYPE_INT32", dims=[-1]),
        ModelInput(name="attention_mask", data_type="TYPE_INT32", dims=[-1]),
    ],
    output=[ModelOutput(name="output", data_type="TYPE_INT32", dims=[-1])],
    instance_group=[ModelInstanceGroup(count=1, kind="KIND_GPU")],
    dynamic_batching=ModelDynamicBatching(),
)

DALI = ModelConfig(
    name="dali",
    backend=DaliBackend(num_threads=12),
    max_batch_size=256,
    input=[ModelInput(name="DALI_INPUT_0", data_type="TYPE_UINT8", dims=[-1])],
    output=[ModelOutput(name="DALI_OUTPUT_0", data_type="TYPE_FP32", dims=[299, 299, 3])],
)

INCEPTION = ModelConfig(
    name="inception_graphdef",
    backend=TensorflowBackend(format="graphdef"),
    max_batch_size=256,
    input=[
        ModelInput(name="input", data_type="TYPE_FP32", format="FORMAT_NHWC", dims=[299, 299, 3])
    ],
    output=[
        ModelOutput(
            name="InceptionV3/Predictions/Softmax",
            data_type="TYPE_FP32",
            dims=[1001],
            label_filename="inception_labels.txt",
        )
    ],
)

DALI_INCEPTION = (
    Ensemble("ensemble_dali_inception")
    .input("INPUT")
    .step(DALI, inputs={"DALI_INPUT_0": "INPUT"}, outputs={"DALI_OUTPUT_0": "preprocessed_image"})
    .step(
        INCEPTION,
        inputs={"input": "preprocessed_image"},
        outputs={"InceptionV3/Predictions/Softmax": "OUTPUT"},
    )
    .output("OUTPUT")
    .to_config()
)

RESNET_PYTORCH = ModelConfig(
    name="resnet",
    backend=PytorchBackend(),
    max_batch_size=128,
    input=[ModelInput(data_type="TYPE_FP32", dims=IMAGE)],
    output=[ModelOutput(data_type="TYPE_FP32", dims=[1000])],
)

RESNET_TENSORRT = ModelConfig(
    name="resnet",
    backend=TensorrtBackend(),
    max_batch_size=128,
    input=[ModelInput(name="input", data_type="TYPE_FP32", dims=IMAGE)],
    output=[ModelOutput(name="output", data_type="TYPE_FP32", dims=[1000])],
    model_warmup=[
        ModelWarmup(
            name="bs128 Warmup",
            batch_size=128,
            inputs={"input": ModelWarmup.Input(data_type="TYPE_FP32", dims=IMAGE, zero_data=False)},
        )
    ],
)


@pytest.mark.parametrize(
    ("built", "text"),
    [
        pytest.param(T5, published.T5, id="t5"),
        pytest.param(DALI, published.DALI, id="dali"),
        pytest.param(INCEPTION, published.INCEPTION, id="inception"),
        pytest.param(DALI_INCEPTION, published.DALI_INCEPTION, id="ensemble"),
        pytest.param(RESNET_PYTORCH, published.RESNET_PYTORCH, id="resnet-pytorch"),
        pytest.param(RESNET_TENSORRT, published.RESNET_TENSORRT, id="resnet-tensorrt"),
    ],
)
def test_builder_equals_published_text(built: ModelConfig, text: str) -> None:
    """The builder's message and its text equal the published configuration."""
    wanted = parse_model_config(text)
    assert built.to_message() == wanted
    assert parse_model_config(built.to_text()) == wanted


# --- the eight configurations of the BERT benchmark -----------------------------------------------

TOKENS = [ModelInput(name=f"INPUT__{n}", data_type="TYPE_INT32", dims=[512]) for n in range(2)]
BERT = ModelConfig(
    name="bert-large-uncased",
    max_batch_size=16,
    input=TOKENS,
    output=[ModelOutput(name="OUTPUT__0", data_type="TYPE_FP32", dims=[2])],
)
BATCHED = ModelDynamicBatching()
TWICE = [ModelInstanceGroup(count=2, kind="KIND_GPU")]

FRAGMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "base": ({}, ""),
    "db": ({"dynamic_batching": BATCHED}, published.DYNAMIC_BATCHING),
    "ig": ({"instance_group": TWICE}, published.INSTANCE_GROUP),
    "ig-db": ({"instance_group": TWICE, "dynamic_batching": BATCHED}, published.BOTH),
}


@pytest.mark.parametrize("name", FRAGMENTS)
@pytest.mark.parametrize(
    ("backend", "platform"),
    [(PytorchBackend(), "pytorch_libtorch"), (TensorrtBackend(), "tensorrt_plan")],
)
def test_benchmark_is_one_base_and_the_published_fragments(
    backend: PytorchBackend | TensorrtBackend, platform: str, name: str
) -> None:
    """Each of the benchmark's eight configurations is the base with its platform
    and the printed fragment.
    """
    options, fragment = FRAGMENTS[name]
    wanted = f'{BERT.to_text()}\nplatform: "{platform}"\n{fragment}'
    assert BERT.with_(backend=backend, **options).to_message() == parse_model_config(wanted)


def test_batching_with_delay_equals_published_fragment() -> None:
    """A preferred batch size and a delay are written as the post prints them."""
    built = ModelDynamicBatching(preferred_batch_size=[16], max_queue_delay_microseconds=100)
    wanted: Any = parse_model_config(published.DYNAMIC_BATCHING_WITH_DELAY)
    assert built.to_message() == wanted.dynamic_batching


def test_preprocess_bert_postprocess_is_wired_by_name() -> None:
    """A tokenizer, BERT and a classifier become an ensemble from text to label."""
    tokenizer = ModelConfig(
        name="preprocess",
        backend="python",
        max_batch_size=16,
        input=[ModelInput(name="text", data_type="TYPE_STRING", dims=[1])],
        output=[
            ModelOutput(name=f"INPUT__{n}", data_type="TYPE_INT32", dims=[512]) for n in range(2)
        ],
    )
    labels = ModelConfig(
        name="postprocess",
        backend="python",
        max_batch_size=64,
        input=[ModelInput(name="logits", data_type="TYPE_FP32", dims=[2])],
        output=[ModelOutput(name="label", data_type="TYPE_STRING", dims=[1])],
    )
    built = (
        Ensemble("bert")
        .input("text")
        .step(tokenizer)
        .step(
            BERT.with_(backend=TensorrtBackend(), **FRAGMENTS["ig-db"][0]),
            outputs={"OUTPUT__0": "logits"},
        )
        .step(labels)
        .output("label")
        .to_config()
    )
    assert built.max_batch_size == 16
    assert built.input == (ModelInput(name="text", data_type="TYPE_STRING", dims=[1]),)
    assert built.output == (ModelOutput(name="label", data_type="TYPE_STRING", dims=[1]),)
    steps = built.ensemble_scheduling.step if built.ensemble_scheduling else ()
    assert [dict(step.input_map) for step in steps] == [
        {"text": "text"},
        {"INPUT__0": "INPUT__0", "INPUT__1": "INPUT__1"},
        {"logits": "logits"},
    ]
    assert {item.code for item in built.check().errors} <= {"ensemble-unknown-model"}
