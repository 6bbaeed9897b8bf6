"""The sizes of a transformer in a folder of Hugging Face's layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from triton_model_check.model_files.transformer import Transformer, read_transformer

# Qwen3-8B: hidden size 4096, grouped-query attention.
CONFIG = {
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_size": 4096,
    "max_position_embeddings": 40960,
}


def read(folder: Path, config: Any) -> Transformer | None:
    (folder / "model-00001-of-00002.safetensors").write_bytes(bytes(10))
    (folder / "model-00002-of-00002.safetensors").write_bytes(bytes(5))
    (folder / "config.json").write_text(json.dumps(config))
    return read_transformer(folder)


def test_sizes_are_those_of_the_files(tmp_path: Path) -> None:
    """All weight files count, and the cache of a token has keys and values of every layer."""
    found = read(tmp_path, CONFIG)
    assert found == Transformer(15, layers=36, kv_heads=8, head_dim=128, max_position=40960)
    assert found is not None
    assert found.cache_bytes_per_token(1, 1, 2) == 2 * 36 * 8 * 128 * 2
    assert found.cache_bytes_per_token(16, 2, 1) == 2 * 36 * 1 * 128 / 2


def test_absent_members_have_the_defaults_of_transformers(tmp_path: Path) -> None:
    """Every attention head has its own keys, and a head is its share of the hidden size."""
    absent = {
        key: value
        for key, value in CONFIG.items()
        if key not in ("head_dim", "num_key_value_heads")
    }
    found = read(tmp_path, absent)
    assert found is not None
    assert (found.kv_heads, found.head_dim) == (32, 128)


@pytest.mark.parametrize(
    "config",
    [
        {**CONFIG, "sliding_window": 4096},
        {**CONFIG, "kv_lora_rank": 512},
        [],
        {"num_hidden_layers": 10**300},
    ],
)
def test_unknown_caches_have_no_size(tmp_path: Path, config: Any) -> None:
    """Models with another cache, and sizes that no model has, leave the weights alone."""
    found = read(tmp_path, config)
    assert found is not None
    assert found.weight_bytes == 15
    assert found.cache_bytes_per_token(1, 1, 2) == 0


def test_folder_without_safetensors_is_no_transformer(tmp_path: Path) -> None:
    """Nothing is concluded from a folder without weights, or from one that does not exist."""
    assert read_transformer(tmp_path) is None
    assert read_transformer(tmp_path / "absent") is None


def test_files_of_the_index_count(tmp_path: Path) -> None:
    """Weights that are published a second time in another form count once."""
    (tmp_path / "consolidated.safetensors").write_bytes(bytes(100))
    (tmp_path / "adapter_model.safetensors").write_bytes(bytes(7))
    found = read(tmp_path, CONFIG)
    assert found is not None
    assert found.weight_bytes == 15

    index = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    found = read(tmp_path, CONFIG)
    assert found is not None
    assert found.weight_bytes == 10


def test_floating_point_numbers_take_the_bytes_of_the_engine(tmp_path: Path) -> None:
    """An engine converts wider numbers to its own type; quantized ones keep their size."""
    header = {
        name: {"dtype": name, "shape": [2], "data_offsets": [begin, begin + size]}
        for name, begin, size in (("F32", 0, 8), ("BF16", 8, 4), ("I8", 12, 2))
    }
    text = json.dumps(header).encode()
    content = len(text).to_bytes(8, "little") + text + bytes(14)
    (tmp_path / "model.safetensors").write_bytes(content)
    found = read_transformer(tmp_path)
    assert found is not None
    assert found.bytes_with(2) == 4 + 4 + 2
    assert found.bytes_with(4) == 8 + 8 + 2
