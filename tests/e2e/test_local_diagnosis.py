"""A local run that does not start names the cause;
a healthy one has none. tests/acceptance has all kinds.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from healthy_containers import HEALTHY, serve
from provoked_failures import PROVOCATIONS, REFUSED_BY_SCRIPT, Provocation, provoke
from triton_server import needs_server

from constructs_triton_tools.operations import diagnose_log

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_diagnosis")]
SOME = [
    each
    for each in PROVOCATIONS
    if each.id in ("py-module-missing", "no-version", "ens-unavailable")
]


@pytest.mark.parametrize("provocation", [REFUSED_BY_SCRIPT[0], *SOME], ids=lambda each: each.name)
def test_a_server_that_does_not_start_is_diagnosed(
    provocation: Provocation, tmp_path: Path
) -> None:
    """The message of the run has the cause first, then the errors of the log."""
    message, log = provoke(provocation, tmp_path)
    lines = message.splitlines()
    assert lines[0].startswith("Endpoint/AllTraffic: ")
    assert lines[1].endswith(f"[{provocation.id}]")
    assert diagnose_log(log.read_text())[0].id == provocation.id


def test_a_healthy_server_has_no_diagnosis(tmp_path: Path) -> None:
    """The log of a server without a GPU contains errors that are none."""
    log = serve(HEALTHY[0], tmp_path).read_text()
    assert "CudaDriverHelper" in log
    assert diagnose_log(log) == []
