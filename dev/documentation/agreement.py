"""The table of docs/checker/agreement.md: how often the checks agree with the real server.

``make findings`` counts; this module reads what it wrote.
"""

from __future__ import annotations

import ast
import json
import re

from constructs_triton_core.findings import Severity
from documentation.pages import PROJECT
from triton_model_check.checks.chapters import RULES

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
    "| repositories | about | compared with | wrongly refused | wrongly accepted |\n"
    "|---|---|---|---|---|\n"
)


def agreement() -> str:
    """Return the table, and sentences about the checks and about files of real exporters."""
    sections = list(_SECTION.finditer((CONTRACT / "findings.txt").read_text(encoding="utf-8")))
    rows = [
        f"| {each['count']} | {_SUBJECTS[each['folder']]} | {each['server']} "
        f"| {each['refused']} | {each['accepted']} |\n"
        for each in sections
    ]
    found = {
        code
        for each in sections
        for code in re.findall(r"^error +(\S+)", each["codes"], re.MULTILINE)
    }
    errors = sum(rule.severity is Severity.ERROR for rule in RULES.values())
    asked = (
        f"{len(found)} of the {errors} checks that report errors find one in these repositories."
    )
    return f"\n{_HEAD}{''.join(rows)}\n{asked}\n\n{_exporters()}\n\n{_targets()}\n"


def _exporters() -> str:
    recorded = json.loads(
        (CONTRACT / "onnx_exporters" / "verdicts.json").read_text(encoding="utf-8")
    )
    *versions, newest = recorded["runtimes"].values()
    return (
        f"Beside them, {len(recorded['cases'])} ONNX files of real exporters are compared with "
        f"ONNX Runtime {', '.join(versions)} and {newest}. "
        "The checker refuses none of the files that ONNX Runtime loads."
    )


def _targets() -> str:
    """Return what was found with servers that were started with other options."""
    test = ast.parse((CONTRACT / "test_target_verdicts.py").read_text(encoding="utf-8"))
    lists = {
        ast.unparse(node.targets[0]): ast.literal_eval(node.value)
        for node in test.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
    }
    verdicts = json.loads(
        (CONTRACT / "oracle_targets" / "verdicts.json").read_text(encoding="utf-8")
    )
    count, others = len(verdicts) - len(lists["NOT_ABOUT_MODELS"]), len(lists["NOT_FOUND"])
    return (
        f"Servers were also started {count} times with other options: little shared memory, a "
        "read-only folder, named models, configurations by name, backends, several repositories. "
        f"In {others} of these cases the check has another verdict; "
        "the tests list them with the reason."
    )
