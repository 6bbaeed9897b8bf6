"""A small residual network in NumPy with 1,000 classes: ten colours in 100 places.

It replaces ResNet-50 and Inception v3 on machines without a GPU, with the same inputs and outputs. Its
filters are random with a fixed seed. Its last layer is trained by ``train.py``, once for each preprocessing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

COLOURS = ("red", "orange", "yellow", "green", "cyan", "blue", "purple", "pink", "brown", "white")
ROWS = COLUMNS = 10
GRID = 32
"""Maximum rows and columns to which a picture is averaged."""


def load_weights(path: Path) -> dict[str, np.ndarray]:
    """Read weights from an ``.npz`` file; the network computes in their dtype."""
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def label_of(class_index: int) -> str:
    """Return the name of a class from 0 to 999; rows and columns count from 1 at the top left."""
    colour, place = divmod(class_index, ROWS * COLUMNS)
    row, column = divmod(place, COLUMNS)
    return f"{COLOURS[colour]}, row {row + 1}, column {column + 1}"


def log_probabilities(weights: dict[str, np.ndarray], pixels: np.ndarray) -> np.ndarray:
    """Return [n, 1001] for pixels [n, 3, h, w]: "background" (no object) first, then the 1,000 classes.

    The network predicts colour, row and column of an object; the probability of a class is the product of
    the three.
    """
    features = _features(weights, pixels)
    colour, row, column = (
        _log_softmax(features[name] @ weights[f"{name}_weight"] + weights[f"{name}_bias"])
        for name in ("colour", "row", "column")
    )
    classes = colour[:, 1:, None, None] + row[:, None, :, None] + column[:, None, None, :]
    return np.concatenate([colour[:, :1], classes.reshape(len(pixels), -1)], axis=1)


def _features(weights: dict[str, np.ndarray], pixels: np.ndarray) -> dict[str, np.ndarray]:
    """Return the input of the last layer: averages over the picture, its columns and its rows."""
    maps = _convolve(_averaged_down(pixels).astype(weights["stem"].dtype), weights["stem"])
    maps = np.maximum(maps, 0)
    inner = np.maximum(_convolve(maps, weights["residual_1"]), 0)
    maps = np.maximum(maps + _convolve(inner, weights["residual_2"]), 0)
    count = len(maps)
    return {
        "colour": maps.mean(axis=(2, 3)),
        "row": maps.mean(axis=3).reshape(count, -1),
        "column": maps.mean(axis=2).reshape(count, -1),
    }


def _averaged_down(pixels: np.ndarray) -> np.ndarray:
    """Average square blocks of a picture: [n, 3, 224, 224] becomes [n, 3, 32, 32]; a rest is cut off."""
    count, channels, height, width = pixels.shape
    block = -(-min(height, width) // GRID)
    rows, columns = height // block, width // block
    cut = pixels[:, :, : rows * block, : columns * block]
    return cut.reshape(count, channels, rows, block, columns, block).mean(axis=(3, 5))


def _convolve(maps: np.ndarray, filters: np.ndarray) -> np.ndarray:
    """Convolve [n, c, h, w] with filters [o, c, 3, 3], padded with zeros to the same size: [n, o, h, w]."""
    height, width = maps.shape[2:]
    padded = np.pad(maps, ((0, 0), (0, 0), (1, 1), (1, 1)))
    result = np.zeros((len(maps), len(filters), height * width), maps.dtype)
    for y in range(3):
        for x in range(3):
            window = padded[:, :, y : y + height, x : x + width].reshape(len(maps), maps.shape[1], -1)
            result += filters[:, :, y, x] @ window
    return result.reshape(len(maps), len(filters), height, width)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
