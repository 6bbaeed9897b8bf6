"""The facts about memory are what the recorded measurements say, and the threads can be rebuilt."""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from triton_model_check.memory.shared_memory import Region

PROJECT = Path(__file__).resolve().parents[2]
RESULTS = json.loads((PROJECT / "dev" / "memory_measure" / "results.json").read_text("utf-8"))
FORMATS = json.loads((PROJECT / "dev" / "memory_measure" / "formats.json").read_text("utf-8"))
FACTS = json.loads(
    (PROJECT / "packages/check/src/triton_model_check/facts/memory.json").read_text("utf-8")
)
THREADS = tomllib.loads((PROJECT / "dev" / "memory_threads" / "threads.toml").read_text("utf-8"))
MIB = 2**20


def test_measured_figures_of_processes_are_those_of_the_recorded_run() -> None:
    """The server, a Python instance and its region have the sizes that the run recorded."""
    empty = RESULTS["python"]["empty, 1 instance"]
    server = RESULTS["server"]["pinned pool of 256 MiB"]["server"]
    assert FACTS["host"]["server_bytes"] == pytest.approx(server["resident"], abs=2 * MIB)
    assert FACTS["host"]["python_instance_bytes"] == pytest.approx(
        empty["stubs"][0]["resident"], abs=2 * MIB
    )
    assert empty["shared_regions"] == [FACTS["shm"]["python_instance_bytes"][-1]["value"]]


@pytest.mark.parametrize("case", RESULTS["shared_memory"], ids=lambda case: case["case"])
def test_shared_memory_is_at_least_what_is_calculated(case: dict[str, Any]) -> None:
    """Regions of a real server are as large or larger, and what is too large for it fails."""
    region = Region(*case["region"])
    start = region.first * case["instances"]
    limit = case["limit"] or math.inf
    assert (case["at the start"] is None) == (start > limit)
    if case["at the start"] is not None:
        assert sum(case["at the start"]) == start

    for call in case["calls"]:
        least = region.after(call["call_bytes"])
        if start - region.first + least > limit:
            assert call["failed"]
        elif not call["failed"]:
            tensor = call["call_bytes"] // 2
            largest = max(each["call_bytes"] for each in case["calls"])
            assert least <= max(call["regions"]) <= region.after(largest) + tensor + region.growth


@pytest.mark.parametrize("count", [2, 8])
def test_equal_calls_grow_the_regions_of_all_instances(count: int) -> None:
    """Calls that come one after the other go to the instances in turn."""
    (case,) = (
        case
        for case in RESULTS["shared_memory"]
        if case["instances"] == count and case["calls"] and case["limit"] is None
    )
    after = case["calls"][count - 1]
    assert min(after["regions"]) >= after["calculated"]


@pytest.mark.parametrize(
    ("version", "place", "factor"),
    [
        ("1.23.0", "internal data", FACTS["host"]["onnx_session_factor"]),
        ("1.19.2", "external data", FACTS["host"]["onnx_session_factor"]),
    ],
)
def test_each_onnx_session_takes_its_measured_factor(
    version: str, place: str, factor: float
) -> None:
    """Two sessions of one file take the weights twice, times the factor of the release."""
    held = RESULTS["onnxruntime"][version][place]["held"]
    added = held[2]["resident"] - held[0]["resident"]
    assert added / RESULTS["onnxruntime"]["weight_bytes"] == pytest.approx(2 * factor, abs=0.05)


@pytest.mark.parametrize("name", [name for name in FORMATS if name.startswith("SavedModel")])
def test_each_session_of_tensorflow_takes_its_variables(name: str) -> None:
    """The first and the second session take all variables, those of an optimizer too."""
    measured = FORMATS[name]
    for session in ("first", "second"):
        assert measured[session] == pytest.approx(measured["variables"], rel=0.1)


@pytest.mark.parametrize("name", [name for name in FORMATS if name.startswith("forest")])
def test_a_forest_takes_the_size_of_its_file_at_least(name: str) -> None:
    """What is counted of a forest is not more than it takes, in each format."""
    assert FORMATS[name]["each"] >= FORMATS[name]["file"]


def test_every_figure_says_how_it_is_known() -> None:
    """Each fact has a source that says measured, read or not settled."""
    words = ("measured:", "read:", "not settled:")
    assert all(text.startswith(words) for text in FACTS["sources"].values())


@pytest.mark.parametrize("thread", THREADS["thread"], ids=lambda thread: thread["id"])
def test_a_thread_is_rebuilt_with_its_sizes(
    thread: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repository of a thread has the sizes that its description gives, and takes no disk."""
    monkeypatch.syspath_prepend(str(PROJECT / "dev"))
    monkeypatch.delitem(sys.modules, "memory_threads", raising=False)
    from memory_threads.building import write_repository

    write_repository(thread, tmp_path)
    files = [path.stat() for path in tmp_path.rglob("*") if path.is_file()]
    wanted = sum(model["size"] * model.get("copies", 1) for model in thread["models"])
    assert sum(file.st_size for file in files) == pytest.approx(wanted * MIB, abs=MIB)
    assert sum(file.st_blocks for file in files) * 512 < 4 * MIB
    assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread["id"])
