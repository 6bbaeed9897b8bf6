"""Which engine arguments the check of a vLLM model reports for which image."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_examples.generation import HUB, vllm
from check_examples.repositories import write

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
