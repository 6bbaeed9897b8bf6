"""What a check says of a model whose server gives no answer, without a server."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from constructs_triton_tools.local import server_check
from constructs_triton_tools.local.checked_models import CopiedModel
from constructs_triton_tools.local.server.installation import TritonInstallation
from constructs_triton_tools.local.server_check import CheckRun, CheckServer
from triton_model_check.model_config.server_answer import ServerAnswer

NOWHERE = Path("/nowhere")
INSTALLATION = TritonInstallation(NOWHERE, NOWHERE, NOWHERE, None)
ALONE = server_check._LOAD_ALONE_SECONDS


class Silent(CheckServer):
    """A server that is alive and answers no request."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, None)  # type: ignore[arg-type]


class Server:
    """Answers for models by their names; ``asked`` has each model that is loaded,
    and the timeout.
    """

    def __init__(self, asked: list[tuple[str, float]]) -> None:
        self.asked = asked

    def load(self, name: str, seconds: float) -> ServerAnswer:
        self.asked.append((name, seconds))
        if name == "busy" and seconds < ALONE:
            raise server_check._NoAnswerError
        if name == "rejected":
            return ServerAnswer(name, "rejected", "no")
        return ServerAnswer(name, "loads")

    def unload(self, name: str) -> None:
        if name == "ends later":
            raise server_check._NoAnswerError


def test_a_model_without_an_answer_is_asked_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that ends gives no verdict on its model, and none on the one after it."""
    asked: list[tuple[str, float]] = []
    servers: list[Server] = []

    @contextmanager
    def server(_: CheckRun) -> Iterator[Any]:
        servers.append(Server(asked))
        yield servers[-1]

    monkeypatch.setattr(CheckRun, "server", server)
    monkeypatch.setattr(server_check, "_SERVERS", 1)
    noted, plain = CopiedModel(("note",)), CopiedModel()
    models = {"busy": noted, "ends later": plain, "loads": noted, "rejected": plain}
    answers = CheckRun(NOWHERE, models, INSTALLATION).ask()
    assert {name: str(answer) for name, answer in answers.items()} == {
        "busy": "loads (note)",
        "ends later": "loads",
        "loads": "loads (note)",
        "rejected": "rejected: no",
    }
    assert [name for name, _ in asked] == ["busy", "ends later", "loads", "rejected", "busy"]
    assert len(servers) == 4


def test_a_silent_server_gives_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is alive and does not answer in time makes the answer unknown."""

    @contextmanager
    def server(_: CheckRun) -> Iterator[CheckServer]:
        with socket.socket(socket.AF_UNIX) as listener:
            address = tmp_path / server_check._SOCKET_NAME
            address.unlink(missing_ok=True)
            listener.bind(str(address))
            listener.listen()
            yield Silent(tmp_path)

    monkeypatch.setattr(CheckRun, "server", server)
    monkeypatch.setattr(server_check, "_LOAD_SECONDS", 0.01)
    monkeypatch.setattr(server_check, "_LOAD_ALONE_SECONDS", 0.01)
    answers = CheckRun(NOWHERE, {"m": CopiedModel()}, INSTALLATION).ask()
    assert str(answers["m"]) == "unknown: the server did not answer within 0 s"
