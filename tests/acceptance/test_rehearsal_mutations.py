"""Generated edits of templates: a rehearsal finds most of the wrong ones and reports no harmless one.

All of them take six minutes on one core, so that CI takes each third. ``make rehearsal-score`` rehearses all
and writes the record, which has the figures of the whole.
"""

from __future__ import annotations

from mutations.score import ENOUGH, read_record, record, results, score

BUDGET_MINUTES = 3
STEP = 3


def test_each_third_edit_is_as_recorded() -> None:
    """At least 85 percent of the wrong edits are found, no harmless one is reported, as the record says."""
    found = record(results(STEP, first=1, processes=2))
    assert found["wrongly reported"] == []
    assert score(found) >= ENOUGH
    recorded = read_record()
    edits = {(each["kind"], each["edit"]) for each in recorded["missed"]}
    assert {(each["kind"], each["edit"]) for each in found["missed"]} <= edits
