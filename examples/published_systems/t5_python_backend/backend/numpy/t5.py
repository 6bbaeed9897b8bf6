"""T5 in NumPy, under the names of the published checkpoints: encoder once, then decoder token by token.

Keys and values of what was decoded already are kept, so that a step costs as much as one token.
"""

import numpy as np

EPSILON = 1e-6
MASKED = -1e9
PAD, EOS = 0, 1


class T5:
    """A T5 of version 1.0 (ReLU, tied embeddings) or 1.1 (gated GELU), as its configuration says."""

    def __init__(self, config, weights):
        self.config, self.weights = config, weights
        self.heads, self.layers = config["num_heads"], config["num_layers"]
        self.vocabulary_size = config["vocab_size"]

    def generate(self, ids, mask, max_new_tokens):
        """Return INT32 [n, at most max_new_tokens + 1]: the start token, then greedily the likeliest."""
        source_bias = np.where(mask, np.float32(0), np.float32(MASKED))[:, np.newaxis, np.newaxis, :]
        cross = self.cross_cache(self.encode(ids, source_bias))
        cache = [None] * self.layers
        tokens = np.full((len(ids), 1), PAD, dtype=np.int32)
        ended = np.zeros(len(ids), dtype=bool)
        while tokens.shape[1] <= max_new_tokens and not ended.all():
            logits = self.decode(tokens, cache, cross, source_bias)
            following = np.where(ended, PAD, logits.argmax(axis=-1)).astype(np.int32)
            ended |= following == EOS
            tokens = np.concatenate([tokens, following[:, np.newaxis]], axis=1)
        return tokens

    @staticmethod
    def trim(tokens):
        """Return the tokens without the columns that only a neighbour in the batch needed."""
        used = np.flatnonzero((tokens != PAD).any(axis=0))
        return np.ascontiguousarray(tokens[:, : used[-1] + 1 if len(used) else 1])

    # --- encoder and decoder ------------------------------------------------------------------------------

    def encode(self, ids, source_bias):
        """Return [n, source, d_model]."""
        states = self.weights["shared.weight"][ids]
        positions = np.arange(ids.shape[1])
        bias = self.position_bias("encoder", positions, positions) + source_bias
        for number in range(self.layers):
            block = f"encoder.block.{number}.layer"
            normal = self.norm(f"{block}.0.layer_norm", states)
            keys, values = self.keys_and_values(f"{block}.0.SelfAttention", normal)
            states = states + self.attend(f"{block}.0.SelfAttention", normal, keys, values, bias)
            states = states + self.feed_forward(f"{block}.1", states)
        return self.norm("encoder.final_layer_norm", states)

    def decode(self, tokens, cache, cross, source_bias):
        """Return the logits [n, vocabulary] after the last token; the ones before it are in the cache."""
        states = self.weights["shared.weight"][tokens[:, -1:]]
        length = tokens.shape[1]
        bias = self.position_bias("decoder", np.array([length - 1]), np.arange(length))
        for number in range(self.layers):
            block = f"decoder.block.{number}.layer"
            states = states + self.attend_to_past(f"{block}.0", states, cache, number, bias)
            normal = self.norm(f"{block}.1.layer_norm", states)
            states = states + self.attend(f"{block}.1.EncDecAttention", normal, *cross[number], source_bias)
            states = states + self.feed_forward(f"{block}.2", states)
        return self.logits(self.norm("decoder.final_layer_norm", states)[:, 0])

    def cross_cache(self, encoded):
        """Return the encoder's keys and values for each layer of the decoder."""
        names = (f"decoder.block.{number}.layer.1.EncDecAttention" for number in range(self.layers))
        return [self.keys_and_values(name, encoded) for name in names]

    def attend_to_past(self, name, states, cache, number, bias):
        """Attend to all tokens so far, and remember the newest."""
        normal = self.norm(f"{name}.layer_norm", states)
        newest = self.keys_and_values(f"{name}.SelfAttention", normal)
        past = cache[number]
        if past is not None:
            newest = tuple(np.concatenate(pair, axis=2) for pair in zip(past, newest, strict=True))
        cache[number] = newest
        return self.attend(f"{name}.SelfAttention", normal, *newest, bias)

    def logits(self, states):
        """Return the score of each token; tied embeddings are scaled, as in the paper's code."""
        if self.config["tie_word_embeddings"]:
            return states * self.config["d_model"] ** -0.5 @ self.weights["shared.weight"].T
        return states @ self.weights["lm_head.weight"].T

    # --- layers -------------------------------------------------------------------------------------------

    def attend(self, name, states, keys, values, bias):
        """Return attention of states [n, queries, d_model]; T5 does not scale the scores."""
        queries = self.split_heads(self.linear(f"{name}.q", states))
        scores = queries @ keys.swapaxes(-1, -2) + bias
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (shares / shares.sum(axis=-1, keepdims=True)) @ values
        joined = mixed.swapaxes(1, 2).reshape(*states.shape[:2], -1)
        return self.linear(f"{name}.o", joined)

    def keys_and_values(self, name, states):
        """Return both, [n, heads, length, d_kv]."""
        return tuple(self.split_heads(self.linear(f"{name}.{part}", states)) for part in ("k", "v"))

    def split_heads(self, states):
        """Return [n, heads, length, d_kv] from [n, length, heads * d_kv]."""
        return states.reshape(*states.shape[:2], self.heads, -1).swapaxes(1, 2)

    def feed_forward(self, name, states):
        """Return the position-wise layer, gated or not."""
        dense, normal = f"{name}.DenseReluDense", self.norm(f"{name}.layer_norm", states)
        if self.config["feed_forward_proj"] == "relu":
            inner = np.maximum(self.linear(f"{dense}.wi", normal), 0)
        else:
            inner = gelu(self.linear(f"{dense}.wi_0", normal)) * self.linear(f"{dense}.wi_1", normal)
        return self.linear(f"{dense}.wo", inner)

    def norm(self, name, states):
        """Return states by their root mean square: neither mean nor bias."""
        square = (states**2).mean(axis=-1, keepdims=True)
        return states / np.sqrt(square + np.float32(EPSILON)) * self.weights[f"{name}.weight"]

    def linear(self, name, states):
        """Return states times a matrix that is stored as [out, in]; T5 has no biases."""
        return states @ self.weights[f"{name}.weight"].T

    # --- positions ----------------------------------------------------------------------------------------

    def position_bias(self, stack, queries, keys):
        """Return [1, heads, queries, keys]: what attention adds for each distance, alike in every layer."""
        table = self.weights[f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        distances = keys[np.newaxis, :] - queries[:, np.newaxis]
        return table[self.bucket(distances, stack == "encoder")].transpose(2, 0, 1)[np.newaxis]

    def bucket(self, distances, both_ways):
        """Return the bucket of each distance: exact when near, by its logarithm when far."""
        count = self.config["relative_attention_num_buckets"]
        offset = 0
        if both_ways:
            count //= 2
            offset = np.where(distances > 0, count, 0)
            distances = np.abs(distances)
        else:
            distances = np.maximum(-distances, 0)
        exact = count // 2
        farthest = self.config["relative_attention_max_distance"] / exact
        ratio = np.log(np.maximum(distances, 1) / exact) / np.log(farthest)
        far = np.minimum(exact + (ratio * (count - exact)).astype(np.int64), count - 1)
        return offset + np.where(distances < exact, distances, far)


def gelu(values):
    """Return GELU by its tanh approximation, the one that T5 1.1 was trained with."""
    inner = np.float32(np.sqrt(2 / np.pi)) * (values + np.float32(0.044715) * values**3)
    return values * (1 + np.tanh(inner)) / 2
