"""Public systems and their recorded memory: whole, from enough repositories, and without a wrong
warning.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "dev" / "memory_repositories"
SYSTEMS: list[dict[str, Any]] = tomllib.loads((FOLDER / "repositories.toml").read_text("utf-8"))[
    "system"
]
RESULTS: dict[str, dict[str, Any]] = json.loads((FOLDER / "results.json").read_text("utf-8"))
MIB = 2**20


def test_every_system_is_recorded_without_a_wrong_warning() -> None:
    """Each system has a result, whose warnings are those that the description calls right."""
    assert len(RESULTS) == len(SYSTEMS)
    assert all(result["as_expected"] for result in RESULTS.values())


def test_twenty_repositories_name_their_machine() -> None:
    """At least twenty repositories are recorded at a commit, with where the machine stands."""
    public = [system for system in SYSTEMS if "repository" in system]
    assert len({system["repository"] for system in public}) >= 20
    assert all(re.fullmatch("[0-9a-f]{40}", system["commit"]) for system in public)
    assert all(system["said"] and system["machine"] for system in SYSTEMS)
    assert all(system["right"] for system in SYSTEMS if "expected" in system)


@pytest.mark.parametrize("name", ["model.onnx", "model.plan", "model.pt"])
def test_a_stand_in_counts_with_its_size(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checker counts a stand-in with the size that it stands for, and it takes no disk."""
    monkeypatch.syspath_prepend(str(PROJECT / "dev"))
    monkeypatch.delitem(sys.modules, "memory_repositories", raising=False)
    from memory_repositories.stand_ins import write_weights

    from triton_model_check.memory.weights import weight_bytes
    from triton_model_check.model_files.description import describe

    mebibytes = 1000
    write_weights(tmp_path / name, mebibytes)
    described = describe(tmp_path / name)
    assert weight_bytes(described) == pytest.approx(mebibytes * MIB, abs=MIB)
    assert (tmp_path / name).stat().st_blocks * 512 < MIB
