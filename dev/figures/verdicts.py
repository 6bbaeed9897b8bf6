"""How often the checks and the rehearsal are right, by the records of other programs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import hint_cases
import hint_cases.commands
import onnx_exports
import test_fixes
import test_hints_of_commands
import test_mutations
import test_onnx_exports
import test_onnx_verdicts
import test_oracle_verdicts
import test_target_verdicts as targets
from backports import tarfile
from findings_ledger import CORPORA, Recorded
from mutations import score

from figures import PROJECT, SETTINGS
from figures.table import Row, at_least, at_most

#: By folder of cases: the test, and the cases that it lists as wrongly accepted, with the reason of
#: each.
LISTED = {
    "oracle": (test_oracle_verdicts, {*test_oracle_verdicts.NEEDS_EXECUTION}),
    "oracle_onnx": (
        test_onnx_verdicts,
        {*test_onnx_verdicts.MISSED, *test_onnx_verdicts.SAID_TO_LOAD},
    ),
}
MUTATION = "dev/mutation_baseline.md"
#: `make coverage` writes it.
MEASURED = PROJECT / ".coverage"


def agreement() -> Iterator[Row]:
    """The verdicts of the checks, beside those of Triton and ONNX Runtime."""
    for corpus in CORPORA:
        if isinstance(corpus, Recorded):
            test, listed = LISTED[Path(corpus.folder).name]
            decided = [each for each in corpus.checked() if each.recorded != "unverifiable"]
            wrongly = [each.wrongly for each in decided if each.wrongly]
            title = f"{Path(corpus.folder).name}, {len(decided)} cases of Triton {corpus.release}"
            same = len(decided) - len(wrongly)
            yield Row(f"{title}: same verdict", same, at_least(len(decided) - len(listed)), test)
            yield Row(f"{title}: wrongly refused", wrongly.count("refused"), at_most(0), test)
            yield Row(
                f"{title}: wrongly accepted", wrongly.count("accepted"), at_most(len(listed)), test
            )
    yield from _exports()
    names = [*targets.DECIDED, *targets.NOT_FOUND]
    with TemporaryDirectory() as folder:
        same = sum(targets.agrees(name, Path(folder, name)) for name in names)
    title = f"{len(names)} servers with other options: same verdict"
    yield Row(title, same, at_least(len(targets.DECIDED)), targets)


def _exports() -> Iterator[Row]:
    with TemporaryDirectory() as folder:
        with tarfile.open(onnx_exports.ORACLE / "cases.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        for image in onnx_exports.IMAGES:
            found = onnx_exports.said(Path(folder), image)
            title = f"{len(found)} exports, ONNX Runtime {onnx_exports.RECORDED['runtimes'][image]}"
            refused = len(test_onnx_exports.wrongly_refused(found, image))
            accepted = len(test_onnx_exports.wrongly_accepted(found, image))
            most = at_most(len(test_onnx_exports.missed(image)))
            yield Row(f"{title}: wrongly refused", refused, at_most(0), test_onnx_exports)
            yield Row(f"{title}: wrongly accepted", accepted, most, test_onnx_exports)


def scores() -> Iterator[Row]:
    """Hints and fixes that work, and what tests and rehearsals notice of changes."""
    total = len(hint_cases.CASES)
    share = 100 * (total - len(hint_cases.unsuccessful())) / total
    limit = at_least(hint_cases.FEWEST_PERCENT)
    yield Row(f"hints of checks that end in success, percent of {total}", share, limit, hint_cases)
    cases = hint_cases.commands.CASES
    title = f"hints of commands that end in success, of {len(cases)}"
    yield Row(title, sum(case.code == 0 for case in cases), place=test_hints_of_commands)
    with TemporaryDirectory() as folder:
        fixable = len(test_fixes.fixable_codes(Path(folder)))
    yield Row("checks with a fix", fixable, at_least(test_fixes.FEWEST_FIXABLE), test_fixes)
    recorded, limit = score.read_record(), at_least(100 * score.ENOUGH)
    yield Row(
        "wrong edits that a rehearsal finds, percent",
        100 * score.score(recorded),
        limit,
        test_mutations,
    )
    errors = len(score.wrong_errors(recorded))
    yield Row(
        "harmless edits that a rehearsal reports as errors", errors, at_most(0), test_mutations
    )
    text = (PROJECT / MUTATION).read_text(encoding="utf-8")
    for mutants, percent in re.findall(r"^\| all \| (\d+) \|.* ([\d.]+) % \|$", text, re.MULTILINE):
        yield Row(
            f"mutants that tests notice, percent of {mutants}", float(percent), place=MUTATION
        )
    yield _coverage()


def _coverage() -> Row:
    value, note = None, "run `make coverage` first"
    if MEASURED.is_file():
        command = [sys.executable, "-m", "coverage", "report", "--format=total", "--fail-under=0"]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
        has_value = done.returncode == 0
        value, note = (
            (float(done.stdout), "as last measured") if has_value else (None, done.stdout.strip())
        )
    limit = at_least(SETTINGS["coverage"]["report"]["fail_under"])
    return Row("branch coverage, percent", value, limit, "pyproject.toml", note)
