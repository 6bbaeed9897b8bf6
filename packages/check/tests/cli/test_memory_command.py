"""``triton-model-check memory``: a table, JSON and an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from triton_model_check.cli import main

ENSEMBLE = """platform: "ensemble"
input { name: "x" data_type: TYPE_FP32 dims: 4 }
output { name: "y" data_type: TYPE_FP32 dims: 4 }
ensemble_scheduling { step { model_name: "a_step" model_version: -1
  input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } }
"""
MACHINE = ("--gpus", "1", "--gpu-memory", "22888", "--memory", "16g")


def _plan(folder: Path, name: str, mib: int) -> None:
    version = folder / name / "1"
    version.mkdir(parents=True)
    with (version / "model.plan").open("wb") as file:
        file.truncate(mib * 2**20)
    (folder / name / "config.pbtxt").write_text('backend: "tensorrt"\n')


def _memory(folder: Path, *options: str) -> int:
    return main(["memory", str(folder), *options])


@pytest.mark.parametrize(("second", "code"), [(12_000, 0), (13_000, 1)])
def test_sum_of_a_server_decides(
    second: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All models of a server count together, and more than there is is exit code 1."""
    _plan(tmp_path, "a", 10_000)
    _plan(tmp_path, "b", second)
    assert _memory(tmp_path, *MACHINE) == code
    (line,) = (line for line in capsys.readouterr().out.splitlines() if " sum " in line)
    assert "of 22.4 GiB" in line


def test_arguments_of_the_server_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pool that is larger than the memory of the host is exit code 1."""
    _plan(tmp_path, "a", 10)
    assert _memory(tmp_path, *MACHINE) == 0
    pool = "--pinned-memory-pool-byte-size=17179869184"
    assert _memory(tmp_path, *MACHINE, f"--server-arguments={pool}") == 1
    assert "process and pinned pool  16.2 GiB" in capsys.readouterr().out


def test_json_has_each_part_with_its_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The numbers are bytes, and each names the entry of ``memory.json`` that it comes from."""
    _plan(tmp_path, "a", 10)
    assert _memory(tmp_path, *MACHINE, "--json") == 0
    (estimate,) = json.loads(capsys.readouterr().out)["estimates"]
    (part,) = (part for part in estimate["parts"] if part["model"] == "a")
    assert part["size"] == 10 * 2**20
    assert part["source"] == "sharing.tensorrt"


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((4_000, 4_000), "all 2 archives stay loaded"),
        ((4_000, 9_000, 14_000), "1 to 2 of 3 archives stay loaded at once"),
        ((8_000, 8_000, 8_000), "2 of 3 archives stay loaded at once"),
    ],
)
def test_archives_that_stay_loaded(
    sizes: tuple[int, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a multi-model endpoint it says how many archives fit at once: fewest if the largest are
    called, most if the smallest are.
    """
    for number, size in enumerate(sizes):
        _plan(tmp_path, f"m{number}", size)
    options = ("--target", "sagemaker-multi-model", "--instance-type", "ml.g5.xlarge")
    assert _memory(tmp_path, *options) == 0
    assert f"GPU 0: {said}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sizes", "code", "is_loaded"),
    [
        ((30_000, 40_000), 1, False),
        ((8_000, 40_000), 1, True),
        ((8_000, 8_000, 8_000), 0, True),
    ],
)
def test_call_loads_no_archive_that_fits_nowhere(
    sizes: tuple[int, ...],
    code: int,
    is_loaded: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where each archive alone exceeds the GPU, a call loads none, and the line says so."""
    for number, size in enumerate(sizes):
        _plan(tmp_path, f"m{number}", size)
    options = ("--target", "sagemaker-multi-model", "--instance-type", "ml.g5.xlarge")
    assert _memory(tmp_path, *options) == code
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "archives" in line)
    assert ("a call of another one loads it" in line) is is_loaded
    assert ("its load is expected to fail" in line) is not is_loaded


@pytest.mark.parametrize(
    ("limit", "code", "said"),
    [
        ("0.9", 0, "2 of 3 archives stay loaded at once"),
        ("0.7", 0, "1 of 3 archives stay loaded at once"),
        ("0.3", 1, "0 of 3 archives stay loaded at once"),
    ],
)
def test_load_limit_of_the_server_leaves_less(
    limit: str, code: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server's ``--model-load-gpu-limit`` counts what is used after a load, so it is what
    archives may take together; it says that such a load is not answered with status 507.
    """
    for number in range(3):
        _plan(tmp_path, f"m{number}", 8_000)
    options = ("--target", "sagemaker-multi-model", "--instance-type", "ml.g5.xlarge")
    assert _memory(tmp_path, *options, "--model-load-gpu-limit", limit) == code
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "archives" in line)
    assert said in line
    assert f"exceeds model_load_gpu_limit {limit} with status 400" in line


def test_archive_is_named_after_its_ensemble(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first model of an archive's estimate is the one that callers name, not a step."""
    _plan(tmp_path, "a_step", 10)
    _plan(tmp_path, "other", 10)
    (tmp_path / "pipeline" / "1").mkdir(parents=True)
    (tmp_path / "pipeline" / "config.pbtxt").write_text(ENSEMBLE)
    options = ("--target", "sagemaker-multi-model", "--instance-type", "ml.g5.xlarge", "--json")
    assert _memory(tmp_path, *options) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [each["models"] for each in answer["estimates"]] == [["other"], ["pipeline", "a_step"]]
    (room,) = (each for each in answer["loaded_at_once"] if each["place"] == "GPU 0")
    assert (room["archives"], room["fewest"], room["most"]) == (2, 2, 2)


def test_what_is_not_counted_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model whose memory its files do not say is listed with the reason, without a table."""
    _plan(tmp_path, "m", 10)
    groups = "instance_group { kind: KIND_MODEL }\n"
    (tmp_path / "m" / "config.pbtxt").write_text(f'backend: "tensorrt"\n{groups}')
    assert _memory(tmp_path, *MACHINE) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "m: KIND_MODEL: the model chooses where it runs" in printed.err


def test_unknown_number_of_gpus_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the machine there is nothing to compare with; the message names the options."""
    _plan(tmp_path, "a", 10)
    assert _memory(tmp_path) == 2
    assert "add --instance-type, or --gpus with --gpu-memory" in capsys.readouterr().err
