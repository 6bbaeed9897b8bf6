"""The real server's verdict on the examples of what a Python model does when it loads."""

from __future__ import annotations

import shutil
from pathlib import Path

from check_examples import write
from check_examples.python_contract import LOADING
from triton_server import needs_server

from constructs_triton_tools.local.server_check import ask_server

pytestmark = needs_server

#: Prints, writes and reads letters that are not ASCII, without naming an encoding.
WRITER = """
import sys
from pathlib import Path
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def initialize(self, args):
        labels = Path(args["model_repository"]) / "labels.txt"
        labels.write_text("s\u00fc\u00df")
        assert labels.read_text() == "s\u00fc\u00df"
        print("\u4f60\u597d", flush=True)
        print("\u4f60\u597d", file=sys.stderr, flush=True)
    def execute(self, requests):
        return []
"""
IDENTITY = """backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


def test_server_refuses_each_failing_twin_and_loads_each_fixed_one(tmp_path: Path) -> None:
    """Every example that a check refuses is refused by the server, and its fixed twin loads."""
    repository = tmp_path / "repository"
    for number, example in enumerate(LOADING.values()):
        for side, files in (("failing", example.failing), ("fixed", example.fixed)):
            written = write(files, tmp_path / f"{side}_{number}")
            shutil.copytree(written / "m", repository / f"{side}_{number}")
    answers = ask_server(repository)
    wanted = {f"failing_{n}": "rejected" for n in range(len(LOADING))}
    wanted |= {f"fixed_{n}": "loads" for n in range(len(LOADING))}
    assert {name: answer.outcome for name, answer in answers.items()} == wanted


def test_text_of_python_models_is_utf8(tmp_path: Path) -> None:
    """Files and the log take letters of every language, as in the images from 24.11 on."""
    files = {"writer/config.pbtxt": IDENTITY, "writer/1/model.py": WRITER}
    answers = ask_server(write(files, tmp_path / "repository"))
    assert answers["writer"].outcome == "loads"
