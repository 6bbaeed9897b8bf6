"""Updates that failed or lost something on AWS, by public reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from public_reports import FOUND, REPORTS
from small_assembly import rehearsal

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]


@pytest.mark.parametrize("report", REPORTS)
def test_rehearsal_says_what_the_report_says(tmp_path: Path, report: str) -> None:
    """The rehearsal names the resource that failed on AWS, and is silent where AWS has changed."""
    old, new = REPORTS[report]
    found = rehearsal(tmp_path, old, new, failures="none")
    problems = {(problem.code, problem.path) for problem in found.problems}
    assert problems == ({FOUND[report]} if report in FOUND else set())
