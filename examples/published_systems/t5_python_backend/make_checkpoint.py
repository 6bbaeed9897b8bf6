"""Writes small T5 checkpoints with random weights, in the format of the published ones.

``config.json`` and ``model.safetensors`` have the names and shapes of T5 version 1.0 (ReLU, tied
embeddings) or 1.1 (gated GELU, a separate output matrix), so code that reads them also reads
t5-small. ``tokenizer.json`` has a token for each letter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

__all__ = ["VERSIONS", "write_checkpoint"]

SHAPE: dict[str, Any] = {
    "model_type": "t5",
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 128,
    "num_heads": 4,
    "num_layers": 2,
    "vocab_size": 256,
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
}
VERSIONS: dict[str, dict[str, Any]] = {
    "relu": {**SHAPE, "feed_forward_proj": "relu", "tie_word_embeddings": True, "seed": 10},
    "gated": {**SHAPE, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "seed": 11},
}


def write_checkpoint(version: str, directory: Path) -> None:
    """Write ``config.json``, ``model.safetensors`` and ``tokenizer.json``;
    the bytes are always the same.
    """
    directory.mkdir(parents=True)
    config = dict(VERSIONS[version])
    # The numbers of RandomState never change; those of default_rng may, between NumPy releases.
    random = np.random.RandomState(config.pop("seed"))
    weights = {
        name: _draw(random, shape, deviation).astype(np.float32)
        for name, shape, deviation in _tensors(config)
    }
    (directory / "config.json").write_text(json.dumps(config, indent=2))
    save_file(weights, directory / "model.safetensors")
    (directory / "tokenizer.json").write_text(json.dumps(_tokenizer(config["vocab_size"])))


def _tokenizer(size: int) -> dict[str, Any]:
    """Return a tokenizer in the format of Hugging Face: padding, end, unknown,
    and letters of Latin-1.
    """
    special = ["<pad>", "</s>", "<unk>"]
    letters = ["\u2581", *(chr(code) for code in (*range(0x21, 0x7F), *range(0xA1, 0x100)))]
    words = [*special, *letters, *(f"<extra_{number}>" for number in range(size))][:size]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [
        {"id": index, "content": word, "special": True, **flags}
        for index, word in enumerate(special)
    ]
    end = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]
    ends = {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}
    space = {
        "type": "Metaspace",
        "replacement": "\u2581",
        "prepend_scheme": "never",
        "split": False,
    }
    vocabulary = {word: index for index, word in enumerate(words)}
    return {
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": space,
        "decoder": space,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": end,
            "pair": end,
            "special_tokens": ends,
        },
        "model": {"type": "BPE", "unk_token": "<unk>", "vocab": vocabulary, "merges": []},
    }


def _draw(
    random: np.random.RandomState, shape: tuple[int, ...], deviation: float | None
) -> NDArray[np.float64]:
    noise: NDArray[np.float64] = random.standard_normal(shape)
    return 1 + 0.1 * noise if deviation is None else deviation * noise


def _tensors(config: dict[str, Any]) -> Iterator[tuple[str, tuple[int, ...], float | None]]:
    """Return name, shape and standard deviation of each tensor; ``None`` is a scale around 1."""
    model, inner = config["d_model"], config["num_heads"] * config["d_kv"]
    # Small compared with the layers: otherwise T5 with random weights would repeat its last token.
    yield "shared.weight", (config["vocab_size"], model), 0.1
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], model), model**-0.5
    for stack, attentions in (
        ("encoder", ["SelfAttention"]),
        ("decoder", ["SelfAttention", "EncDecAttention"]),
    ):
        buckets = (config["relative_attention_num_buckets"], config["num_heads"])
        yield f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight", buckets, 1.0
        for block in range(config["num_layers"]):
            for layer, attention in enumerate(attentions):
                name = f"{stack}.block.{block}.layer.{layer}"
                yield f"{name}.layer_norm.weight", (model,), None
                for part in "qkv":
                    yield f"{name}.{attention}.{part}.weight", (inner, model), model**-0.5
                yield f"{name}.{attention}.o.weight", (model, inner), inner**-0.5
            yield from _feed_forward(config, f"{stack}.block.{block}.layer.{len(attentions)}")
        yield f"{stack}.final_layer_norm.weight", (model,), None


def _feed_forward(
    config: dict[str, Any], name: str
) -> Iterator[tuple[str, tuple[int, ...], float | None]]:
    model, wide = config["d_model"], config["d_ff"]
    yield f"{name}.layer_norm.weight", (model,), None
    for part in ("wi",) if config["feed_forward_proj"] == "relu" else ("wi_0", "wi_1"):
        yield f"{name}.DenseReluDense.{part}.weight", (wide, model), model**-0.5
    yield f"{name}.DenseReluDense.wo.weight", (model, wide), wide**-0.5
