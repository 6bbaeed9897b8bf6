"""What the sum says of engines of vLLM: the share that each reserves, and its weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engines import memory, safetensors, sizes, vllm

from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

HUB = "meta-llama/Llama-3.2-3B"
NAMES = (
    "block_size",
    "convert",
    "cpu_offload_gb",
    "data_parallel_size",
    "download_dir",
    "dtype",
    "gpu_memory_utilization",
    "kv_cache_dtype",
    "kv_cache_memory_bytes",
    "load_format",
    "max_model_len",
    "model",
    "num_gpu_blocks_override",
    "pipeline_parallel_size",
    "quantization",
    "runner",
    "task",
    "tensor_parallel_size",
)
"""The engine arguments that are read."""


def _weights(folder: Path, **types: float) -> None:
    safetensors(folder / "model.safetensors", **types)
    config = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 32}
    config |= {"num_attention_heads": 32, "hidden_size": 4096, "max_position_embeddings": 4096}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(("share", "exceeded"), [(0.9, ("GPU 0",)), (0.47, ()), (0.5, ("GPU 0",))])
def test_two_engines_must_share_a_gpu(
    share: float, exceeded: tuple[str, ...], tmp_path: Path
) -> None:
    """The shares of all engines of a GPU count together, wherever their weights are."""
    for name in ("a", "b"):
        vllm(tmp_path / name, {"model": HUB, "gpu_memory_utilization": share})
    estimate = memory(tmp_path)
    assert estimate.exceeded == exceeded
    assert sizes(estimate) == {("GPU 0", name): round(share * 24, 2) for name in ("a", "b")}


def test_default_share_counts(tmp_path: Path) -> None:
    """Without ``gpu_memory_utilization``, an engine reserves vLLM's default."""
    vllm(tmp_path / "a", {"model": HUB})
    vllm(tmp_path / "b", {"model": HUB, "gpu_memory_utilization": 0.2})
    assert memory(tmp_path).exceeded == ("GPU 0",)


def test_name_on_a_hub_is_named(tmp_path: Path) -> None:
    """The weights of a model on a hub are unknown, so that only its share counts."""
    vllm(tmp_path / "a", {"model": HUB})
    (line,) = memory(tmp_path).not_counted
    assert line.startswith("a: whether it holds its weights")
    assert HUB in line
    (line,) = memory(tmp_path, gpu_mib=None).not_counted
    assert line == f'a: the weights of "{HUB}" are not safetensors in the repository'


@pytest.mark.parametrize(
    ("image", "group", "expected"),
    [
        ("25.04", "kind: KIND_GPU gpus: [ 1 ]", {"GPU 1": 9.6}),
        (None, "kind: KIND_GPU gpus: [ 1 ]", {"GPU 1": 9.6}),
        ("25.03", "kind: KIND_GPU gpus: [ 1 ]", {"GPU 0": 9.6}),
        ("25.03", "kind: KIND_GPU", {"GPU 0": 19.2}),
        ("25.04", "kind: KIND_GPU", {"GPU 0": 9.6, "GPU 1": 9.6}),
    ],
)
def test_instance_of_kind_gpu_runs_on_its_gpu(
    image: str | None, group: str, expected: dict[str, float], tmp_path: Path
) -> None:
    """Before 25.04 every instance runs on GPU 0 (vllm_backend pull 85)."""
    vllm(tmp_path / "a", {"model": HUB, "gpu_memory_utilization": 0.4}, group)
    found = sizes(memory(tmp_path, 2, image))
    assert found == {(place, "a"): gib for place, gib in expected.items()}


def test_engine_without_a_gpu_is_named(tmp_path: Path) -> None:
    """What vLLM takes of the host is not known."""
    vllm(tmp_path / "a", {"model": HUB, "kv_cache_memory_bytes": 2**30})
    estimate = memory(tmp_path, 0)
    assert sizes(estimate) == {}
    assert "a: vLLM without a GPU" in estimate.not_counted


def test_instances_of_kind_model_run_on_the_first_gpu(tmp_path: Path) -> None:
    """Each instance is an engine, and all begin at GPU 0 (server issue 6855)."""
    vllm(
        tmp_path / "a",
        {"model": HUB, "gpu_memory_utilization": 0.4},
        "count: 4 kind: KIND_MODEL",
    )
    estimate = memory(tmp_path, 4)
    assert sizes(estimate) == {("GPU 0", "a"): 38.4}
    assert estimate.exceeded == ("GPU 0",)


@pytest.mark.parametrize(
    ("arguments", "gib"),
    [
        ({}, 21.6),
        ({"gpu_memory_utilization": 0.1}, 4.0),
        ({"gpu_memory_utilization": 0.1, "dtype": "float32"}, 8.0),
        ({"gpu_memory_utilization": 0.1, "cpu_offload_gb": 1}, 3.0),
        ({"kv_cache_memory_bytes": 2**31}, 6.0),
        ({"num_gpu_blocks_override": 1024}, 12.0),
        ({"num_gpu_blocks_override": 1024, "kv_cache_dtype": "fp8"}, 8.0),
        ({"task": "embed"}, 4.0),
        ({"runner": "pooling"}, 4.0),
        ({"quantization": "fp8"}, 21.6),
    ],
)
def test_arguments_change_what_an_engine_takes(
    arguments: dict[str, Any], gib: float, tmp_path: Path
) -> None:
    """Weights of 4 GiB with 16 bits, whose cache takes 512 KiB a token, with each argument."""
    place = "/models/a/1/weights"
    _weights(vllm(tmp_path / "a", {"model": place, **arguments}), BF16=3, F32=2)
    assert sizes(memory(tmp_path)) == {("GPU 0", "a"): gib}


def test_weights_are_divided_among_gpus(tmp_path: Path) -> None:
    """Each GPU of ``tensor_parallel_size`` has its part, from GPU 0 on."""
    arguments = {"model": "/models/a/1/weights", "tensor_parallel_size": 2, "task": "embed"}
    _weights(vllm(tmp_path / "a", arguments), BF16=8)
    assert sizes(memory(tmp_path, 3)) == {("GPU 0", "a"): 4.0, ("GPU 1", "a"): 4.0}


def test_weights_that_vllm_quantizes_are_named(tmp_path: Path) -> None:
    """Quantization at load changes the weights; those that the files have are known."""
    arguments = {"model": "/models/a/1/weights", "quantization": "fp8", "task": "embed"}
    weights = vllm(tmp_path / "a", arguments)
    _weights(weights, BF16=8)
    estimate = memory(tmp_path)
    assert sizes(estimate) == {}
    assert estimate.not_counted == (
        "a: vLLM quantizes its weights, or reads another format than safetensors",
    )

    config = json.loads((weights / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "fp8"}
    (weights / "config.json").write_text(json.dumps(config))
    assert sizes(memory(tmp_path)) == {("GPU 0", "a"): 8.0}


def test_folder_elsewhere_is_not_read(tmp_path: Path) -> None:
    """A path is followed below the name of the model only, and not out of its folder."""
    safetensors(tmp_path / "outside" / "model.safetensors", BF16=1)
    repository = tmp_path / "models"
    (repository / "a").mkdir(parents=True)
    (repository / "a" / "link").symlink_to(tmp_path / "outside")
    outside = str(tmp_path / "outside")
    for place in (outside, "/models/a/../../outside", "../outside", "/models/a/link", "/a/\0"):
        vllm(repository / "a", {"model": place})
        (line,) = memory(repository).not_counted
        assert "not safetensors in the repository" in line


def test_cache_of_a_hub_in_the_folder_of_the_model_is_read(tmp_path: Path) -> None:
    """``download_dir`` has the weights of a model on a hub, by revision."""
    arguments = {"model": HUB, "download_dir": "/models/a/cache", "task": "embed"}
    vllm(tmp_path / "a", arguments)
    snapshots = tmp_path / "a" / "cache" / f"models--{HUB.replace('/', '--')}" / "snapshots"
    _weights(snapshots / "13afe5124825b4f3751f836b40dafda64c1ed062", BF16=6)
    assert sizes(memory(tmp_path)) == {("GPU 0", "a"): 6.0}


@pytest.mark.parametrize("value", [[], {}, "x", True, None, -1, 10**300, 1e300, 0.5])
def test_absurd_arguments_are_ignored(value: object, tmp_path: Path) -> None:
    """No value of ``model.json`` stops the calculation, and none gives an absurd size."""
    for name in NAMES:
        arguments = {"model": "/models/a/1/weights", name: value}
        _weights(vllm(tmp_path / "a", arguments), BF16=3)
        estimate = memory(tmp_path)
        assert estimate.total("GPU 0") < 2**40
        target = Target.named("server", gpu_count=1, gpu_memory_mib=4096)
        ModelRepository.from_directory(tmp_path).check(target, is_packed=False)
