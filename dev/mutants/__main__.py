"""``make mutants``, or ``PYTHONPATH=dev python -m mutants run --count 300 --seed 1``."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from .coverage_map import CoverageMap, build
from .runner import Tree, copy_project, warm_up
from .sample import Mutant, draw, find
from .score import print_score, read_equivalents, read_results
from .session import Session

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / ".mutants"
EQUIVALENT = Path(__file__).with_name("equivalent.txt")


def main() -> None:
    """Parse the command line and do what it asks."""
    arguments = _parser().parse_args()
    match arguments.command:
        case "map":
            build(PROJECT, FOLDER, arguments.tests)
        case "run":
            _run(arguments)
        case "score":
            _print_score(
                draw(PROJECT, arguments.count, arguments.seed, arguments.package), _results(arguments.seed)
            )
        case "show":
            print(find(PROJECT, arguments.id).diff(PROJECT))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mutants", description="Mutation testing of constructs_triton.")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("map", help="run the tests and record which test executes which line")
    recording.add_argument("tests", nargs="*", help="record only these and add them to the map")
    for name, text in (("run", "test mutants; resumes an earlier run"), ("score", "print the score")):
        command = commands.add_parser(name, help=text)
        command.add_argument("--count", type=int, default=300, help="how many mutants (default: 300)")
        command.add_argument("--seed", type=int, default=1, help="seed of the sample (default: 1)")
        command.add_argument(
            "--package", action="append", default=[], help="only this folder or file, e.g. wire"
        )
        if name == "run":
            command.add_argument(
                "--again", action="store_true", help="test what was alive or undecided again"
            )
            command.add_argument("--fresh", action="store_true", help="forget the results of earlier runs")
            command.add_argument(
                "--keep-map", action="store_true", help="use the map though the package changed"
            )
            command.add_argument(
                "--budget", type=float, default=60, help="seconds of tests per mutant (default: 60)"
            )
    commands.add_parser("show", help="print a mutant as a diff").add_argument("id")
    return parser


def _results(seed: int) -> Path:
    return FOLDER / f"results-{seed}.jsonl"


def _run(arguments: argparse.Namespace) -> None:
    if not arguments.keep_map and not CoverageMap.read(PROJECT, FOLDER).is_current:
        print("The map is missing or older than the package: recording it first.", flush=True)
        build(PROJECT, FOLDER, [])
    results = _results(arguments.seed)
    if arguments.fresh:
        results.unlink(missing_ok=True)
    drawn = draw(PROJECT, arguments.count, arguments.seed, arguments.package)
    known = read_results(results)
    decided = {i for i, r in known.items() if not arguments.again or r["status"] in ("killed", "timed out")}
    waiting = [m for m in drawn if m.id not in decided | read_equivalents(EQUIVALENT)]
    print(f"{len(drawn)} mutants, {len(drawn) - len(waiting)} of them decided before", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        _test(waiting, Path(folder), results, arguments.budget)
    _print_score(drawn, results)


def _test(mutants: list[Mutant], folder: Path, results: Path, budget_seconds: float) -> None:
    trees = [Tree(folder / name) for name in "ab"]
    for tree in trees:
        copy_project(PROJECT, tree.folder)
    warm_up()
    session = Session(PROJECT, CoverageMap.read(PROJECT, FOLDER), trees, results, budget_seconds)
    session.run(mutants)
    session.confirm()
    shutil.rmtree(folder, ignore_errors=True)


def _print_score(drawn: list[Mutant], results: Path) -> None:
    known, equivalent = read_results(results), read_equivalents(EQUIVALENT)
    print_score([known[m.id] for m in drawn if m.id in known and m.id not in equivalent])


if __name__ == "__main__":
    main()
