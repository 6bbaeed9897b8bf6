"""The real server's verdict on the examples of what a Python model does when it loads."""

from __future__ import annotations

import shutil
from pathlib import Path

from check_examples import write
from check_examples.python_contract import LOADING
from triton_server import needs_server

from constructs_triton_tools.local.server_check import ask_server

pytestmark = needs_server


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
