"""Writes ``model_files/model.pt`` and ``model_files/model.onnx``: ``python make_model_files.py
[--random]``.

Needs ``pip install torch transformers onnx``. Without options it downloads bert-large-uncased,
which takes some gigabytes of memory; its classification head is not trained. ``--checkpoint
FOLDER`` uses your fine-tuned model. ``--random`` writes a small BERT with random weights, without a
download. ``compile_tensorrt.sh`` then writes ``model.plan``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from transformers import BertConfig, BertForSequenceClassification

MODEL_FILES = Path(__file__).resolve().parent / "model_files"
NAMES = ("INPUT__0", "INPUT__1")
LENGTH = 512
SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}


class Classifier(torch.nn.Module):
    """Converts tokens and mask, INT32 [n, 512], to logits FP32 [n, 2];
    TorchScript needs plain tensors.
    """

    def __init__(self, bert: torch.nn.Module) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        # From a 2-D mask transformers computes positions with torch.arange, and tracing writes the
        # device of the machine into the file: the model would then fail on a GPU. Everything here
        # follows the inputs.
        hidden = (1 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        positions = torch.ones_like(tokens).cumsum(1) - 1
        types = torch.zeros_like(tokens)
        answer = self.bert(
            input_ids=tokens, attention_mask=hidden, position_ids=positions, token_type_ids=types
        )
        return answer.logits


def load(checkpoint: str, *, random: bool) -> BertForSequenceClassification:
    """Return BERT with two classes: of a checkpoint, or a small one with random weights."""
    if random:
        torch.manual_seed(0)
        return BertForSequenceClassification(BertConfig(**SMALL, num_labels=2))
    return BertForSequenceClassification.from_pretrained(checkpoint, num_labels=2)


def write(model: torch.nn.Module, folder: Path) -> None:
    """Trace the model for the PyTorch backend, and export it for TensorRT under
    the same tensor names.
    """
    folder.mkdir(exist_ok=True)
    example = tuple(torch.ones(1, LENGTH, dtype=torch.int32) for _ in NAMES)
    torch.jit.trace(model, example).save(str(folder / "model.pt"))
    torch.onnx.export(
        model,
        example,
        str(folder / "model.onnx"),
        input_names=list(NAMES),
        output_names=["OUTPUT__0"],
        dynamic_axes={name: {0: "batch"} for name in (*NAMES, "OUTPUT__0")},
        dynamo=False,
    )


def main() -> None:
    """Read the command line and write both files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--checkpoint", default="bert-large-uncased", help="name or folder")
    parser.add_argument("--random", action="store_true", help="a small BERT with random weights")
    parser.add_argument(
        "--output", type=Path, default=MODEL_FILES, help="folder (default: model_files)"
    )
    arguments = parser.parse_args()
    write(Classifier(load(arguments.checkpoint, random=arguments.random)).eval(), arguments.output)


if __name__ == "__main__":
    main()
