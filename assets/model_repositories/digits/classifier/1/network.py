"""A fully connected network with one hidden layer, in NumPy."""

from pathlib import Path

import numpy as np


def load_weights(path: Path) -> dict[str, np.ndarray]:
    """Read hidden_weight [64, h], hidden_bias [h], output_weight [h, 10], output_bias [10], float32."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def forward(weights: dict[str, np.ndarray], pixels: np.ndarray) -> np.ndarray:
    """Return the logits [n, 10] of pixels [n, 1, 8, 8], in the dtype of the weights."""
    flat = pixels.reshape(len(pixels), -1)
    hidden = np.tanh(flat @ weights["hidden_weight"] + weights["hidden_bias"])
    return hidden @ weights["output_weight"] + weights["output_bias"]
