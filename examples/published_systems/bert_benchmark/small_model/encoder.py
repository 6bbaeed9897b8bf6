"""A transformer encoder of BERT's shape in NumPy, small enough for a laptop, with weights from a fixed seed.

It is not trained. It has BERT's inputs and outputs, and padding does not change its output.
"""

from __future__ import annotations

import numpy as np

LAYERS, HIDDEN, HEADS, VOCABULARY, POSITIONS = 2, 32, 4, 30522, 512
"""BERT-large: 24 layers of 1024 with 16 heads; the vocabulary and the positions are its own."""


def make_weights(dtype: str = "float32") -> dict[str, np.ndarray]:
    """All weights, drawn from a stream that NumPy keeps for good; the encoder computes in their dtype."""
    random = np.random.RandomState(20240817)

    def drawn(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32).astype(dtype)

    weights = {
        "tokens": drawn(VOCABULARY, HIDDEN) * 100,
        "positions": drawn(POSITIONS, HIDDEN),
        "head": drawn(HIDDEN, 2),
    }
    for layer in range(LAYERS):
        weights[f"{layer}.qkv"] = drawn(HIDDEN, 3 * HIDDEN)
        weights[f"{layer}.out"] = drawn(HIDDEN, HIDDEN)
        weights[f"{layer}.up"] = drawn(HIDDEN, 4 * HIDDEN)
        weights[f"{layer}.down"] = drawn(4 * HIDDEN, HIDDEN)
    return weights


def logits(weights: dict[str, np.ndarray], tokens: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return [n, 2] for tokens and mask [n, length]; a mask of 0 hides a position."""
    # Positions that nobody looks at need not be computed.
    length = max(int(mask.sum(axis=1).max()), 1)
    tokens, mask = tokens[:, :length], mask[:, :length]
    states = _normalized(weights["tokens"][tokens] + weights["positions"][:length])
    for layer in range(LAYERS):
        attended = _attention(states @ weights[f"{layer}.qkv"], mask) @ weights[f"{layer}.out"]
        states = _normalized(states + attended)
        inner = np.maximum(states @ weights[f"{layer}.up"], 0)
        states = _normalized(states + inner @ weights[f"{layer}.down"])
    return states[:, 0] @ weights["head"]


def _attention(qkv: np.ndarray, mask: np.ndarray) -> np.ndarray:
    count, length, _ = qkv.shape
    parts = qkv.reshape(count, length, 3, HEADS, HIDDEN // HEADS).transpose(2, 0, 3, 1, 4)
    query, key, value = parts
    scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(HIDDEN // HEADS)
    scores = np.where(mask[:, None, None, :] > 0, scores, np.float32(-1e9))
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return (shares @ value).transpose(0, 2, 1, 3).reshape(count, length, HIDDEN)


def _normalized(states: np.ndarray) -> np.ndarray:
    centred = states - states.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6)
