"""ONNX cases that can share a server, on the bundled server with the stand-in.

Those that the server's core decides, and each fourth of the others: ``test_onnx_stand_in.py`` of
the tools calls the stand-in with all of them. Each model has a process, which takes a second to
start.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from backports import tarfile
from core_verdicts import REJECTED_BY_THE_CORE
from triton_server import needs_server

from constructs_triton_tools.local.server_check import ask_server

BUDGET_MINUTES = 2
pytestmark = needs_server

ORACLE = Path(__file__).parents[2] / "packages" / "check" / "tests" / "contract" / "oracle_onnx"
VERDICTS: dict[str, dict[str, Any]] = json.loads(
    (ORACLE / "verdicts.json").read_text(encoding="utf-8")
)
OTHERWISE = {
    "bad_auto_state": (
        "implicit state: the stand-in cannot run it, so only its configuration is checked"
    ),
    "bad_ragged_shape": (
        "ragged batches: the stand-in cannot run it, so only its configuration is checked"
    ),
    "bad_state_listed": (
        "implicit state: the stand-in cannot run it, so only its configuration is checked"
    ),
    "bad_platform_tensorrt_onnx_file": "the real server lacked the backend tensorrt",
    "bad_kind_gpu_auto": "instance groups on GPUs are removed",
    "bad_opset_22": "the installed ONNX Runtime knows this operator set",
    "bad_opset_23_auto": "the installed ONNX Runtime knows this operator set",
}
"""What the server with the stand-in accepts, and why."""


def _has_no_name(folder: Path) -> bool:
    config = folder / "config.pbtxt"
    return not config.exists() or "name: 'm'" not in config.read_text("latin-1").replace('"', "'")


def test_the_server_has_the_verdicts_of_the_real_backend(tmp_path: Path) -> None:
    """Models that the stand-in loads and rejects are those of the backend."""
    with tarfile.open(ORACLE / "cases.tar.gz") as archive:
        archive.extractall(tmp_path / "cases", filter="data")
    repository = tmp_path / "models"
    repository.mkdir()
    for name in sorted({*REJECTED_BY_THE_CORE, *OTHERWISE, *list(VERDICTS)[::4]}):
        case = VERDICTS[name]
        model = tmp_path / "cases" / name / "m"
        is_alone = [each.name for each in model.parent.iterdir()] == ["m"]
        if case["mode"] == "sme" and "env" not in case and is_alone and _has_no_name(model):
            model.rename(repository / name)
    answers = ask_server(repository)
    assert len(answers) > 50
    verdicts = {name: answer.outcome for name, answer in answers.items()}
    expected = {name: VERDICTS[name]["verdict"] for name in answers}
    different = {name for name in answers if verdicts[name] != expected[name] != "unverifiable"}
    known = OTHERWISE.keys() & answers.keys()
    assert different == known, {name: answers[name] for name in different ^ known}
