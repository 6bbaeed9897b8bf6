"""Build the model repository: `python build_models.py [--framework pytorch
--checkpoint DIR ...]`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from make_checkpoint import VERSIONS, write_checkpoint
from safetensors.numpy import load_file

from constructs_triton import ConstructsTritonError
from triton_model_check.model_config import (
    ModelConfig,
    ModelDynamicBatching,
    ModelInput,
    ModelInstanceGroup,
    ModelOutput,
    PythonBackend,
)
from triton_model_check.model_repository import ModelRepositoryBuilder

HERE = Path(__file__).parent
BACKEND = HERE / "backend"
ENVIRONMENT = "hf_env.tar.gz"


def numpy_config(
    name: str, *, instance_count: int, max_new_tokens: int, environment: str | None
) -> ModelConfig:
    """Return the configuration without tensors and batching, which auto_complete_config adds."""
    return ModelConfig(
        name=name,
        backend=PythonBackend(execution_env_path=environment),
        instance_group=[ModelInstanceGroup(count=instance_count, kind="KIND_CPU")],
        parameters={"max_new_tokens": str(max_new_tokens)},
    )


def pytorch_config(
    *, instance_count: int, max_new_tokens: int, intra_op_num_threads: int, environment: str | None
) -> ModelConfig:
    """Write the article's configuration, with its best practices as parameters."""
    return ModelConfig(
        name="t5_pytorch",
        backend=PythonBackend(execution_env_path=environment, force_cpu_only_input_tensors=False),
        max_batch_size=8,
        input=[
            ModelInput(name=name, data_type="TYPE_INT32", dims=[-1])
            for name in ("input_ids", "attention_mask")
        ],
        output=[ModelOutput(name="output", data_type="TYPE_INT32", dims=[-1])],
        instance_group=[ModelInstanceGroup(count=instance_count, kind="KIND_GPU")],
        dynamic_batching=ModelDynamicBatching(),
        parameters={
            "intra_op_num_threads": str(intra_op_num_threads),
            "max_new_tokens": str(max_new_tokens),
        },
    )


def numpy_files(checkpoint: Path, scratch: Path) -> dict[str, Path]:
    """Add the files of a T5 published as ``model.safetensors``, for NumPy."""
    weights = scratch / f"{checkpoint.name}.npz"
    np.savez(weights, **load_file(checkpoint / "model.safetensors"))
    code = {f"1/{name}": BACKEND / "numpy" / name for name in ("model.py", "t5.py")}
    return {**code, "1/weights.npz": weights, "1/config.json": checkpoint / "config.json"}


def pytorch_files(checkpoint: Path) -> dict[str, Path]:
    """Add the files of a checkpoint, for transformers."""
    return {"1/model.py": BACKEND / "pytorch" / "model.py", "1/checkpoint": checkpoint}


def build(arguments: argparse.Namespace) -> None:
    """Write the repository, replacing an existing one, and the tokenizer for callers beside it."""
    packed = {} if arguments.environment is None else {ENVIRONMENT: arguments.environment}
    options: dict[str, Any] = {
        "instance_count": arguments.instance_count,
        "max_new_tokens": arguments.max_new_tokens,
        "environment": ENVIRONMENT if packed else None,
    }
    builder = ModelRepositoryBuilder()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        checkpoint = arguments.checkpoint
        if checkpoint is None:
            for version in VERSIONS:
                write_checkpoint(version, scratch / version)
            checkpoint = scratch / "relu"
        if arguments.framework == "pytorch":
            config = pytorch_config(**options, intra_op_num_threads=arguments.intra_op_num_threads)
            builder.add_model(config, files={**pytorch_files(checkpoint), **packed})
        elif arguments.checkpoint is not None:
            files = numpy_files(checkpoint, scratch)
            builder.add_model(numpy_config("t5", **options), files={**files, **packed})
        else:
            for version in VERSIONS:
                files = numpy_files(scratch / version, scratch)
                builder.add_model(
                    numpy_config(f"t5_{version}", **options), files={**files, **packed}
                )
        repository = builder.write_to(arguments.output, overwrite=True)
        tokenizer = checkpoint / "tokenizer.json"
        if tokenizer.exists():
            shutil.copy(tokenizer, arguments.output.parent)
    sys.stdout.write(f"{arguments.output}: {', '.join(repository.models)}\n")


def main() -> int:
    """Read the command line; return 0 after writing the repository."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--output", type=Path, default=HERE / "models", help="folder of the repository"
    )
    parser.add_argument("--framework", choices=("numpy", "pytorch"), default="numpy")
    parser.add_argument(
        "--checkpoint", type=Path, help="folder of a T5, such as t5-small (default: random weights)"
    )
    parser.add_argument("--environment", type=Path, help="what create_hf_env.sh packed")
    parser.add_argument(
        "--instance-count", type=int, default=1, help="processes that serve the model"
    )
    parser.add_argument(
        "--intra-op-num-threads", type=int, default=2, help="PyTorch's threads in each"
    )
    parser.add_argument("--max-new-tokens", type=int, default=16)
    arguments = parser.parse_args()
    try:
        build(arguments)
    except ConstructsTritonError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
