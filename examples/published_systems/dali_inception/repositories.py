"""Writes the model repositories; that of the article is the folder ``article``.

``modern`` replaces TensorFlow, which images after 24.09 do not have, with ONNX Runtime or TensorRT.
``twin`` replaces DALI with Pillow and Inception with a small network, and runs on any machine. Both
accept the article's request and return 1,001 scores.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from triton_model_check.model_config import (
    DaliBackend,
    Ensemble,
    ModelConfig,
    ModelDynamicBatching,
    ModelInput,
    ModelOutput,
    OnnxruntimeBackend,
    PythonBackend,
    TensorrtBackend,
)
from triton_model_check.model_repository import ModelRepositoryBuilder

HERE = Path(__file__).resolve().parent
ARTICLE = HERE / "article"
MODEL_FILES = HERE / "model_files"
NETWORK = HERE.parent / "small_network"
# In the folder that contains the cloud assembly, cdk.out.
BUILD = Path(os.environ.get("CDK_OUTDIR", HERE / "cdk.out")).resolve().parent / "build"
LABELS = "inception_labels.txt"
ENVIRONMENT = "pillow_env.tar.gz"

Engine = Literal["onnx", "tensorrt"]


def missing_article_files() -> list[str]:
    """Return the files that are missing in the article's repository."""
    wanted = ("dali/1/model.dali", "inception_graphdef/1/model.graphdef")
    return [path for path in wanted if not (ARTICLE / path).exists()]


def missing_modern_files(engine: Engine) -> list[str]:
    """Return the files that are missing in the modern repository."""
    wanted = ("model.dali", "model.onnx" if engine == "onnx" else "model.plan")
    return [f"model_files/{name}" for name in wanted if not (MODEL_FILES / name).exists()]


def write_modern(engine: Engine) -> Path:
    """Write DALI and Inception v3 for ONNX Runtime or TensorRT, without files that do not exist
    yet.

    In place of a missing ``model.onnx`` it writes a stand-in, because a model file is required.
    """
    dali = ModelConfig.read(ARTICLE / "dali")
    inception = ModelConfig(
        name="inception",
        backend=OnnxruntimeBackend() if engine == "onnx" else TensorrtBackend(),
        max_batch_size=64,
        input=[ModelInput(name="image", data_type="TYPE_FP32", dims=[299, 299, 3])],
        output=[
            ModelOutput(
                name="probabilities", data_type="TYPE_FP32", dims=[1001], label_filename=LABELS
            )
        ],
        dynamic_batching=ModelDynamicBatching(max_queue_delay_microseconds=500),
    )
    model_file = MODEL_FILES / ("model.onnx" if engine == "onnx" else "model.plan")
    builder = ModelRepositoryBuilder()
    builder.add_model(
        dali.with_(backend=DaliBackend(num_threads=12)), _if_there(MODEL_FILES / "model.dali")
    )
    labels = {LABELS: ARTICLE / "inception_graphdef" / LABELS}
    stand_in = _stand_in() if engine == "onnx" else None
    builder.add_model(inception, _if_there(model_file) or stand_in, files=labels)
    builder.add_model(_ensemble("ensemble_dali_inception", dali, inception))
    return builder.write_to(BUILD / f"modern_{engine}", overwrite=True).path


def write_twin() -> Path:
    """Write the article's three models, with ``model.py`` instead of DALI and TensorFlow.

    ``model_files/pillow_env.tar.gz`` is included if it exists, because the image may not have
    Pillow.
    """
    environment = MODEL_FILES / ENVIRONMENT
    with_pillow = PythonBackend(execution_env_path=ENVIRONMENT if environment.exists() else None)
    preprocessing = ModelConfig.read(ARTICLE / "dali").with_(backend=with_pillow, parameters={})
    classifier = ModelConfig.read(ARTICLE / "inception_graphdef").with_(
        platform="", backend=PythonBackend()
    )
    builder = ModelRepositoryBuilder()
    builder.add_model(
        preprocessing,
        HERE / "preprocessing_model" / "model.py",
        files={
            "1/preprocessing.py": NETWORK / "preprocessing.py",
            **({ENVIRONMENT: environment} if environment.exists() else {}),
        },
    )
    builder.add_model(
        classifier,
        HERE / "classifier_model" / "model.py",
        files={
            "1/network.py": NETWORK / "network.py",
            "1/weights.npz": NETWORK / "inception.npz",
            LABELS: _twin_labels(),
        },
    )
    builder.add_model(_ensemble("ensemble_dali_inception", preprocessing, classifier))
    return builder.write_to(BUILD / "twin", overwrite=True).path


def _ensemble(name: str, preprocessing: ModelConfig, classifier: ModelConfig) -> Ensemble:
    """Add the article's ensemble: INPUT, bytes of JPEG files, to OUTPUT,
    probabilities of classes.
    """
    image, probabilities = classifier.input[0].name, classifier.output[0].name
    return (
        Ensemble(name)
        .input("INPUT")
        .step(
            preprocessing,
            inputs={"DALI_INPUT_0": "INPUT"},
            outputs={"DALI_OUTPUT_0": "preprocessed_image"},
        )
        .step(classifier, inputs={image: "preprocessed_image"}, outputs={probabilities: "OUTPUT"})
        .output("OUTPUT")
    )


def _twin_labels() -> bytes:
    import sys  # noqa: PLC0415 - the network's module is beside the models, in no package

    sys.path.insert(0, str(NETWORK))
    from network import label_of  # noqa: PLC0415 - found by the line above

    return "\n".join(("background", *map(label_of, range(1000)), "")).encode()


def _stand_in() -> bytes:
    """Return an ONNX model with the tensors of Inception v3,
    so that the stack can be synthesized.
    """
    from onnx import TensorProto, helper  # noqa: PLC0415 - only for this

    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 299, 299, 3])
    scores = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 1001])
    weights = helper.make_tensor("weights", TensorProto.FLOAT, [3, 1001], [0.0] * 3003)
    nodes = [
        helper.make_node("ReduceMean", ["image"], ["colour"], axes=[1, 2], keepdims=0),
        helper.make_node("MatMul", ["colour", "weights"], ["probabilities"]),
    ]
    graph = helper.make_graph(nodes, "stand_in", [image], [scores], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _if_there(path: Path) -> Path | None:
    return path if path.exists() else None
