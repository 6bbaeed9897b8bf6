"""Repositories of language models, whose weights are sparse files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from triton_model_check.memory.estimate import MemoryEstimate
from triton_model_check.memory.shared_memory import SHARED_MEMORY
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

GIB = 2**30
GPU_MIB = 24 * 1024


def sparse(path: Path, gib: float) -> None:
    """Write a file of this size that takes no disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(int(gib * GIB))


def safetensors(path: Path, **gib_of_types: float) -> None:
    """Write a safetensors file with one tensor of each data type, of this many GiB."""
    header, end = {}, 0
    for name, gib in gib_of_types.items():
        begin, end = end, end + int(gib * GIB)
        header[name] = {"dtype": name, "shape": [end - begin], "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)


def vllm(folder: Path, arguments: dict[str, Any], group: str = "kind: KIND_MODEL") -> Path:
    """Write a vLLM model; return the folder for its weights."""
    version = folder / "1"
    version.mkdir(parents=True, exist_ok=True)
    config = f'backend: "vllm"\ninstance_group [ {{ {group} }} ]\n'
    (folder / "config.pbtxt").write_text(config)
    (version / "model.json").write_text(json.dumps(arguments))
    return version / "weights"


def memory(
    folder: Path, gpus: int = 1, image: str | None = None, gpu_mib: int | None = GPU_MIB
) -> MemoryEstimate:
    """Return what the models of a folder take on a server, without their shared memory."""
    target = Target.named(
        "server", gpu_count=gpus, gpu_memory_mib=gpu_mib, memory_gib=64, image_version=image
    )
    (estimate,) = ModelRepository.from_directory(folder).memory(target)
    own = [part for part in estimate.parts if SHARED_MEMORY not in f"{part.place} {part.what}"]
    return replace(estimate, parts=tuple(own))


def sizes(estimate: MemoryEstimate) -> dict[tuple[str, str], float]:
    """Return the GiB of each model at each GPU and in the host."""
    found: dict[tuple[str, str], float] = {}
    for part in estimate.parts:
        if part.model:
            key = (part.place, part.model)
            found[key] = round(found.get(key, 0) + part.size / GIB, 2)
    return found
