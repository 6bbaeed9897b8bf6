"""Writes ``model_files/model.pt`` and ``model_files/model.onnx``: ``python make_model_files.py``.

Not run by the tests: it needs torch, transformers and onnx (``pip install torch transformers onnx``), some
gigabytes of memory, and the network to download bert-large-uncased. The classification head is not trained:
replace it with your own fine-tuned model. ``compile_tensorrt.sh`` then writes ``model.plan``.
"""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import BertForSequenceClassification

MODEL_FILES = Path(__file__).resolve().parent / "model_files"


class Classifier(torch.nn.Module):
    """Converts tokens and mask, INT32 [n, 512], to logits FP32 [n, 2]; TorchScript needs plain tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = BertForSequenceClassification.from_pretrained("bert-large-uncased", num_labels=2)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.bert(input_ids=tokens, attention_mask=mask).logits


def main() -> None:
    """Trace the model for the PyTorch backend, and export it for TensorRT under the same tensor names."""
    MODEL_FILES.mkdir(exist_ok=True)
    model = Classifier().eval()
    example = tuple(torch.ones(1, 512, dtype=torch.int32) for _ in range(2))
    torch.jit.trace(model, example).save(str(MODEL_FILES / "model.pt"))
    torch.onnx.export(
        model,
        example,
        str(MODEL_FILES / "model.onnx"),
        input_names=["INPUT__0", "INPUT__1"],
        output_names=["OUTPUT__0"],
        dynamic_axes={name: {0: "batch"} for name in ("INPUT__0", "INPUT__1", "OUTPUT__0")},
        dynamo=False,
    )


if __name__ == "__main__":
    main()
