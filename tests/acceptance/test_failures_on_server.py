"""What the catalogue says about the logs of the real server: containers that fail,
and healthy ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from healthy_containers import HEALTHY, serve
from parts import part
from provoked_failures import PROVOCATIONS, Provocation, provoke
from triton_server import needs_server

from constructs_triton.cli import main

BUDGET_MINUTES = 8
pytestmark = needs_server


def test_there_are_enough_of_both() -> None:
    """At least 25 kinds of failure are provoked, and 20 containers are healthy."""
    assert len({each.id for each in PROVOCATIONS}) >= 25
    assert len(HEALTHY) >= 20


@pytest.mark.parametrize(
    "provocation", part(PROVOCATIONS), ids=lambda each: f"{each.id}: {each.name}"
)
def test_a_provoked_failure_is_diagnosed(
    provocation: Provocation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The local run's message and the command on its log name the right cause first."""
    message, log = provoke(provocation, tmp_path)
    assert f"[{provocation.id}]" in next(
        line for line in message.splitlines() if line.startswith(("cause: ", "likely cause: "))
    )
    assert main(["diagnose", "--log-file", str(log)]) == 1
    assert f"[{provocation.id}]" in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize("container", part(HEALTHY), ids=lambda each: each.name)
def test_a_healthy_log_has_no_diagnosis(
    container: Provocation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command finds nothing in the log of a container that served, and exits with 0."""
    log = serve(container, tmp_path)
    assert log.stat().st_size > 0
    assert main(["diagnose", "--log-file", str(log)]) == 0
    assert capsys.readouterr().out == "no known failure found\n"
