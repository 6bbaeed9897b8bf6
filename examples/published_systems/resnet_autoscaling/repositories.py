"""The models: ResNet-50 in two formats for a GPU, and a small network with the same inputs and
outputs.

As in the article, each archive has one folder ``resnet``, and only the names of the archives
differ. ``make_model_files.py`` writes the files of ResNet-50 into ``model_files/``.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np

from triton_model_check.model_config import (
    ModelConfig,
    ModelInput,
    ModelOutput,
    ModelWarmup,
    PythonBackend,
    PytorchBackend,
    TensorrtBackend,
)
from triton_model_check.model_repository import ModelRepositoryBuilder

HERE = Path(__file__).resolve().parent
MODEL_FILES = HERE / "model_files"
NETWORK = HERE.parent / "small_network"
# In the folder that contains the cloud assembly, cdk.out.
BUILD = Path(os.environ.get("CDK_OUTDIR", HERE / "cdk.out")).resolve().parent / "build"

PYTORCH = ModelConfig(
    name="resnet",
    backend=PytorchBackend(),
    max_batch_size=128,
    input=[ModelInput(name="INPUT__0", data_type="TYPE_FP32", dims=[3, 224, 224])],
    output=[ModelOutput(name="OUTPUT__0", data_type="TYPE_FP32", dims=[1000])],
)
TENSORRT = ModelConfig(
    name="resnet",
    backend=TensorrtBackend(),
    max_batch_size=128,
    input=[ModelInput(name="input", data_type="TYPE_FP32", dims=[3, 224, 224])],
    output=[ModelOutput(name="output", data_type="TYPE_FP32", dims=[1000])],
    model_warmup=[
        ModelWarmup(
            name="bs128 Warmup",
            batch_size=128,
            inputs={
                "input": ModelWarmup.Input(
                    data_type="TYPE_FP32", dims=[3, 224, 224], zero_data=False
                ),
            },
        )
    ],
)


def write_resnet50() -> dict[str, Path]:
    """Write ResNet-50 as TorchScript and as a TensorRT plan; return the folders by the name of the
    archive.

    Files that do not exist yet are left out: see :func:`missing_model_files`.
    """
    return {
        "resnet_pt_v0": _write("resnet50_pt", PYTORCH, _if_there("model.pt")),
        "resnet_trt_v0": _write("resnet50_trt", TENSORRT, _if_there("model.plan")),
    }


def missing_model_files() -> list[str]:
    """Return the files that ``make_model_files.py`` has not written yet."""
    return [name for name in ("model.pt", "model.plan") if not (MODEL_FILES / name).exists()]


def write_small_network() -> dict[str, Path]:
    """Write a small network with the same names, in single precision and in half precision."""
    return {
        "resnet_pt_v0": _write_small("small_pt", PYTORCH, np.float32),
        "resnet_trt_v0": _write_small("small_trt", TENSORRT, np.float16),
    }


def _write_small(folder: str, config: ModelConfig, dtype: type[np.floating]) -> Path:
    files = {"1/network.py": NETWORK / "network.py", "1/weights.npz": _weights(dtype)}
    small = config.with_(backend=PythonBackend())
    return _write(folder, small, HERE / "small_model" / "model.py", files)


def _write(
    folder: str,
    config: ModelConfig,
    model_file: Path | None,
    files: dict[str, str | Path | bytes] | None = None,
) -> Path:
    builder = ModelRepositoryBuilder()
    builder.add_model(config, model_file, files=files)
    return builder.write_to(BUILD / folder, overwrite=True).path


def _if_there(name: str) -> Path | None:
    path = MODEL_FILES / name
    return path if path.exists() else None


def _weights(dtype: type[np.floating]) -> bytes:
    """Return the weights rounded to ``dtype``."""
    rounded = io.BytesIO()
    with np.load(NETWORK / "resnet.npz") as archive:
        np.savez_compressed(
            rounded, **{name: archive[name].astype(dtype) for name in archive.files}
        )
    return rounded.getvalue()
