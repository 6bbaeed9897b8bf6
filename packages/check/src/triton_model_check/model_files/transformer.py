"""The sizes of a transformer in a folder of Hugging Face's layout: weights and key-value cache."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from constructs_triton_core.untrusted.regular_files import read_json
from triton_model_check.model_files.safetensors import bytes_by_type

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
_INDEX = "model.safetensors.index.json"
_OTHER_FORMS = ("consolidated", "adapter_")
"""How files begin that have the weights a second time, or those of an adapter."""
_FLOAT_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
"""The types that an engine converts to its own data type, with the bytes of a number."""
_GENERATING = ("ForCausalLM", "ForConditionalGeneration", "ChatModel", "LMHeadModel")
"""How the names of architectures end that generate text.

Source: vllm at commit 0052a5b8, vllm/config/model.py, _SUFFIX_TO_DEFAULTS.
"""


@dataclass(frozen=True, slots=True)
class Transformer:
    """The sizes of a transformer.

    ``weight_bytes``
        Size of the ``*.safetensors`` files that are loaded.
    ``layers``, ``kv_heads``, ``head_dim``
        Sizes of the key-value cache of one token; 0 if ``config.json`` does not state them, or if
        the model has another cache: a sliding window, latent attention, a state-space model or a
        mixed one.
    ``max_position``
        Longest sequence of the model, in tokens; 0 if unknown.
    ``type_bytes``
        Bytes of the tensors of each data type; empty if a header cannot be read.
    ``architecture``
        Name of the class in ``config.json``, such as ``"LlamaForCausalLM"``; empty if unknown.
    ``is_quantized``
        Whether the weights are quantized in the files.
    """

    weight_bytes: int
    layers: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    max_position: int = 0
    type_bytes: Mapping[str, int] = field(default_factory=dict)
    architecture: str = ""
    is_quantized: bool = False

    @property
    def generates(self) -> bool:
        """Whether the model generates text, as its architecture says; so does an unknown one."""
        return not self.architecture or self.architecture.endswith(_GENERATING)

    def bytes_with(self, value_bytes: int) -> int:
        """Return the bytes of the weights if floating-point numbers take ``value_bytes`` each.

        Quantized tensors keep their size. So do all, if the data types are not known.
        """
        if not self.type_bytes:
            return self.weight_bytes
        return sum(
            size // _FLOAT_BYTES[name] * value_bytes if name in _FLOAT_BYTES else size
            for name, size in self.type_bytes.items()
        )

    def cache_bytes_per_token(
        self, tensor_parallel: int, pipeline_parallel: int, value_bytes: int
    ) -> float:
        """Return the key-value cache of one token on one GPU, in bytes; 0 if unknown.

        Source: vllm 0.33.0, vllm/v1/kv_cache_interface.py.
        """
        heads = max(1, self.kv_heads // tensor_parallel) if self.kv_heads else 0
        return 2 * self.layers * heads * self.head_dim * value_bytes / pipeline_parallel


def read_transformer(folder: Path) -> Transformer | None:
    """Read the sizes from the headers of the files and from ``config.json``;
    ``None`` without safetensors.
    """
    try:
        with os.scandir(folder) as entries:
            sizes = {
                each.name: each.stat().st_size
                for each in entries
                if each.name.endswith(".safetensors") and each.is_file()
            }
    except (OSError, ValueError):
        return None
    if not any(sizes.values()):
        return None

    names = _loaded_names(folder, sizes)
    config = _object(folder / "config.json")
    return Transformer(
        sum(sizes[name] for name in names),
        **_cache_sizes(config),
        type_bytes=bytes_by_type(folder / name for name in names) or {},
        architecture=_architecture(config),
        is_quantized=bool(config.get("quantization_config")),
    )


def _loaded_names(folder: Path, names: Iterable[str]) -> list[str]:
    """Return the files that an engine loads: those of the index, if there is one.

    Mistral publishes each model a second time, as ``consolidated.safetensors``. Source: vllm,
    vllm/model_executor/model_loader/weight_utils.py, filter_duplicate_safetensors_files.
    """
    listed = _object(folder / _INDEX).get("weight_map")
    if isinstance(listed, dict):
        wanted = {name for name in listed.values() if isinstance(name, str)}
        found = [name for name in names if name in wanted]
        if found:
            return found
    return [name for name in names if not name.startswith(_OTHER_FORMS)] or list(names)


def _architecture(config: Mapping[str, Any]) -> str:
    names = config.get("architectures")
    if isinstance(names, list) and names and isinstance(names[0], str):
        return names[0]
    return ""


def _object(path: Path) -> Mapping[str, Any]:
    """Return the object in a JSON file; empty if there is none."""
    try:
        content = read_json(path)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _cache_sizes(config: Mapping[str, Any]) -> dict[str, int]:
    """Return the sizes on which the key-value cache depends; empty if they are not known."""
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
