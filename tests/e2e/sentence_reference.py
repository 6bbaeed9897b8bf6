"""An independent all-MiniLM-L6-v2 in NumPy: one sentence at a time, without padding."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

Array = NDArray[np.float64]
CLS, SEP = 101, 102
erf = np.vectorize(math.erf, otypes=[float])
LAYERS, HEADS = 6, 12


class SentenceReference:
    """Embeds sentences of plain ASCII from the model's own files."""

    def __init__(self, model: Path) -> None:
        words = (model / "vocab.txt").read_text(encoding="utf-8").splitlines()
        self.vocabulary = {word: number for number, word in enumerate(words)}
        stored = load_file(model / "model.safetensors")
        self.weights = {name: np.asarray(value, dtype=np.float64) for name, value in stored.items()}

    def embed(self, sentence: str) -> Array:
        """Return the embedding, [384], of length 1."""
        states = self._encode([CLS, *self.tokenize(sentence), SEP])
        mean = states.mean(axis=0)
        return np.asarray(mean / np.sqrt(mean @ mean))

    def tokenize(self, sentence: str) -> list[int]:
        """Split into the longest pieces of the vocabulary, from left to right (WordPiece)."""
        return [
            piece
            for word in re.findall(r"\w+|[^\w\s]", sentence.lower())
            for piece in self._pieces(word)
        ]

    def _pieces(self, word: str) -> list[int]:
        found: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            end = max(
                e
                for e in range(start + 1, len(word) + 1)
                if prefix + word[start:e] in self.vocabulary
            )
            found.append(self.vocabulary[prefix + word[start:end]])
            start = end
        return found

    def _encode(self, ids: list[int]) -> Array:
        tables = {
            kind: self.weights[f"embeddings.{kind}_embeddings.weight"]
            for kind in ("word", "position", "token_type")
        }
        total = tables["word"][ids] + tables["position"][: len(ids)] + tables["token_type"][0]
        states = self._normalize("embeddings", total)
        for number in range(LAYERS):
            states = self._layer(f"encoder.layer.{number}", states)
        return states

    def _layer(self, name: str, states: Array) -> Array:
        query, key, value = (
            self._dense(f"{name}.attention.self.{part}", states).reshape(len(states), HEADS, -1)
            for part in ("query", "key", "value")
        )
        scores = np.einsum("qhd,khd->hqk", query, key) / np.sqrt(query.shape[-1])
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", shares, value).reshape(len(states), -1)
        attention = f"{name}.attention.output"
        states = self._normalize(attention, self._dense(f"{attention}.dense", mixed) + states)
        inner = self._dense(f"{name}.intermediate.dense", states)
        inner = inner * (1 + erf(inner / np.sqrt(2))) / 2
        return self._normalize(
            f"{name}.output", self._dense(f"{name}.output.dense", inner) + states
        )

    def _dense(self, name: str, states: Array) -> Array:
        return np.asarray(states @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"])

    def _normalize(self, name: str, states: Array) -> Array:
        weight, bias = (self.weights[f"{name}.LayerNorm.{part}"] for part in ("weight", "bias"))
        centred = states - states.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return np.asarray(centred / spread * weight + bias)
