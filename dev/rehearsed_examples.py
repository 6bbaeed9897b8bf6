"""Rehearse app.py and every example, unchanged and with twenty generated edits, in both orders.

    python dev/rehearsed_examples.py ASSEMBLIES OUTPUT

ASSEMBLIES is a folder with one cloud assembly for each app; if it does not exist, they are written
there. Each step fails once, so that one run takes minutes and all of them take hours. A line is
appended to OUTPUT for each run. A second call continues where OUTPUT ends, and the table at the end
counts all lines.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from members import PROJECT

sys.path[:0] = [
    str(PROJECT / each)
    for each in ("packages/rehearse/tests", "tests", "tests/e2e", "tests/acceptance")
]

from deploy_twice import NOT_DEPLOYED, project_apps, synthesize_apps  # noqa: E402
from mutations.applications import edits_of, rehearsed  # noqa: E402
from mutations.harmless import EDITS, Edit  # noqa: E402

from constructs_triton_core.findings import Severity  # noqa: E402


def run_app(assembly: Path, name: str, edits: dict[str, Edit]) -> dict[str, Any]:
    """Rehearse an app with edits, in both orders and with each step failing,
    and return the figures.
    """
    begun = time.process_time()
    figures: dict[str, Any] = {
        "app": assembly.name,
        "edit": name,
        "is_harmless": not edits or name in EDITS,
    }
    try:
        found = rehearsed(assembly, edits, "each", 2).found
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        figures["broken"] = f"{error!r}, {Path(where.filename).name}:{where.lineno}"
    else:
        figures |= {
            "steps": len(found.steps),
            "failed steps": len(found.failures),
            "status": dict(found.status),
            "ends": sorted(Counter(str(each.status) for each in found.failures).items()),
            "errors": sorted({each.code for each in found.errors}),
            "warnings": sorted(
                {each.code for each in found.problems if each.severity is Severity.WARNING}
            ),
            "texts": [str(each)[:300] for each in found.problems],
        }
    return {**figures, "seconds": round(time.process_time() - begun, 1)}


def _runs(assembly: Path, done: set[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """The unchanged app and its edits, without those that are done."""
    for name, edits in {
        "unchanged": {},
        **{name: {name: edit} for name, edit in edits_of(assembly).items()},
    }.items():
        if (assembly.name, name) not in done:
            yield run_app(assembly, name, edits)


def run_apps(assemblies: Path, output: Path) -> None:
    """Rehearse all apps, the smallest first, and append the figures to a file."""
    if not assemblies.exists():
        apps = [name for name in project_apps(PROJECT) if name not in NOT_DEPLOYED]
        synthesize_apps(assemblies.parent, apps).rename(assemblies)
    found = _read(output)
    done = {(each["app"], each["edit"]) for each in found}
    folders = [path.parent for path in assemblies.glob("*/manifest.json")]
    for folder in sorted(
        folders, key=lambda each: sum(path.stat().st_size for path in each.glob("*.template.json"))
    ):
        for figures in _runs(folder, done):
            with output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(figures) + "\n")
    print(table(_read(output)))


def _read(output: Path) -> list[dict[str, Any]]:
    lines = output.read_text(encoding="utf-8").splitlines() if output.exists() else []
    return [json.loads(each) for each in lines]


def table(runs: list[dict[str, Any]]) -> str:
    """A row for each app, and the errors of edits that are harmless."""
    by_app: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in runs:
        by_app[each["app"]].append(each)
    lines = [
        "| app | runs | failed steps | ends | codes | broken | CPU seconds |",
        f"|{'---|' * 7}",
    ]
    for app, every in by_app.items():
        ends, codes = Counter[str](), Counter[str]()
        for each in every:
            ends.update(each.get("status", {}).values())
            codes.update([*each.get("errors", ()), *each.get("warnings", ())])
        figures = (
            len(every),
            sum(each.get("failed steps", 0) for each in every),
            _counted(ends),
            _counted(codes),
            sum("broken" in each for each in every),
            f"{sum(each['seconds'] for each in every):.0f}",
        )
        lines.append(f"| {app} | {' | '.join(map(str, figures))} |")
    wrong = [each for each in runs if each["is_harmless"] and each.get("errors")]
    broken = [each for each in runs if "broken" in each]
    lines += [
        f"harmless, with errors: {each['app']}, {each['edit']}: {each['texts']}" for each in wrong
    ]
    return "\n".join(
        [*lines, *(f"broken: {each['app']}, {each['edit']}: {each['broken']}" for each in broken)]
    )


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def main() -> None:
    """Read the arguments, and run all apps."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("assemblies", type=Path)
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    run_apps(given.assemblies.resolve(), given.output)


if __name__ == "__main__":
    main()
