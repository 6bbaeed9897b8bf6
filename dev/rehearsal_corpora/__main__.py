"""Rehearses apps of constructs that others wrote: ``make rehearsal-corpora``.

Three corpora: the L2 constructs of aws-cdk-lib, the AWS Solutions Constructs, and construct
libraries of PyPI. Of each construct, a generator writes one small app. Its first deployment must
have no error, the same app must be silent, and harmless edits must have no error. Prints each
false stop that ``ledger.csv`` does not explain, and exits with 1 if there is any.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from members import PROJECT

sys.path.insert(0, str(PROJECT / "packages" / "rehearse" / "tests"))

from rehearsal_corpora import environment
from rehearsal_corpora.rehearsals import assess
from rehearsal_corpora.table import (
    NOT_BUILT,
    RIGHT,
    STOPPED,
    Row,
    figures,
    read_ledger,
    read_table,
    write_table,
)

CORPORA = ("l2", "solutions", "libraries")


def rehearsed(
    corpora: Sequence[str], seed: int | None = None, names: Sequence[str] = ()
) -> list[Row]:
    """Write and rehearse the apps of some corpora, or of the tenth that a seed chooses.

    Args:
        corpora: Names of :data:`CORPORA`.
        seed: Chooses a tenth of the constructs. Default: all.
        names: Only these constructs. Default: all.
    """
    rows = []
    for corpus in corpora:
        with tempfile.TemporaryDirectory() as folder:
            _synthesize(corpus, Path(folder), seed, names)
            rows += list(_assessed(corpus, Path(folder)))
    return rows


def unexplained(rows: Sequence[Row]) -> list[Row]:
    """The false stops that the ledger does not have."""
    known = read_ledger()
    return [row for row in rows if row.verdict == STOPPED and row.construct not in known]


def _synthesize(corpus: str, folder: Path, seed: int | None, names: Sequence[str]) -> None:
    """Write the apps in a process of the environment that has the constructs."""
    python, chosen = sys.executable, ["aws-cdk-lib"]
    if corpus != "l2":
        python, chosen = str(environment.python()), environment.distributions(corpus)
    command = [python, "-m", "rehearsal_corpora.synthesize", str(folder)]
    command += [*(names or chosen)]
    command += [] if seed is None else ["--seed", str(seed)]
    subprocess.run(
        command,
        check=True,
        # The history of a product writes its snapshots into the current folder.
        cwd=folder,
        # The CDK prints the violations of an app that it refuses; the table has the first one.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            "PYTHONPATH": str(PROJECT / "dev"),
            # The slow tests turn it off; here it says which apps are right.
            "CDK_VALIDATION": "true",
            "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "18,20",
        },
    )


def _assessed(corpus: str, folder: Path) -> Iterator[Row]:
    lines = (folder / "apps.jsonl").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    for each in found:
        if "reason" in each:
            yield Row(corpus, each["construct"], 0, 0, 0, 0, NOT_BUILT, each["reason"])
    apps = [each for each in found if "app" in each]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context) as pool:
        paths = [folder / each["app"] for each in apps]
        for each, verdict in zip(apps, pool.map(assess, paths), strict=True):
            row = _row(corpus, each, verdict)
            missed = f"missed: {', '.join(verdict.wrong_missed)}" if verdict.wrong_missed else ""
            line = f"{row.verdict}: {row.construct} {row.note}{missed}"
            print(line, file=sys.stderr, flush=True)
            yield row


def _row(corpus: str, app: dict[str, Any], verdict: Any) -> Row:
    stops = verdict.false_stops
    return Row(
        corpus,
        app["construct"],
        verdict.resources,
        verdict.simulated,
        len(verdict.wrong_found),
        len(verdict.wrong_found) + len(verdict.wrong_missed),
        STOPPED if stops else RIGHT,
        " ".join(stops[0].split())[:300] if stops else "",
    )


def main() -> int:
    """Rehearse, compare and perhaps record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpora", nargs="*", choices=[*CORPORA, []], help="default: all")
    parser.add_argument("--seed", type=int, help="rehearse only the tenth that this number chooses")
    parser.add_argument("--only", action="append", default=[], metavar="CONSTRUCT")
    parser.add_argument("--record", action="store_true", help="write table.csv")
    arguments = parser.parse_args()
    corpora = arguments.corpora or list(CORPORA)
    rows = rehearsed(corpora, arguments.seed, arguments.only)
    print(figures(rows))
    if arguments.record:
        known = {row.construct: row for row in read_table()}
        write_table((known | {row.construct: row for row in rows}).values())
    stops = unexplained(rows)
    for row in stops:
        print(f"false stop: {row.construct}: {row.note}")
    return bool(stops)


if __name__ == "__main__":
    sys.exit(main())
