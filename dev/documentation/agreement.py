"""The table of docs/checker/agreement.md: how often the checks agree with the real server.

``make findings`` counts; this module reads what it wrote.
"""

from __future__ import annotations

import json
import re

from constructs_triton_core.findings import Severity
from documentation.pages import PROJECT
from triton_model_check.model_config.checks import RULES

CONTRACT = PROJECT / "packages" / "check" / "tests" / "contract"
_SECTION = re.compile(
    r"^\S*/(?P<folder>\w+): (?P<count>\d+) repositories, with the verdict of (?P<server>.+)\n\n"
    r"wrongly refused +(?P<refused>\d+)\nwrongly accepted +(?P<accepted>\d+)\n\n"
    r"(?P<codes>(?:\w+ +[\w-]+ +\d+\n)*)",
    re.MULTILINE,
)
#: What the repositories of a folder are about. A folder without an entry is an error.
_SUBJECTS = {
    "oracle": "configurations, folders, ensembles, Python models",
    "oracle_onnx": "ONNX models",
}
_HEAD = (
    "| repositories | about | compared with | wrongly refused | wrongly accepted |\n|---|---|---|---|---|\n"
)


def agreement() -> str:
    """Return the table, and sentences about the checks and about files of real exporters."""
    sections = list(_SECTION.finditer((CONTRACT / "findings.txt").read_text(encoding="utf-8")))
    rows = [
        f"| {each['count']} | {_SUBJECTS[each['folder']]} | {each['server']} "
        f"| {each['refused']} | {each['accepted']} |\n"
        for each in sections
    ]
    found = {code for each in sections for code in re.findall(r"^error +(\S+)", each["codes"], re.MULTILINE)}
    errors = sum(rule.severity is Severity.ERROR for rule in RULES.values())
    asked = f"{len(found)} of the {errors} checks that report errors find one in these repositories."
    return f"\n{_HEAD}{''.join(rows)}\n{asked} {_exporters()}\n"


def _exporters() -> str:
    recorded = json.loads((CONTRACT / "onnx_exporters" / "verdicts.json").read_text(encoding="utf-8"))
    *versions, newest = recorded["runtimes"].values()
    return (
        f"In addition, {len(recorded['cases'])} ONNX files of real exporters are compared with ONNX "
        f"Runtime {', '.join(versions)} and {newest}. None is refused that ONNX Runtime loads."
    )
