"""Deploys stacks in an unfriendly AWS, as each of many seeds says.

``python tests/e2e/seeded_runs.py --seeds 1000`` prints, after every ten seeds, how many have run,
the number of different orders, the time, and each seed that failed with the command that runs it
again. ``--first 17`` begins with seed 17, and ``--processes 2`` uses two CPUs. ``--assemblies``
names a folder for the synthesized apps, which a second run reuses.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    os.environ.update(AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing")
    sys.path.append(
        str(Path(__file__).resolve().parents[1])
    )  # where pytest finds what all tests share

from deploy_twice import NOT_DEPLOYED, deployable_stacks, project_apps, synthesize_apps
from guard_app import synthesize_states
from programs import PROJECT
from seeded_keys import live_with_keys, synthesize_keys
from seeded_life import live_as_example, live_as_guard

from constructs_triton_core.cloud_assembly.assembly import Assembly

_EXAMPLES = [name for name in project_apps(PROJECT) if name not in NOT_DEPLOYED]
_GUARD, _KEYS = "scaling guard", "encryption keys"
#: The guard and the keys take turns after the examples: they depend most on the order of events.
_CASES = [
    each for place, name in enumerate(_EXAMPLES) for each in (name, (_KEYS, _GUARD)[place % 2])
]
_SEEDS_AT_A_TIME = 10


@dataclass
class Result:
    """What the seeds have shown; ``orders`` are the different sequences of
    events of an operation.
    """

    seeds: int = 0
    failures: dict[int, str] = field(default_factory=dict)
    orders: set[int] = field(default_factory=set)
    seconds: float = 0.0

    def add(self, other: Result) -> None:
        """Take over what other seeds have shown."""
        self.seeds += other.seeds
        self.failures |= other.failures
        self.orders |= other.orders

    def __str__(self) -> str:
        return (
            f"{self.seeds} seeds, {len(self.failures)} failed, {len(self.orders)} different "
            f"orders, {self.seconds:.0f} s"
        )


def case_of(seed: int) -> str:
    """What a seed deploys: an example, the scaling guard or the repository whose key changes."""
    return _CASES[seed % len(_CASES)]


def assemblies(directory: Path, seeds: range) -> Path:
    """Synthesize what the seeds deploy: each example in two versions,
    and each state of the others.
    """
    cases = {case_of(seed) for seed in seeds}
    examples = sorted(cases - {_GUARD, _KEYS})
    if "existing_bucket" in examples:  # its bucket contains the archive of another example
        examples = sorted({*examples, "ensemble"})
    for version in ("before", "after"):
        present = directory / version / "assemblies"
        if not all((present / name).exists() for name in examples):
            shutil.rmtree(directory / version, ignore_errors=True)
            synthesize_apps(directory / version, examples, changes_models=version == "after")
    if _GUARD in cases and not (directory / "guard").exists():
        synthesize_states(directory / "guard")
    if _KEYS in cases and not (directory / "keys").exists():
        synthesize_keys(directory / "keys")
    return directory


def run_seeds(directory: Path, seeds: range) -> Result:
    """Run each seed; a failure does not end the run."""
    result, begun = Result(len(seeds)), time.monotonic()
    for seed in seeds:
        try:
            result.orders |= _run(directory, seed)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            message = f"seed {seed}, {case_of(seed)}: {error!r} ({where.name}, line {where.lineno})"
            result.failures[seed] = f"{message}\nreplay: {replay_command(seed)}"
    result.seconds = time.monotonic() - begun
    return result


def run_in_processes(directory: Path, seeds: range, processes: int) -> Result:
    """Run the seeds in several processes, because a process has one account at a time."""
    result, begun = Result(), time.monotonic()
    shares = [
        seeds[place : place + _SEEDS_AT_A_TIME] for place in range(0, len(seeds), _SEEDS_AT_A_TIME)
    ]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(run_seeds, directory, share) for share in shares]):
            result.add(done.result())
            result.seconds = time.monotonic() - begun
            lines = [*done.result().failures.values(), str(result)]
            sys.stdout.write("".join(f"{each}\n" for each in lines))
            sys.stdout.flush()
    return result


def replay_command(seed: int) -> str:
    """The command that runs one seed."""
    return f"python tests/e2e/seeded_runs.py --first {seed} --seeds 1"


def _run(directory: Path, seed: int) -> set[int]:
    name = case_of(seed)
    if name == _GUARD:
        return live_as_guard(directory / "guard", seed)
    if name == _KEYS:
        return live_with_keys(directory / "keys", seed)
    before, after = (
        _stacks(Assembly(directory / version / "assemblies" / name), seed)
        for version in ("before", "after")
    )
    return live_as_example(list(zip(before, after, strict=True)), seed)


def _stacks(assembly: Assembly, seed: int) -> list[tuple[Assembly, str]]:
    """The stacks that belong to one of the app's environments."""
    stacks = list(deployable_stacks(assembly))
    environments = sorted({stage.environment(name) for stage, name in stacks})
    chosen = random.Random(seed).choice(environments)
    return [(stage, name) for stage, name in stacks if stage.environment(name) == chosen]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--processes", type=int, default=1, help="how many processes share the seeds"
    )
    parser.add_argument("--assemblies", type=Path, help="folder for the synthesized apps")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(given.first, given.first + given.seeds)
    with tempfile.TemporaryDirectory() as temporary:
        directory = assemblies(given.assemblies or Path(temporary), seeds)
        result = run_in_processes(directory, seeds, given.processes)
    sys.exit(1 if result.failures else 0)


if __name__ == "__main__":
    main()
