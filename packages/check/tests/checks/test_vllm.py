"""Which engine arguments the check of a vLLM model reports for which image."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from check_examples.generation import HUB, vllm
from check_examples.repositories import write

from constructs_triton_core.findings import Finding
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository


@pytest.mark.parametrize(
    ("image", "reported", "unknown"),
    [
        ("25.03", 0, ["max_modle_len"]),
        ("26.04", 2, []),
        ("26.12", 0, ["disable_log_requests", "max_modle_len"]),
    ],
)
def test_arguments_of_other_releases_are_unknown(
    image: str, reported: int, unknown: list[str], tmp_path: Path
) -> None:
    """A name that no table has is reported for releases of the tables, and unknown for others."""
    arguments = {**HUB, "disable_log_requests": True, "max_modle_len": 4096}
    target = Target.named("server", image_version=image)
    repository = ModelRepository.from_directory(write(vllm(arguments), tmp_path))
    report = repository.check(target, is_packed=False)
    codes = [each.code for each in report.findings if each.code.startswith("vllm")]
    assert codes == ["vllm-engine-argument"] * reported
    lines = [each for each in report.not_checked if "has the argument" in each]
    assert [each.split('"')[1] for each in lines] == unknown


def _weighed(folder: Path, name: str, share: float, data_type: str = "BF16") -> None:
    """Write a vLLM model with 30 GiB of weights, whose content takes no disk."""
    weights = folder / name / "1" / "weights"
    weights.mkdir(parents=True)
    size = 30 << 30
    header = {"w": {"dtype": data_type, "shape": [size], "data_offsets": [0, size]}}
    text = json.dumps(header).encode()
    with (weights / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + size)
    arguments = {"model": f"/models/{name}/1/weights", "gpu_memory_utilization": share}
    (folder / name / "1" / "model.json").write_text(json.dumps(arguments))
    group = "instance_group [ { count: 1 kind: KIND_MODEL } ]\n"
    (folder / name / "config.pbtxt").write_text(f'backend: "vllm"\n{group}')


def _memory_findings(folder: Path, gpu_memory_mib: int) -> list[Finding]:
    target = Target.named("server", gpu_count=1, gpu_memory_mib=gpu_memory_mib)
    report = ModelRepository.from_directory(folder).check(target, is_packed=False)
    return [each for each in report.findings if "memory" in each.code]


@pytest.mark.parametrize(
    ("data_type", "share", "reported"),
    [
        ("BF16", 0.9, ["vllm-weights-memory"]),
        ("F32", 0.9, []),
        ("F32", 0.4, ["vllm-weights-memory"]),
    ],
)
def test_a_share_must_hold_the_weights(
    data_type: str, share: float, reported: list[str], tmp_path: Path
) -> None:
    """FP32 files take half of their size on the GPU, since vLLM makes 16-bit weights of them."""
    _weighed(tmp_path, "m", share, data_type)
    findings = _memory_findings(tmp_path, 31 << 10)
    assert [each.code for each in findings] == reported


def test_shares_of_one_gpu_are_reported_with_their_models(tmp_path: Path) -> None:
    """The warning has what each engine reserves, and how to make the shares fit."""
    for name in ("a", "b"):
        _weighed(tmp_path, name, 0.6)
    (finding,) = _memory_findings(tmp_path, 80 << 10)
    assert finding.code == "target-gpu-memory"
    for name in ("a", "b"):
        assert f"{name}: reserves 60 percent of the GPU 48.0 GiB" in finding.message
    assert finding.hint.startswith('lower gpu_memory_utilization in model.json of "a" and "b"')
