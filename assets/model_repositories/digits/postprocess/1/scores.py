"""From logits to probabilities and labels."""

from pathlib import Path

import numpy as np


def load_labels(path: Path) -> np.ndarray:
    """Read the labels, one a line in the order of the logits, as an object array of bytes."""
    return np.array(path.read_bytes().split(), dtype=np.object_)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Return probabilities of the shape and dtype of logits; each row sums to 1."""
    # Taking the maximum off first changes nothing but keeps large logits from overflowing.
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def most_likely(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Return the label of each row's highest probability: object [n, 1]."""
    return labels[probabilities.argmax(axis=-1)][:, np.newaxis]
