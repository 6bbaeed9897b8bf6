"""Writes the repository of a thread. Weights are sparse files, which take no disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnx import TensorProto, helper

_MIB = 2**20
_COLUMNS = 1024

_CONFIG = """backend: "{backend}"
max_batch_size: {batch}
input {{ name: "x" data_type: TYPE_FP32 dims: [ {inputs} ] }}
output {{ name: "y" data_type: TYPE_FP32 dims: [ {outputs} ] }}
"""

_PYTHON_MODEL = """import torch
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.device = "cuda" if args["model_instance_kind"] == "GPU" else "cpu"

    def execute(self, requests):
        return [pb_utils.InferenceResponse([]) for _ in requests]
"""


def write_repository(thread: Mapping[str, Any], repository: Path) -> None:
    """Write every model of a thread."""
    for model in thread["models"]:
        copies = model.get("copies", 1)
        for number in range(copies):
            name = model["name"] if copies == 1 else f"{model['name']}_{number}"
            _write_model(model, repository / name)
    declared = {
        model["name"]: model["declared"] for model in thread["models"] if "declared" in model
    }
    if declared:
        lines = [f"{name} = {{ host_mib = {size} }}" for name, size in declared.items()]
        (repository / "triton-models.toml").write_text("\n".join(["[memory]", *lines, ""]), "utf-8")


def _write_model(model: Mapping[str, Any], folder: Path) -> None:
    version = folder / "1"
    version.mkdir(parents=True)
    write = _WRITERS[model["kind"]]
    write(model, version)
    (folder / "config.pbtxt").write_text(_config(model, version), "utf-8")


def _config(model: Mapping[str, Any], version: Path) -> str:
    elements = model.get("elements", 1)
    text = _CONFIG.format(
        backend=model["kind"] if model["kind"] != "onnx" else "onnxruntime",
        batch=model.get("batch", 0),
        inputs=_rows(model["size"]) if model["kind"] == "onnx" else elements,
        outputs=_COLUMNS if model["kind"] == "onnx" else elements,
    )
    if model["kind"] == "vllm":
        text = 'backend: "vllm"\n'
    if model["kind"] == "tensorrtllm":
        text += _parameter("gpt_model_type", "inflight_fused_batching")
        text += _parameter("gpt_model_path", str(version))
        text += "".join(_parameter(*item) for item in model.get("parameters", {}).items())
    if model["kind"] == "tensorflow":
        text += 'platform: "tensorflow_savedmodel"\n'
    if model.keys() & {"count", "instances", "gpus"}:
        kind = model.get("instances", "KIND_GPU")
        gpus = f" gpus: {model['gpus']}" if "gpus" in model else ""
        text += f"instance_group {{ count: {model.get('count', 1)} kind: {kind}{gpus} }}\n"
    return text


def _parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


def _rows(mebibytes: int) -> int:
    return mebibytes * _MIB // 4 // _COLUMNS


def _write_sparse(path: Path, mebibytes: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(mebibytes * _MIB)


def _write_onnx(model: Mapping[str, Any], version: Path) -> None:
    """Write a matrix product whose weights are external data."""
    rows = _rows(model["size"])
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[rows, _COLUMNS])
    weights.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("length", str(rows * _COLUMNS * 4))):
        weights.external_data.add(key=key, value=value)

    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [_COLUMNS])]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "g", inputs, outputs, [weights])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    proto.ir_version = 7
    (version / "model.onnx").write_bytes(proto.SerializeToString())
    _write_sparse(version / "weights.bin", model["size"])


def _write_plan(model: Mapping[str, Any], version: Path) -> None:
    path = version / "model.plan"
    _write_sparse(path, model["size"])
    with path.open("r+b") as file:
        file.write(b"ftrt")  # the tag of a TensorRT plan


def _write_saved_model(model: Mapping[str, Any], version: Path) -> None:
    folder = version / "model.savedmodel"
    folder.mkdir()
    (folder / "saved_model.pb").touch()
    _write_sparse(folder / "variables" / "variables.data-00000-of-00001", model["size"])


def _write_python(model: Mapping[str, Any], version: Path) -> None:
    (version / "model.py").write_text(_PYTHON_MODEL, "utf-8")
    if model["size"]:
        _write_sparse(version / "weights.pt", model["size"])


def _write_engine(model: Mapping[str, Any], version: Path) -> None:
    """Write one file for each process, as ``trtllm-build`` does."""
    ranks = model.get("ranks", 1)
    mapping = {"pretrained_config": {"mapping": {"world_size": ranks}}}
    (version / "config.json").write_text(json.dumps(mapping), "utf-8")
    for rank in range(ranks):
        _write_sparse(version / f"rank{rank}.engine", model["size"] // ranks)


def _write_vllm(model: Mapping[str, Any], version: Path) -> None:
    """Write ``model.json``, and the model's folder beside it if it is not on a hub.

    The sizes of the key-value cache are those of Gemma 2B.
    """
    arguments = {"model": model.get("hub", str(version / "weights")), **model.get("arguments", {})}
    (version / "model.json").write_text(json.dumps(arguments), "utf-8")
    if "hub" in model:
        return
    weights = version / "weights"
    _write_safetensors(weights / "model.safetensors", model["size"], model.get("type", "BF16"))
    sizes = {
        "architectures": ["GemmaForCausalLM"],
        "model_type": "gemma",
        "num_hidden_layers": 18,
        "num_attention_heads": 8,
        "num_key_value_heads": 1,
        "hidden_size": 2048,
        "head_dim": 256,
        "max_position_embeddings": 8192,
    }
    (weights / "config.json").write_text(json.dumps(sizes), "utf-8")


def _write_safetensors(path: Path, mebibytes: int, data_type: str) -> None:
    """Write a file with one tensor, whose content is sparse."""
    _write_sparse(path, mebibytes)
    size = mebibytes * _MIB
    header = {"w": {"dtype": data_type, "shape": [size], "data_offsets": [0, size]}}
    text = json.dumps(header).encode()
    with path.open("r+b") as file:
        file.write(len(text).to_bytes(8, "little") + text)


_WRITERS: dict[str, Callable[[Mapping[str, Any], Path], None]] = {
    "onnx": _write_onnx,
    "tensorrt": _write_plan,
    "tensorflow": _write_saved_model,
    "python": _write_python,
    "tensorrtllm": _write_engine,
    "vllm": _write_vllm,
}
