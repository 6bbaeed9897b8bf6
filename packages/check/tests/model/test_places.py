"""The file and the range that each finding points to."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_examples import EXAMPLES, Files, write
from check_examples.onnx_models import relu
from check_examples.places import misplaced

from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository

PYTHON = """input [{ name: "x" data_type: TYPE_FP32 dims: [1] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [1] }]
"""


@pytest.mark.parametrize("key", sorted(EXAMPLES))
def test_finding_of_every_rule_has_a_place_in_a_file(key: str, tmp_path: Path) -> None:
    """The place of every finding is within the text of a file that exists."""
    example = EXAMPLES[key]
    root = write(example.failing, tmp_path / "models")
    report = ModelRepository.from_directory(root).check(example.target, is_packed=False)
    assert report.findings
    assert misplaced(report, root) == []


@pytest.mark.parametrize(
    ("files", "code", "shown"),
    [
        # A value in config.pbtxt, and a block up to its end.
        (
            {
                "m/config.pbtxt": 'backend: "onnxruntime"\nmax_batch_size: -1  # no\n',
                "m/1/model.onnx": relu(),
            },
            "backend-max-batch-size",
            "max_batch_size: -1",
        ),
        # What the parser does not read.
        ({"m/config.pbtxt": "max_batchsize: 8\n"}, "text-unknown-field", "max_batchsize"),
        ({"m/config.pbtxt": "input { data_type: FP32 }\n"}, "text-enum", "FP32"),
        # A line of Python without its indentation.
        (
            {
                "m/config.pbtxt": f'backend: "python"\n{PYTHON}',
                "m/1/model.py": (
                    "class TritonPythonModel:\n    def execute(self, _):\n        return\n"
                ),
            },
            "python-execute-returns-none",
            "return",
        ),
        # The parameter that is wrong, and not the first one.
        (
            {
                "m/config.pbtxt": 'backend: "tensorrtllm"\n'
                'parameters { key: "gpt_model_type" value { string_value: "inflight" } }\n'
                'parameters { key: "gpt_model_path" value { string_value: "${engine_dir}" } }\n'
            },
            "tensorrt-llm-placeholder",
            'parameters { key: "gpt_model_path" value { string_value: "${engine_dir}" } }',
        ),
    ],
    ids=["field", "name", "enum", "python", "parameter"],
)
def test_range_is_what_is_wrong(files: Files, code: str, shown: str, tmp_path: Path) -> None:
    """The range of a finding is the text that has to change."""
    report = ModelRepository.from_directory(write(files, tmp_path)).check(is_packed=False)
    (place,) = [each.place for each in report.findings if each.code == code]
    assert place is not None
    lines = (tmp_path / place.file).read_text(encoding="utf-8").split("\n")
    assert place.line == place.end_line
    assert lines[place.line - 1][place.column - 1 : place.end_column - 1] == shown


@pytest.mark.parametrize(
    ("files", "file"),
    [
        ({"m/config.pbtxt": 'backend: "onnxruntime"\n', "m/1/.gitkeep": ""}, "m/config.pbtxt"),
        ({"m/1/model.onnx": b"no", "m/readme.md": ""}, "m/readme.md"),
        ({"README.md": ""}, "README.md"),
        ({}, "config.pbtxt"),
    ],
    ids=["configuration", "first file", "repository", "nothing"],
)
def test_finding_without_a_line_is_shown_in_the_nearest_file(
    files: Files, file: str, tmp_path: Path
) -> None:
    """A model stands for its folder, a repository for its first file; without any file,
    the name is fixed.
    """
    root = write(files, tmp_path / "models")
    root.mkdir(exist_ok=True)
    report = ModelRepository.from_directory(root).check(Target(), is_packed=False)
    assert {each.place.file for each in report.findings if each.place and each.line is None} == {
        file
    }
