"""The two model repositories: ResNet-50 for a GPU, and a small network of the same contract for here.

Both hold ``resnet_pt_v0`` and ``resnet_trt_v0``, of which a multi-model endpoint makes ``resnet_pt_v0.tar.gz``
and ``resnet_trt_v0.tar.gz``. ``make_model_files.py`` writes the files of the first into ``model_files/``.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from constructs_triton.model_config.builder import (
    ModelConfig,
    ModelInput,
    ModelOutput,
    ModelWarmup,
    PythonBackend,
    PytorchBackend,
    TensorrtBackend,
)
from constructs_triton.model_repository.builder import ModelRepositoryBuilder

HERE = Path(__file__).resolve().parent
MODEL_FILES = HERE / "model_files"
NETWORK = HERE.parent / "small_network"
BUILD = HERE / "build"

PYTORCH = ModelConfig(
    name="resnet_pt_v0",
    backend=PytorchBackend(),
    max_batch_size=128,
    input=[ModelInput(name="INPUT__0", data_type="TYPE_FP32", dims=[3, 224, 224])],
    output=[ModelOutput(name="OUTPUT__0", data_type="TYPE_FP32", dims=[1000])],
)
TENSORRT = ModelConfig(
    name="resnet_trt_v0",
    backend=TensorrtBackend(),
    max_batch_size=128,
    input=[ModelInput(name="input", data_type="TYPE_FP32", dims=[3, 224, 224])],
    output=[ModelOutput(name="output", data_type="TYPE_FP32", dims=[1000])],
    model_warmup=[
        ModelWarmup(
            name="bs128 Warmup",
            batch_size=128,
            inputs={
                "input": ModelWarmup.Input(data_type="TYPE_FP32", dims=[3, 224, 224], zero_data=False),
            },
        )
    ],
)


def write_resnet50() -> Path:
    """ResNet-50 as TorchScript and as a TensorRT plan; without its files where nobody has made them yet."""
    builder = ModelRepositoryBuilder()
    builder.add_model(PYTORCH, _if_there("model.pt"))
    builder.add_model(TENSORRT, _if_there("model.plan"))
    return builder.write_to(BUILD / "resnet50", overwrite=True).path


def missing_model_files() -> list[str]:
    """The files that ``make_model_files.py`` has not made yet."""
    return [name for name in ("model.pt", "model.plan") if not (MODEL_FILES / name).exists()]


def write_small_network() -> Path:
    """A small network under the same names, in single and, as an engine might be built, in half precision."""
    builder = ModelRepositoryBuilder()
    for config, dtype in ((PYTORCH, np.float32), (TENSORRT, np.float16)):
        small = config.with_(backend=PythonBackend())
        files = {"1/network.py": NETWORK / "network.py", "1/weights.npz": _weights(dtype)}
        builder.add_model(small, HERE / "small_model" / "model.py", files=files)
    return builder.write_to(BUILD / "small_network", overwrite=True).path


def _if_there(name: str) -> Path | None:
    path = MODEL_FILES / name
    return path if path.exists() else None


def _weights(dtype: type[np.floating]) -> bytes:
    """The weights rounded to ``dtype``."""
    rounded = io.BytesIO()
    with np.load(NETWORK / "resnet.npz") as archive:
        np.savez_compressed(rounded, **{name: archive[name].astype(dtype) for name in archive.files})
    return rounded.getvalue()
