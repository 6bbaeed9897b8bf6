"""The tables of dev/project/rehearsal_score.md: what a rehearsal finds of generated edits.

``make rehearsal-score`` writes the record that this module reads.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from documentation.pages import PROJECT

RECORD = PROJECT / "packages" / "rehearse" / "tests" / "mutations" / "score.json"
#: What the kinds of edits are about, by their first word. A kind without an entry is an error.
_SUBJECTS = {
    "name": "names: another logical ID, another stack, a replacement",
    "named": "names: another logical ID, another stack, a replacement",
    "policy": "policies: a Deny or a boundary added, an Allow removed",
    "relation": "relations: a reference, a resource or a dependency removed",
    "endpoint": "endpoints, components, scaling and networks",
    "scaling": "endpoints, components, scaling and networks",
    "component": "endpoints, components, scaling and networks",
    "network": "endpoints, components, scaling and networks",
    "export": "templates: types, properties, quotas, exports",
    "invalid": "templates: types, properties, quotas, exports",
    "property": "templates: types, properties, quotas, exports",
    "quota": "templates: types, properties, quotas, exports",
    "type": "templates: types, properties, quotas, exports",
}
Named = Iterable[Mapping[str, Any]]


def _subject(kind: str) -> str:
    return _SUBJECTS[kind.split(maxsplit=1)[0].rstrip(":,")]


def _read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def score_table() -> str:
    """Return the table of the kinds, and a sentence about the sum."""
    recorded, counts = _read(), Counter[tuple[str, str]]()
    for each in recorded["kinds"]:
        for subject in (_subject(each["kind"]), "all"):
            counts[subject, each["verdict"]] += each["edits"]
            counts[subject, f"{each['verdict']}, right"] += each["right"]
    rows = [
        f"| {subject} | {counts[subject, 'wrong']} | {counts[subject, 'wrong, right']} "
        f"| {counts[subject, 'harmless']} "
        f"| {counts[subject, 'harmless'] - counts[subject, 'harmless, right']} |\n"
        for subject in (*dict.fromkeys(_SUBJECTS.values()), "all")
    ]
    share = counts["all", "wrong, right"] / counts["all", "wrong"]
    head = "| edits of | wrong | found | harmless | reported |\n|---|---|---|---|---|\n"
    return (
        f"\n{head}{''.join(rows)}\nSo {share:.0%} of the wrong edits are found, "
        f"{recorded['only warnings']} of them only by warnings.\n"
    )


def missed() -> str:
    """Return the wrong edits that are not found, and the harmless ones that are reported."""
    recorded = _read()
    reported = [
        (
            f"- {each['edit']}: {'error' if each['is error'] else 'warning'} "
            f"`{'`, `'.join(each['codes'])}`\n"
        )
        for each in recorded["wrongly reported"]
    ]
    title = "Harmless edits that are reported:\n\n" if reported else ""
    return f"\n{_counted(recorded['missed'], 'edit')}\n{title}{''.join(reported)}"


def not_simulated() -> str:
    """Return what the edits that are not counted need."""
    return f"\n{_counted(_read()['not simulated'], 'source')}"


def _counted(edits: Named, key: str) -> str:
    counts = Counter(str(each[key]) for each in edits)
    return "".join(
        f"- {name}" + (f" ({count} edits)" if count > 1 else "") + "\n"
        for name, count in counts.items()
    )
