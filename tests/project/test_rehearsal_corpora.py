"""The table of the apps of others, which ``make rehearsal-corpora`` writes."""

from __future__ import annotations

from rehearsal_corpora.environment import NAMES, REQUIREMENTS, distributions
from rehearsal_corpora.table import NOT_BUILT, RIGHT, STOPPED, read_ledger, read_table


def test_table_has_an_app_or_a_reason_for_each_construct() -> None:
    """At least 300 constructs of aws-cdk-lib have an app, and each other one has a reason."""
    rows = read_table()
    apps = [row for row in rows if row.corpus == "l2" and row.verdict != NOT_BUILT]
    assert len(apps) >= 300
    assert [row for row in rows if row.verdict != RIGHT and not row.note] == []
    assert [row for row in rows if row.verdict != NOT_BUILT and not row.resources] == []


def test_ledger_has_the_stops_that_are_known() -> None:
    """Each false stop of the table has a reason, and each reason has its stop."""
    stops = {row.construct for row in read_table() if row.verdict == STOPPED}
    ledger = read_ledger()
    assert stops == ledger.keys()
    assert all(ledger.values())


def test_environment_has_each_library() -> None:
    """Each name of the list is pinned, with at least ten libraries beside the Solutions."""
    pinned = {line.partition("==")[0] for line in REQUIREMENTS.read_text().splitlines()}
    names = {*distributions("solutions"), *distributions("libraries")}
    assert names <= pinned, NAMES
    assert len(distributions("libraries")) >= 10
