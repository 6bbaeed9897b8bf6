"""Writes ``model_files/model.pt`` and ``model_files/model.onnx``: ``python make_model_files.py
[--random]``.

Needs ``pip install torch onnx``, and the network to download torchvision's weights. ``--random``
writes random weights, without a download. ``compile_tensorrt.sh`` then writes ``model.plan``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import resnet50
import torch

MODEL_FILES = Path(__file__).resolve().parent / "model_files"


def write(model: torch.nn.Module, folder: Path) -> None:
    """Trace the model for the PyTorch backend, and export it for TensorRT with
    a variable batch axis.
    """
    folder.mkdir(exist_ok=True)
    example = torch.randn(1, 3, 224, 224)
    torch.jit.trace(model, example).save(str(folder / "model.pt"))
    torch.onnx.export(
        model,
        (example,),
        str(folder / "model.onnx"),
        input_names=["input"],
        output_names=["output"],
        dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}},
        dynamo=False,
    )


def main() -> None:
    """Read the command line and write both files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--random", action="store_true", help="random weights, without a download")
    parser.add_argument(
        "--output", type=Path, default=MODEL_FILES, help="folder (default: model_files)"
    )
    arguments = parser.parse_args()
    write(resnet50.load(random=arguments.random), arguments.output)


if __name__ == "__main__":
    main()
