"""Which engine arguments the check of a vLLM model reports for which image."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_examples.generation import HUB, vllm
from check_examples.repositories import write

from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository


@pytest.mark.parametrize(
    ("image", "reported"),
    [("25.03", ["vllm-engine-argument"]), ("26.04", ["vllm-engine-argument"] * 2)],
)
def test_an_image_with_an_older_vllm_may_have_former_arguments(
    image: str, reported: list[str], tmp_path: Path
) -> None:
    """A removed argument is reported only for images whose vLLM no longer has it."""
    arguments = {**HUB, "disable_log_requests": True, "max_modle_len": 4096}
    target = Target.named("server", image_version=image)
    repository = ModelRepository.from_directory(write(vllm(arguments), tmp_path))
    report = repository.check(target, is_packed=False)
    assert [each.code for each in report.findings] == reported
