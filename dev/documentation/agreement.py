"""The table of the page "How it is judged": how often the checks agree with the real server.

``make findings`` counts; this module reads what it wrote.
"""

from __future__ import annotations

import json
import re

from documentation.pages import PROJECT

CONTRACT = PROJECT / "packages" / "check" / "tests" / "contract"
_SECTION = re.compile(
    r"^\S*/(?P<folder>\w+): (?P<count>\d+) repositories, with the verdict of (?P<judge>.+)\n\n"
    r"wrongly refused +(?P<refused>\d+)\nwrongly accepted +(?P<accepted>\d+)$",
    re.MULTILINE,
)
#: What the repositories of a folder are about. A folder without an entry is an error.
_SUBJECTS = {
    "oracle": "configurations, folders, ensembles, Python models",
    "oracle_onnx": "ONNX models",
}
_HEAD = "| repositories | about | judge | wrongly refused | wrongly accepted |\n|---|---|---|---|---|\n"


def agreement_table() -> str:
    """Return the table, and a sentence about the files of real exporters."""
    ledger = (CONTRACT / "findings.txt").read_text(encoding="utf-8")
    rows = [
        f"| {each['count']} | {_SUBJECTS[each['folder']]} | {each['judge']} "
        f"| {each['refused']} | {each['accepted']} |\n"
        for each in _SECTION.finditer(ledger)
    ]
    return f"\n{_HEAD}{''.join(rows)}\n{_exporters()}\n"


def _exporters() -> str:
    recorded = json.loads((CONTRACT / "onnx_exporters" / "verdicts.json").read_text(encoding="utf-8"))
    count, exporters = len(recorded["cases"]), len(recorded["exporters"])
    versions = ", ".join(recorded["runtimes"].values())
    return (
        f"In addition, {count} ONNX files of {exporters} groups of exporters are compared with ONNX Runtime "
        f"{versions}: none is refused that it loads."
    )
