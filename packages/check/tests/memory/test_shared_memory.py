"""What the checks and the command say of Python models that do not fit into ``/dev/shm``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from triton_model_check.cli import main
from triton_model_check.memory.shared_memory import Region
from triton_model_check.model_config.target import Platform, Target
from triton_model_check.model_repository import ModelRepository

MIB = 2**20
CODE = """import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        {line}
        return [pb_utils.InferenceResponse([]) for _ in requests]
"""
RULES = ("server-shm-size", "server-shm-calls", "target-shared-memory")


def _model(folder: Path, config: str = "", *, line: str = "pass", tensor: str = "1") -> Path:
    """Write a Python model whose input and output have ``tensor`` as dims, of one byte each."""
    version = folder / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(CODE.format(line=line))
    (folder / "config.pbtxt").write_text(
        f'backend: "python"\n'
        f'input {{ name: "x" data_type: TYPE_UINT8 dims: [ {tensor} ] }}\n'
        f'output {{ name: "y" data_type: TYPE_UINT8 dims: [ {tensor} ] }}\n{config}'
    )
    return folder.parent


def _found(models: Path, platform: Platform = "docker", **known: Any) -> dict[str, str]:
    target = Target.named(platform, **known)
    report = ModelRepository.from_directory(models).check(target, is_packed=False)
    return {each.code: each.message for each in report.findings if each.code in RULES}


@pytest.mark.parametrize(
    ("version", "is_sagemaker", "given", "expected"),
    [
        ("21.03", False, {}, Region(0, 64 * MIB)),
        ("21.04", False, {}, Region(64 * MIB, 64 * MIB)),
        ("23.08", False, {}, Region(64 * MIB, 64 * MIB)),
        ("23.09", False, {}, Region(MIB, MIB)),
        ("23.09", False, {"first": 16 * MIB}, Region(16 * MIB, MIB)),
        ("21.08", True, {}, Region(64 * MIB, 64 * MIB)),
        ("22.05", True, {}, Region(16 * MIB, MIB)),
        (None, True, {}, Region(16 * MIB, MIB)),
        (None, False, {}, None),
    ],
)
def test_region_is_that_of_the_release_and_the_start_script(
    version: str | None, is_sagemaker: bool, given: dict[str, int], expected: Region | None
) -> None:
    """The sizes are those of python_backend's branches; an unknown release has an unknown size."""
    assert Region.of(version, is_sagemaker=is_sagemaker, **given) == expected


@pytest.mark.parametrize(
    ("call_mib", "grown_mib"), [(0, 16), (15, 16), (16, 17), (17, 18), (64, 65)]
)
def test_region_grows_in_steps_to_the_tensors_of_a_call(call_mib: int, grown_mib: int) -> None:
    """The queues are in the region too, so a call as large as the region does not fit."""
    assert Region(16 * MIB, MIB).after(call_mib * MIB) == grown_mib * MIB


@pytest.mark.parametrize(("mebibytes", "fits"), [(9, True), (8, False)])
def test_largest_call_of_every_instance_counts(mebibytes: int, fits: bool, tmp_path: Path) -> None:
    """Three regions grow to a batch of 4 with its inputs and outputs: 3 MiB each."""
    size = MIB // 4
    group = "max_batch_size: 4\ninstance_group { count: 3 kind: KIND_CPU }\n"
    models = _model(tmp_path / "m", group, tensor=str(size))
    found = _found(models, shm_bytes=mebibytes * MIB, image_version="24.10")
    assert found == (
        {}
        if fits
        else {
            "server-shm-calls": "with their largest calls, the models need at least 9 MiB of "
            "/dev/shm, which has 8 MiB: m: calls of batch 4, 3 instances 6 MiB; "
            "m: region of 3 instances 3 MiB"
        }
    )


@pytest.mark.parametrize(
    ("config", "line", "counts_outputs"),
    [
        ("", "pass", True),
        ("", "pb_utils.Tensor.from_dlpack('y', requests)", False),
        ("", "pb_utils.InferenceRequest(model_name='n').exec()", False),
        ("instance_group { kind: KIND_CPU }", "pb_utils.Tensor.from_dlpack('y', 0)", True),
        ("model_transaction_policy { decoupled: true }", "pass", False),
    ],
)
def test_outputs_count_where_they_are_certain(
    config: str, line: str, counts_outputs: bool, tmp_path: Path
) -> None:
    """An output that may stay on the GPU, or that comes in parts, is named and not counted."""
    models = _model(tmp_path / "m", config, line=line, tensor=str(40 * MIB))
    target = Target.named("docker", image_version="24.10", gpu_count=1)
    (estimate,) = ModelRepository.from_directory(models).memory(target)
    assert estimate.total("/dev/shm") == (81 if counts_outputs else 41) * MIB
    is_named = any("its outputs" in line for line in estimate.shared_not_counted)
    assert is_named is not counts_outputs


def test_model_without_groups_has_a_region_for_each_gpu(tmp_path: Path) -> None:
    """Two GPUs need two regions of 64 MiB, as in triton server issue 6195."""
    models = _model(tmp_path / "m")
    assert not _found(models, image_version="23.06", gpu_count=1)
    assert list(_found(models, image_version="23.06", gpu_count=2)) == ["server-shm-size"]


def test_release_before_shared_memory_needs_none(tmp_path: Path) -> None:
    """Python models of 21.03 and older exchange tensors without ``/dev/shm``."""
    models = _model(tmp_path / "m", "instance_group { count: 9 kind: KIND_CPU }")
    assert not _found(models, image_version="21.03")


def test_options_of_the_backend_count_on_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--shm-default-byte-size`` and ``--shm-growth-byte-size`` are those of the server."""
    models = _model(tmp_path / "m", tensor=str(40 * MIB))
    options = ("--shm-default-byte-size", "16m", "--shm-growth-byte-size", "100m")
    assert main(["memory", str(models), "--shm-size", "64m", *options, "--json"]) == 1
    (estimate,) = json.loads(capsys.readouterr().out)["estimates"]
    assert [part["size"] // MIB for part in estimate["parts"]] == [16, 100]


@pytest.mark.parametrize(("size", "code"), [("8m", 0), ("7m", 1)])
def test_command_counts_shared_memory_without_gpus(
    size: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``memory --shm-size`` alone prints the regions, and names what it does not count."""
    models = _model(tmp_path / "m", "instance_group { count: 8 kind: KIND_CPU }", tensor="-1")
    assert main(["memory", str(models), "--shm-size", size]) == code
    output = capsys.readouterr()
    assert "region of 8 instances" in output.out
    assert "m: variable dimensions beyond 1" in output.err
    assert "only /dev/shm is counted; add --gpus N" in output.err


def test_archives_share_the_shared_memory_of_an_endpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A multi-model endpoint has room for some of its archives in ``/dev/shm`` too."""
    for name in "abc":
        models = _model(tmp_path / name, tensor=str(10 * MIB))
    options = ["--target", "sagemaker-multi-model", "--gpus", "0", "--shm-size", "48m"]
    assert main(["memory", str(models), *options]) == 0
    assert "/dev/shm: 2 of 3 archives stay loaded at once, together they need 63 MiB of 48 MiB" in (
        " ".join(capsys.readouterr().err.split())
    )
    found = _found(models, "sagemaker-multi-model", shm_bytes=48 * MIB)
    assert found["target-shared-memory"].startswith(
        "the models need at least 63 MiB of /dev/shm, which has 48 MiB: a: region 16 MiB"
    )


@pytest.mark.parametrize(("declared", "total"), [("shm_mib = 30", 62), ("host_mib = 9", 2)])
def test_declared_calls_take_the_place_of_tensors(
    declared: str, total: int, tmp_path: Path
) -> None:
    """``shm_mib`` is what the largest call of each instance takes; nothing is left uncounted."""
    models = _model(tmp_path / "m", "instance_group { count: 2 kind: KIND_CPU }", tensor="-1")
    (models / "triton-models.toml").write_text(f"[memory]\nm = {{ {declared} }}\n")
    target = Target.named("docker", image_version="24.10", gpu_count=0)
    (estimate,) = ModelRepository.from_directory(models).memory(target)
    assert estimate.total("/dev/shm") == total * MIB
    assert bool(estimate.shared_not_counted) == (total == 2)
    counts_process = any("process" in part.what for part in estimate.parts if part.model)
    assert counts_process == (total == 62)


@pytest.mark.parametrize(("gib", "fits"), [(1.5, True), (1.25, False)])
def test_shared_memory_is_memory_of_the_host(gib: float, fits: bool, tmp_path: Path) -> None:
    """Seventeen regions of 64 MiB fill memory of the machine, beside their processes."""
    models = _model(tmp_path / "m", "instance_group { count: 17 kind: KIND_CPU }")
    target = Target.named(
        "docker", memory_gib=gib, image_version="23.05", gpu_count=0, shm_bytes=2048 * MIB
    )
    report = ModelRepository.from_directory(models).check(target, is_packed=False)
    found = [each.message for each in report.findings if each.code == "target-memory"]
    assert bool(found) is not fits
    assert all("m: in /dev/shm: region of 17 instances 1.1 GiB" in each for each in found)
