"""BERT-large as a classifier, in the eight configurations of the benchmark.

The article shows only how they differ. The common part is from this example: 512 tokens in, two
classes out.
"""

from __future__ import annotations

import os
from pathlib import Path

from triton_model_check.model_config import (
    ModelConfig,
    ModelDynamicBatching,
    ModelInput,
    ModelInstanceGroup,
    ModelOutput,
    PythonBackend,
    PytorchBackend,
    TensorrtBackend,
)
from triton_model_check.model_repository import ModelRepositoryBuilder

HERE = Path(__file__).resolve().parent
MODEL_FILES = HERE / "model_files"
# In the folder that contains the cloud assembly, cdk.out.
BUILD = Path(os.environ.get("CDK_OUTDIR", HERE / "cdk.out")).resolve().parent / "build"
MODEL = "bert"

BASE = ModelConfig(
    name=MODEL,
    max_batch_size=16,
    # TorchScript has positions instead of names; the ONNX export uses the same names for the plan.
    input=[
        ModelInput(name=f"INPUT__{index}", data_type="TYPE_INT32", dims=[512]) for index in range(2)
    ],
    output=[ModelOutput(name="OUTPUT__0", data_type="TYPE_FP32", dims=[2])],
)
DYNAMIC_BATCHING = ModelDynamicBatching()
TWO_INSTANCES = [ModelInstanceGroup(count=2, kind="KIND_GPU")]


def _family(prefix: str, base: ModelConfig) -> dict[str, ModelConfig]:
    return {
        f"{prefix}-base": base,
        f"{prefix}-db": base.with_(dynamic_batching=DYNAMIC_BATCHING),
        f"{prefix}-ig": base.with_(instance_group=TWO_INSTANCES),
        f"{prefix}-ig-db": base.with_(
            instance_group=TWO_INSTANCES, dynamic_batching=DYNAMIC_BATCHING
        ),
    }


VARIANTS: dict[str, ModelConfig] = {
    **_family("pt", BASE.with_(backend=PytorchBackend())),
    **_family("trt", BASE.with_(backend=TensorrtBackend())),
}
"""The eight configurations, with the names of the article's first table."""


def model_file(configuration: str) -> Path:
    """Return the file that ``make_model_files.py`` writes for a configuration."""
    return MODEL_FILES / ("model.pt" if configuration.startswith("pt-") else "model.plan")


def write_variant(configuration: str) -> Path:
    """Write the repository of one configuration,
    without the model file if it does not exist yet.
    """
    file = model_file(configuration)
    return _write(configuration, VARIANTS[configuration], file if file.exists() else None)


def write_small_variant(configuration: str) -> Path:
    """Write a small encoder in NumPy with the same name, batching and instances.

    In place of TensorRT it computes in float32, and in place of PyTorch in float64, which takes
    longer. Two instances run on the CPU.
    """
    config = VARIANTS[configuration].with_(backend=PythonBackend())
    if "-ig" in configuration:
        config = config.with_(instance_group=[ModelInstanceGroup(count=2, kind="KIND_CPU")])
    if configuration.startswith("pt-"):
        config = config.with_(parameters={"dtype": "float64"})
    files: dict[str, str | Path | bytes] = {"1/encoder.py": HERE / "small_model" / "encoder.py"}
    return _write(f"small-{configuration}", config, HERE / "small_model" / "model.py", files)


def _write(
    folder: str,
    config: ModelConfig,
    model: Path | None,
    files: dict[str, str | Path | bytes] | None = None,
) -> Path:
    builder = ModelRepositoryBuilder()
    builder.add_model(config, model, files=files)
    return builder.write_to(BUILD / folder, overwrite=True).path
