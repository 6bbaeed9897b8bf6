"""The sizes of a transformer in a folder of Hugging Face's layout: weights and key-value cache."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constructs_triton_core.untrusted.regular_files import read_json

# With these keys the size of the cache follows another formula.
_OTHER_CACHES = (
    "kv_lora_rank",
    "layer_types",
    "sliding_window",
    "ssm_cfg",
    "state_size",
    "text_config",
)


_LARGEST = 10**9  # products of larger numbers are no floats


@dataclass(frozen=True, slots=True)
class Transformer:
    """The sizes of a transformer.

    ``weight_bytes``
        Size of all ``*.safetensors`` files.
    ``layers``, ``kv_heads``, ``head_dim``
        Sizes of the key-value cache of one token; 0 if ``config.json`` does not state them, or if
        the model has another cache: a sliding window, latent attention, a state-space model or a
        mixed one.
    ``max_position``
        Longest sequence of the model, in tokens; 0 if unknown.
    """

    weight_bytes: int
    layers: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    max_position: int = 0

    def cache_bytes_per_token(
        self, tensor_parallel: int, pipeline_parallel: int, value_bytes: int
    ) -> float:
        """Return the key-value cache of one token on one GPU, in bytes; 0 if unknown.

        Source: vllm 0.33.0, vllm/v1/kv_cache_interface.py.
        """
        heads = max(1, self.kv_heads // tensor_parallel) if self.kv_heads else 0
        return 2 * self.layers * heads * self.head_dim * value_bytes / pipeline_parallel


def read_transformer(folder: Path) -> Transformer | None:
    """Read the sizes from the names of the files and from ``config.json``;
    ``None`` without safetensors.
    """
    try:
        with os.scandir(folder) as entries:
            weights = sum(
                each.stat().st_size
                for each in entries
                if each.name.endswith(".safetensors") and each.is_file()
            )
    except (OSError, ValueError):
        return None
    return Transformer(weights, **_cache_sizes(_config(folder))) if weights else None


def _config(folder: Path) -> Mapping[str, Any]:
    try:
        content = read_json(folder / "config.json")
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _cache_sizes(config: Mapping[str, Any]) -> dict[str, int]:
    if any(config.get(key) for key in _OTHER_CACHES):
        return {}
    heads = _positive(config, "num_attention_heads")
    head_dim = _positive(config, "head_dim") or (
        _positive(config, "hidden_size") // heads if heads else 0
    )
    return {
        "layers": _positive(config, "num_hidden_layers"),
        "kv_heads": _positive(config, "num_key_value_heads") or heads,
        "head_dim": head_dim,
        "max_position": _positive(config, "max_position_embeddings"),
    }


def _positive(config: Mapping[str, Any], key: str) -> int:
    value = config.get(key)
    return value if type(value) is int and 0 < value <= _LARGEST else 0
