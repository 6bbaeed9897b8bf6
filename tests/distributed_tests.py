"""Distributes tests to processes by file, and lets the processes send fewer messages."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

_UNREAD = ("logstart", "logfinish")


class FileScheduling(LoadGroupScheduling):  # type: ignore[misc,no-any-unimported]
    """Runs the tests of a file in one process, unless they belong to a group.

    If tests without a group are distributed one by one, each process makes the fixtures of a file
    again, and xdist looks through all that a process has run before it sends the next one.
    """

    def _split_scope(self, nodeid: str) -> str:
        group = str(super()._split_scope(nodeid))
        return nodeid.partition("::")[0] if group == nodeid else group


def send_less(config: pytest.Config) -> None:
    """Let this process of xdist send two messages about a test that passed, not six.

    With ``--durations``, those about setup and teardown are sent too.
    """
    unread = () if config.option.durations else ("setup", "teardown")
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            _filter(plugin, unread)


def _filter(interactor: Any, phases: tuple[str, ...]) -> None:
    send = interactor.sendevent

    def sendevent(name: str, **content: Any) -> None:
        report = content.get("data", {})
        is_passed_phase = report.get("outcome") == "passed" and report.get("when") in phases
        if name not in _UNREAD and not is_passed_phase:
            send(name, **content)

    interactor.sendevent = sendevent
