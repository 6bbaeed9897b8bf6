"""The order in which the models of a repository are loaded, without a server."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from constructs_triton.local import server_check
from constructs_triton.local.server.installation import TritonInstallation
from constructs_triton.local.server_check import _CheckRun

NOWHERE = Path("/nowhere")
ANSWERS: dict[str, tuple[int | None, str]] = {
    "hangs": (None, "no answer"),
    "loads": (200, ""),
    "rejected": (400, '{"error": "no\\n model"}'),
}


def test_server_without_an_answer_hangs(tmp_path: Path) -> None:
    """The answer says how long the server was waited for."""
    installation = TritonInstallation(NOWHERE, NOWHERE, NOWHERE, None)
    check_run = _CheckRun(tmp_path, {}, installation)
    with socket.socket(socket.AF_UNIX) as server:
        (tmp_path / "server").mkdir()
        server.bind(str(tmp_path / "server" / server_check._SOCKET_NAME))
        server.listen()
        answer = check_run._request("GET", "/v2/health/ready", timeout=0.01)
    assert answer == (None, "no answer within 0 s: the server hangs")


def test_each_model_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a model without an answer the next server continues with the models that have none."""
    asked: list[str] = []

    def request(_: _CheckRun, method: str, path: str, timeout: float) -> tuple[int | None, str]:
        assert (method, timeout) == ("POST", 30.0)
        name, action = path.split("/")[-2:]
        if action == "load":
            asked.append(name)
        return ANSWERS[name]

    monkeypatch.setattr(_CheckRun, "_request", request)
    models = {"hangs": " (note)", "loads": " (note)", "rejected": ""}
    check_run = _CheckRun(NOWHERE, models, TritonInstallation(NOWHERE, NOWHERE, NOWHERE, None))
    answers: dict[str, str] = {}
    check_run.ask(answers)
    assert answers == {"hangs": "rejected: no answer (note)"}
    check_run.ask(answers)
    assert asked == ["hangs", "loads", "rejected"]
    assert answers["loads"] == "loads (note)"
    assert answers["rejected"] == "rejected: no model"
