"""What a search prepares before it measures."""

from __future__ import annotations

from pathlib import Path

import pytest
from tuned_models import write_ensemble, write_model

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.tuning.candidates import ModelSettings
from constructs_triton_tools.measuring.tuning.preparation import (
    Machine,
    draw_requests,
    find_only_model,
    find_spaces,
)
from triton_model_check.model_repository import ModelRepository

MACHINE = Machine(4, "a CPU", ())


def test_every_step_of_an_ensemble_is_searched(tmp_path: Path) -> None:
    """Each step has settings and limits, and its batches are at least those
    that the ensemble allows.
    """
    write_ensemble(tmp_path / "models")
    found = ModelRepository.from_directory(tmp_path / "models")
    assert find_only_model(found) == "chain"
    repository, spaces = find_spaces(found, "chain", MACHINE, latency_ms=100, parameters={})
    assert dict(repository.present.models) == dict.fromkeys(
        ["first", "last", "slow"], ModelSettings()
    )
    assert {space.least_batch for space in spaces.values()} == {64}
    assert {space.most_instances for space in spaces.values()} == {4}


def test_drawn_requests_are_distinct_and_repeat_with_the_seed(tmp_path: Path) -> None:
    """There are 32 distinct requests; the same seed gives the same, another one others."""
    write_model(tmp_path / "models", "device")
    found = ModelRepository.from_directory(tmp_path / "models")
    first, again, other = (
        [each.body for each in draw_requests(found, "m", seed, {})] for seed in (0, 0, 100)
    )
    assert len({*first}) == 32
    assert first == again
    assert not {*first} & {*other}


def test_repository_without_a_top_level_model_is_an_error(tmp_path: Path) -> None:
    """An empty repository is an error that says how many models were found."""
    with pytest.raises(InvalidValueError, match="has 0 top-level models"):
        find_only_model(ModelRepository.from_directory(tmp_path))
