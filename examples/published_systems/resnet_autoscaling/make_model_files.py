"""Writes ``model_files/model.pt`` and ``model_files/model.onnx``: ``python make_model_files.py``.

Not run by the tests: it needs torch, torchvision and onnx (``pip install torch torchvision onnx``) and the
network to download the weights. ``compile_tensorrt.sh`` then writes ``model.plan``.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torchvision

MODEL_FILES = Path(__file__).resolve().parent / "model_files"


def main() -> None:
    """Trace the model for the PyTorch backend, and export it for TensorRT with a variable batch axis."""
    MODEL_FILES.mkdir(exist_ok=True)
    weights = torchvision.models.ResNet50_Weights.IMAGENET1K_V1
    model = torchvision.models.resnet50(weights=weights).eval()
    example = torch.randn(1, 3, 224, 224)
    torch.jit.trace(model, example).save(str(MODEL_FILES / "model.pt"))
    torch.onnx.export(
        model,
        (example,),
        str(MODEL_FILES / "model.onnx"),
        input_names=["input"],
        output_names=["output"],
        dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}},
        dynamo=False,
    )


if __name__ == "__main__":
    main()
