"""An independent T5 in double precision: one sentence and one token at a time, without a cache."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
START, END = 0, 1


class T5Reference:
    """Decodes greedily with the weights in a model's version folder."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        with np.load(folder / "weights.npz") as stored:
            self.weights = {name: stored[name].astype(np.float64) for name in stored}
        #: How far the chosen token's score was above the next one's, at the closest.
        self.smallest_margin = math.inf

    def generate(self, ids: list[int], max_new_tokens: int) -> list[int]:
        """Return the tokens from the start token up to and including the end token."""
        encoded = self._encode(ids)
        tokens = [START]
        while len(tokens) <= max_new_tokens and tokens[-1] != END:
            scores = self._decode(tokens, encoded)[-1]
            best, second = np.sort(scores)[::-1][:2]
            self.smallest_margin = min(self.smallest_margin, float(best - second))
            tokens.append(int(scores.argmax()))
        return tokens

    def _encode(self, ids: list[int]) -> Array:
        states = self.weights["shared.weight"][ids]
        bias = self._bias("encoder", len(ids))
        for block in range(self.config["num_layers"]):
            name = f"encoder.block.{block}.layer"
            normal = self._norm(f"{name}.0.layer_norm", states)
            states = states + self._attention(f"{name}.0.SelfAttention", normal, normal, bias)
            states = states + self._feed_forward(f"{name}.1", states)
        return self._norm("encoder.final_layer_norm", states)

    def _decode(self, tokens: list[int], encoded: Array) -> Array:
        states = self.weights["shared.weight"][tokens]
        future = np.triu(np.full((len(tokens), len(tokens)), -np.inf), k=1)
        bias = self._bias("decoder", len(tokens)) + future
        nothing = np.zeros((self.config["num_heads"], len(tokens), len(encoded)))
        for block in range(self.config["num_layers"]):
            name = f"decoder.block.{block}.layer"
            normal = self._norm(f"{name}.0.layer_norm", states)
            states = states + self._attention(f"{name}.0.SelfAttention", normal, normal, bias)
            normal = self._norm(f"{name}.1.layer_norm", states)
            states = states + self._attention(f"{name}.1.EncDecAttention", normal, encoded, nothing)
            states = states + self._feed_forward(f"{name}.2", states)
        states = self._norm("decoder.final_layer_norm", states)
        if self.config["tie_word_embeddings"]:
            scaled: Array = states / math.sqrt(self.config["d_model"])
            return np.asarray(scaled @ self.weights["shared.weight"].T)
        return self._times("lm_head", states)

    def _attention(self, name: str, states: Array, memory: Array, bias: Array) -> Array:
        width = self.config["d_kv"]
        query, key, value = (
            self._times(f"{name}.{part}", source)
            for part, source in (("q", states), ("k", memory), ("v", memory))
        )
        heads = []
        for head in range(self.config["num_heads"]):
            columns = slice(head * width, (head + 1) * width)
            scores = query[:, columns] @ key[:, columns].T + bias[head]
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            heads.append(shares / shares.sum(axis=1, keepdims=True) @ value[:, columns])
        return self._times(f"{name}.o", np.concatenate(heads, axis=1))

    def _feed_forward(self, name: str, states: Array) -> Array:
        normal, dense = self._norm(f"{name}.layer_norm", states), f"{name}.DenseReluDense"
        if self.config["feed_forward_proj"] == "relu":
            return self._times(f"{dense}.wo", self._times(f"{dense}.wi", normal).clip(min=0))
        gate = self._times(f"{dense}.wi_0", normal)
        gate = 0.5 * gate * (1 + np.tanh(math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3)))
        return self._times(f"{dense}.wo", gate * self._times(f"{dense}.wi_1", normal))

    def _norm(self, name: str, states: Array) -> Array:
        size = np.sqrt(np.mean(states * states, axis=1, keepdims=True) + 1e-6)
        return np.asarray(self.weights[f"{name}.weight"] * states / size)

    def _times(self, name: str, states: Array) -> Array:
        return np.asarray(np.einsum("ti,oi->to", states, self.weights[f"{name}.weight"]))

    def _bias(self, stack: str, length: int) -> Array:
        """Return [heads, query, key], computed from the bucket of each distance."""
        table = self.weights[
            f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        ]
        buckets = [
            [self._bucket(key - query, stack == "encoder") for key in range(length)]
            for query in range(length)
        ]
        return np.asarray(table[np.array(buckets)].transpose(2, 0, 1))

    def _bucket(self, distance: int, both_ways: bool) -> int:
        count, farthest = (
            self.config[f"relative_attention_{part}"] for part in ("num_buckets", "max_distance")
        )
        first = 0
        if both_ways:
            count //= 2
            first = count if distance > 0 else 0
        steps = abs(distance) if both_ways else max(-distance, 0)
        exact = count // 2
        if steps < exact:
            return int(first + steps)
        further = math.log(steps / exact) / math.log(farthest / exact) * (count - exact)
        return int(first + min(exact + int(further), count - 1))
