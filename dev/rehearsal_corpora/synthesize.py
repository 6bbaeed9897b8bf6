"""Writes one small app for each construct of the installed libraries; one process writes all.

    python -m rehearsal_corpora.synthesize FOLDER NAME... [--seed NUMBER]

Runs in the environment of the libraries. ``FOLDER/apps.jsonl`` has a line for each construct: where
its app is, or why there is none.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from .hints import AFTER, AROUND, IN_A_REGION, LISTED, OPTIONAL, PROPERTIES, REGION, VALUES
from .jsii_types import Library, installed
from .values import Hints, Maker, short

_HINTS = Hints(VALUES, PROPERTIES, AFTER, OPTIONAL)

_LONGEST_SECONDS = 120
#: The rule of cfn-lint for a template without resources.
_EMPTY = "F0001"


def synthesize(library: Library, name: str, folder: Path) -> dict[str, Any]:
    """Write the app of a construct, and return its line of the index."""
    if short(name) in LISTED:
        return {"construct": name, "reason": LISTED[short(name)]}
    begun = time.monotonic()
    target = folder / name
    shutil.rmtree(target, ignore_errors=True)
    signal.alarm(_LONGEST_SECONDS)
    try:
        _write(library, name, target)
    except Exception as error:  # what a construct raises is a RuntimeError of JSII
        shutil.rmtree(target, ignore_errors=True)
        return {"construct": name, "reason": " ".join(str(error).split())[:300]}
    finally:
        signal.alarm(0)
    return {
        "construct": name,
        "app": str(target.relative_to(folder)),
        "seconds": round(time.monotonic() - begun, 2),
    }


def _write(library: Library, name: str, target: Path) -> None:
    app = cdk.App(outdir=str(target), analytics_reporting=False)
    environment = REGION if short(name).startswith(IN_A_REGION) else None
    stack = cdk.Stack(app, "Corpus", env=environment)
    maker = Maker(library, stack, _HINTS)
    subject = maker.create(name, "Subject")
    for base in map(short, library.bases(name)):
        if base in AROUND:
            AROUND[base](maker, subject)
            break
    app.synth()
    _expect_valid(target)


def _expect_valid(app: Path) -> None:
    """Raise ``ValueError`` if the CDK's own validation refuses the app; it has cfn-lint's rules."""
    report = json.loads((app / "validation-report.json").read_text(encoding="utf-8"))
    for plugin in report["pluginReports"]:
        for violation in plugin["violations"]:
            rule = violation["ruleName"]
            if rule == _EMPTY:
                raise ValueError("has no resources of its own")
            if rule.startswith(("E", "F")):
                raise ValueError(f"the CDK refuses it: {rule} {violation['description']}")


def _expired(*_: object) -> None:
    raise TimeoutError(f"takes more than {_LONGEST_SECONDS} seconds")


def main() -> int:
    """Write the apps of some constructs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+", help="names of packages or of constructs")
    parser.add_argument("--seed", type=int, help="choose a tenth with this number")
    arguments = parser.parse_args()
    library = installed()
    chosen: list[str] = []
    for name in arguments.names:
        chosen += [name] if name in library.types else library.constructs_of(name)
    if arguments.seed is not None:
        chosen = random.Random(arguments.seed).sample(chosen, max(1, len(chosen) // 10))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGALRM, _expired)
    with (arguments.folder / "apps.jsonl").open("a", encoding="utf-8") as index:
        for name in chosen:
            index.write(json.dumps(synthesize(library, name, arguments.folder)) + "\n")
            index.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
