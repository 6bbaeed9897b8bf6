"""Which placeholders of NVIDIA's TensorRT-LLM templates have to be filled in."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_examples.repositories import write

from triton_model_check.model_repository import ModelRepository


def _parameter(key: str, value: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'


@pytest.mark.parametrize(
    ("backend", "type_", "reported"),
    [
        ("tensorrtllm", "inflight_batching", "gpt_model_path"),
        ("python", "inflight_batching", "gpt_model_path"),
        ("python", "", "tokenizer_dir"),
    ],
    ids=["engine", "engine in Python", "preprocessing"],
)
def test_only_the_folders_that_a_model_always_reads(
    backend: str, type_: str, reported: str, tmp_path: Path
) -> None:
    """A folder that only images or guided decoding need may keep its placeholder."""
    config = f'backend: "{backend}"\n' + _parameter("gpt_model_path", "${engine_dir}")
    config += _parameter("tokenizer_dir", "${tokenizer_dir}")
    config += _parameter("gpt_model_type", type_) if type_ else ""
    files = {"engine/config.pbtxt": 'backend: "tensorrtllm"\n', "m/config.pbtxt": config}
    report = ModelRepository.from_directory(write(files, tmp_path)).check(is_packed=False)
    found = [each for each in report.findings if each.code == "tensorrt-llm-placeholder"]
    assert [each.message.split()[0] for each in found] == [reported]


@pytest.mark.parametrize("tokenizer", ["", _parameter("tokenizer_dir", "/models/tokenizer")])
def test_encoders_of_images_need_their_folder(tokenizer: str, tmp_path: Path) -> None:
    """The model of the encoders opens its folder; the one with the tokenizer does without it."""
    config = 'backend: "python"\n' + tokenizer
    config += _parameter("multimodal_model_path", "${multimodal_model_path}")
    config += _parameter("hf_model_path", "${hf_model_path}")
    files = {"engine/config.pbtxt": 'backend: "tensorrtllm"\n', "m/config.pbtxt": config}
    report = ModelRepository.from_directory(write(files, tmp_path)).check(is_packed=False)
    found = [each for each in report.findings if each.code == "tensorrt-llm-placeholder"]
    wanted = [] if tokenizer else ["multimodal_model_path"]
    assert [each.message.split()[0] for each in found] == wanted
